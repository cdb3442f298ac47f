package models

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

var aQuestion = Conversation{Messages: []Message{{Role: RoleUser, Content: "x"}}}

// renderingVLLM is a vLLM of one id a byte that renders everything to rendered
// and spells it as spelled.
func renderingVLLM(t *testing.T, rendered, spelled string) (Model, *[]map[string]any) {
	var requests []map[string]any
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		switch r.URL.Path {
		case "/v1/models":
			_, _ = io.WriteString(w, vllmModels)
		case "/tokenize":
			requests = append(requests, body)
			text, again := body["prompt"].(string)
			if !again {
				text = rendered
			}
			_, _ = io.WriteString(w, `{"tokens":`+jsonOf(t, byteIDs(text, false, false))+`}`)
		case "/detokenize":
			requests = append(requests, body)
			_, _ = io.WriteString(w, `{"prompt":`+quote(spelled)+`}`)
		}
	})
	m, err := Open("openai:"+url+"#m", Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m, &requests
}

func TestVLLMRenders(t *testing.T) {
	m, requests := renderingVLLM(t, "<s>depth: 4 m", "<s>depth: 4 m")
	render(t, m, asked, "<s>depth: 4 m")
	first := (*requests)[0]
	check(t, "add_generation_prompt", first["add_generation_prompt"], any(true))
	check(t, "model", first["model"], any("m"))
	check(t, "messages", len(first["messages"].([]any)), len(asked.Messages))
	check(t, "thinking", first["messages"].([]any)[2].(map[string]any)["reasoning"], any("I look it up."))
	if !sameJSON([]byte(jsonOf(t, first["tools"])), []byte(jsonOf(t, chatTools(asked.Tools)))) {
		t.Errorf("tools are %s", jsonOf(t, first["tools"]))
	}
	check(t, "ids", jsonOf(t, (*requests)[1]["tokens"]), jsonOf(t, byteIDs("<s>depth: 4 m", false, false)))
	check(t, "add_special_tokens", (*requests)[2]["add_special_tokens"], any(false))
}

// TestRenderingsThatAreNone: a rendering is exact, or there is none.
func TestRenderingsThatAreNone(t *testing.T) {
	spelledOtherwise, _ := renderingVLLM(t, "<s> a , b", "<s> a, b")
	withoutTool, _ := renderingVLLM(t, "no tools", "no tools")
	open := func(d dialect) Model { return d.serve(t, d.says(d.end)).open(t, Options{}) }
	for _, c := range []struct {
		name  string
		model Model
		c     Conversation
	}{
		{"a tokenizer that spells otherwise", spelledOtherwise, aQuestion},
		{"a template that leaves out a tool", withoutTool, asked},
		{"a vLLM without /tokenize", open(openaiDialect.with("/v1/models", vllmModels)), aQuestion},
		{"SGLang", open(sglangDialect), aQuestion},
		{"LM Studio", open(openaiDialect.with("/v1/models", studioModels)), aQuestion},
		{"a llama-server without /apply-template", open(llamaDialect), aQuestion},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.model.(Renderer).Render(t.Context(), c.c)
			unsupported(t, err)
			check(t, "rendering", got, "")
		})
	}
}

// TestLlamaLeavesTheBeginningOut, as older servers did not.
func TestLlamaLeavesTheBeginningOut(t *testing.T) {
	for tokens, want := range map[string]string{
		`{"tokens":[{"id":1,"piece":"<s>"},{"id":9,"piece":"a"}]}`: "hi",
		`{"tokens":[{"id":9,"piece":"a"}]}`:                        "<s>hi",
	} {
		d := llamaDialect.with("/tokenize", tokens).with("/apply-template", `{"prompt":"<s>hi"}`)
		render(t, d.serve(t, nil).open(t, Options{}), aQuestion, want)
	}
}

// TestOllamaThatOnlyChats: one that does not know the flag generates no more
// than a token, which nobody sees.
func TestOllamaThatOnlyChats(t *testing.T) {
	d := ollamaDialect
	d.path = "/api/chat"
	f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, `{"model":"m","message":{"role":"assistant","content":"Hello"},"done":true,"done_reason":"length"}`)
	})
	got, err := f.open(t, Options{}).(Renderer).Render(t.Context(), aQuestion)
	unsupported(t, err)
	check(t, "rendering", got, "")
	sent := f.last(t)
	check(t, "num_predict", sent["options"].(map[string]any)["num_predict"], any(1.0))
	check(t, "stream", sent["stream"], any(false))
	check(t, "truncate", sent["truncate"], any(false))
}

func TestOllamaAddsABeginning(t *testing.T) {
	for info, want := range map[string]bool{
		`{"tokenizer.ggml.add_bos_token":true,"tokenizer.ggml.model":"gpt2"}`:   true,
		`{"tokenizer.ggml.add_bos_token":false,"tokenizer.ggml.model":"llama"}`: false,
		`{"tokenizer.ggml.model":"llama"}`:                                      true,
		`{"tokenizer.ggml.model":"gpt2","tokenizer.ggml.pre":"llama-bpe"}`:      true,
		`{"tokenizer.ggml.model":"gpt2","tokenizer.ggml.pre":"qwen2"}`:          false,
		`{}`: false,
	} {
		var m map[string]any
		if err := json.NewDecoder(strings.NewReader(info)).Decode(&m); err != nil {
			t.Fatal(err)
		}
		check(t, info, addsBOS(m), want)
	}
}
