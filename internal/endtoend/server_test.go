package endtoend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ollama/ollama/api"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/template"
)

// templated is what a model with the chat template of models/testdata writes:
// the same with a raw prompt and behind a chat endpoint.
func templated(t *testing.T) system {
	t.Helper()
	sys := named(t, "qwen")
	sys.turns = append([]automaton.Turn(nil), sys.turns...)
	sys.turns[0].After = question + "<|im_end|>\n<|im_start|>assistant\n"
	return sys
}

// TestServerFormats: the opening that the server renders, and its own chat
// endpoint, through the same loop and to the same answer as everything else.
func TestServerFormats(t *testing.T) {
	s := ollamatest.Shared(t)
	sys := templated(t)
	text, err := os.ReadFile(filepath.Join(root, "models", "testdata", "chat.gotmpl"))
	if err != nil {
		t.Fatal(err)
	}
	s.Create(t, "untemplated", modelFile(t, sys.turns, automaton.Options{}), nil)
	create := &api.CreateRequest{Model: "templated", From: "untemplated", Template: string(text)}
	if err := s.Client.Create(t.Context(), create, func(api.ProgressResponse) error { return nil }); err != nil {
		t.Fatal(err)
	}
	m, err := models.Open("ollama:templated", models.Options{OllamaHost: s.URL, ContextSize: 8192})
	if err != nil {
		t.Fatal(err)
	}
	serverFormats(t, sys, m)
}

func TestServerFormatsOnLlamaServer(t *testing.T) {
	sys := templated(t)
	url := ollamatest.LlamaServer(t, modelFile(t, sys.turns, automaton.Options{}), "-c", "16384", "-np", "2",
		"--jinja", "--chat-template-file", filepath.Join(root, "models", "testdata", "chat.jinja"))
	m, err := models.Open("llamacpp:"+url, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	serverFormats(t, sys, m)
}

func serverFormats(t *testing.T, sys system, m models.Model) {
	t.Helper()
	for _, format := range []string{string(template.OpenServer), string(template.OpenChat)} {
		t.Run(format, func(t *testing.T) {
			check(t, sys, newRunner(t, format, m, documents(t)))
		})
	}
}
