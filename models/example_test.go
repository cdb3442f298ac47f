package models_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"stopgap/models"
)

// A scripted model needs no server. Every other reference opens one that does:
// models.Open("ollama:qwen3", models.Options{}).
func Example() {
	script, err := models.ParseScript([]byte(`
turns:
  - text: "The tide turns at six."
`))
	if err != nil {
		log.Fatal(err)
	}
	m := script.Open(models.Options{})
	request := models.Request{Prompt: []models.Segment{{Text: "When does the tide turn?\n"}}}
	for chunk, err := range m.Stream(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(chunk.Text)
		if f := chunk.Final; f != nil {
			fmt.Printf("\n%s after %s tokens", f.Finish, f.Usage.Generated)
		}
	}
	// Output:
	// The tide turns at six.
	// stop after 5 tokens
}

func ExampleOpen() {
	_, err := models.Open("qwen3", models.Options{})
	var ref *models.RefError
	if errors.As(err, &ref) {
		fmt.Println(err)
		for _, k := range ref.Kinds {
			fmt.Printf("%s: %s\n", k.Form, k.Help)
		}
	}
	// Output:
	// model reference "qwen3": the kind of server is missing
	// ollama:NAME: a model of Ollama
	// llamacpp:URL: a llama-server
	// openai:URL#MODEL: a server with /v1/completions: vLLM, SGLang, LM Studio
	// builtin[:FILE]: the model inside, or a small GGUF file like it
	// script:FILE: a scripted model, for tests and examples
}

func ExampleMeasurePrefix() {
	script, err := models.ParseScript([]byte("turns: [{text: a}, {text: b}, {text: c}]"))
	if err != nil {
		log.Fatal(err)
	}
	report, err := models.MeasurePrefix(context.Background(), script.Open(models.Options{}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(report.Turns), "turns, prefixes are", report.Verdict)
	// Output: 6 turns, prefixes are kept
}
