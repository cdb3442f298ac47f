package models

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var anySchema = json.RawMessage(`{"type": "object"}`)

// TestSchemaFields: each server has its own name for it.
func TestSchemaFields(t *testing.T) {
	vllmOf := func(version string) dialect { return vllmDialect.with("/version", `{"version":`+quote(version)+`}`) }
	for _, c := range []struct {
		name  string
		d     dialect
		field string // empty: the server cannot
		want  string
	}{
		{"Ollama", ollamaDialect, "format", `{"type":"object"}`},
		{"llama-server", llamaDialect, "json_schema", `{"type":"object"}`},
		{"vLLM", vllmOf("0.18.2"), "structured_outputs", `{"json":{"type":"object"}}`},
		{"vLLM 0.11", vllmOf("0.11.0"), "structured_outputs", `{"json":{"type":"object"}}`},
		{"vLLM 0.10", vllmOf("0.10.1.1"), "", ""},
		{"vLLM 1.0", vllmOf("v1.0.0"), "structured_outputs", `{"json":{"type":"object"}}`},
		{"vLLM of an unknown version", vllmDialect, "structured_outputs", `{"json":{"type":"object"}}`},
		{"vLLM, built from its source", vllmOf("0.1.dev1+g0123456"), "structured_outputs", `{"json":{"type":"object"}}`},
		{"SGLang", sglangDialect, "json_schema", `"{\"type\": \"object\"}"`},
		{"llama-server as OpenAI", openaiDialect.with("/v1/models", `{"data":[{"id":"m","owned_by":"llamacpp"}]}`), "json_schema", `{"type":"object"}`},
		{"LM Studio", openaiDialect.with("/v1/models", studioModels), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.d.serve(t, c.d.says(c.d.frames("{}")...))
			m := f.open(t, Options{})
			got := listen(t, t.Context(), m, Request{Prompt: text("p"), Schema: anySchema})
			if c.field == "" {
				unsupported(t, got.err)
				check(t, "generations", len(f.requests), 0)
				return
			}
			check(t, "text", got.text, "{}")
			check(t, "schema", jsonOf(t, f.last(t)[c.field]), c.want)
			complete(t, m, Request{Prompt: text("p")})
			if v, sent := f.last(t)[c.field]; sent {
				t.Errorf("without a schema %s is %v", c.field, v)
			}
		})
	}
}

// TestSchemaRefusals: what the servers say of a schema that they cannot follow.
// llama-server's and Ollama's are recorded; the others are after their sources.
func TestSchemaRefusals(t *testing.T) {
	for _, c := range []struct {
		d      dialect
		status int
		body   string
		schema bool
	}{
		{vllmDialect, 400, `{"error":{"message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError","code":400}}`, true},
		{vllmDialect, 400, `{"object":"error","message":"Failed to transform json schema into a grammar: unsupported","type":"BadRequestError","code":400}`, true},
		{vllmDialect, 400, `{"error":{"message":"Grammar error: Unsatisfiable schema","type":"BadRequestError","code":400}}`, true},
		{sglangDialect, 400, `{"object":"error","message":"Failed to compile json grammar: items must be an object","type":"BadRequestError","code":400}`, true},
		{vllmDialect, 400, `{"error":{"message":"top_p must be in (0, 1], got 7.","type":"BadRequestError","code":400}}`, false},
		{llamaDialect, 503, `{"error":{"message":"no grammar now","type":"unavailable_error","code":503}}`, false},
		{ollamaDialect, 500, `{"error":"llama runner process has terminated"}`, false},
	} {
		f := c.d.serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p"), Schema: anySchema})
		var refused *SchemaError
		if errors.As(got.err, &refused) != c.schema || got.err == nil {
			t.Errorf("%s: error is %v", c.body, got.err)
		}
	}
}

func TestScriptUnderASchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.yaml")
	const script = `turns:
  - {after: "whole:", text: "{\"n\": 1}"}
  - {after: "wrong:", text: "{\"n\": \"one\"}"}
  - {after: "words:", text: "one"}
  - {after: "blank:", text: " {\"n\": 1}"}
  - {after: "more:", text: "{\"n\": 1} and"}
  - {after: "cut:", text: "{\"n\":", finish: length}
  - {after: "huge:", text: "{\"n\": 1e9999999}"}
`
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open("script:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for _, c := range []struct {
		prompt string
		able   bool
	}{{"whole:", true}, {"wrong:", false}, {"words:", false}, {"blank:", false}, {"more:", false}, {"cut:", true}, {"huge:", false}} {
		got := listen(t, t.Context(), m, Request{Prompt: text(c.prompt), Schema: schema})
		if c.able {
			check(t, c.prompt, got.err, nil)
			continue
		}
		unsupported(t, got.err)
		check(t, "text after "+c.prompt, got.text, "")
	}
	for _, bad := range []string{`{"type":"nonsense"}`, `{"$ref":"file:///etc/hostname"}`} {
		got := listen(t, t.Context(), m, Request{Prompt: text("whole:"), Schema: json.RawMessage(bad)})
		var refused *SchemaError
		if !errors.As(got.err, &refused) {
			t.Errorf("%s: error is %v", bad, got.err)
		}
	}
}

// TestAbilities: which models have which, whatever their server then says.
func TestAbilities(t *testing.T) {
	for _, c := range everyProtocol(t) {
		m := c.model
		if p, ok := m.(asPrompt); ok {
			m = p.Model
		}
		t.Run(c.name, func(t *testing.T) {
			scorer, scores := m.(Scorer)
			renderer, renders := m.(Renderer)
			_, local := m.(*ollama)
			_, script := m.(*scripted)
			_, inside := m.(*builtinModel)
			check(t, "scores", scores, !local && !script)
			check(t, "renders", renders, !script && !inside)
			for _, schema := range []string{`[]`, `"{}"`, `true`, `{"type":`, ` `, `{} {}`} {
				got := listen(t, t.Context(), m, Request{Prompt: text("p"), Schema: json.RawMessage(schema)})
				var refused *SchemaError
				if !errors.As(got.err, &refused) || refused.Server != "" {
					t.Errorf("schema %q: error is %v, want a SchemaError of nobody", schema, got.err)
				}
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if scores {
				for _, said := range []string{"text", ""} {
					_, err := scorer.Score(over, text("p"), said)
					check(t, "error of a score", err, over.Err())
				}
			}
			if renders {
				_, err := renderer.Render(over, Conversation{Messages: []Message{{Role: RoleUser, Content: "x"}}})
				check(t, "error of a rendering", err, over.Err())
			}
		})
	}
}

// TestNothingIsSentThatCannotBe: wrong questions reach no server.
func TestNothingIsSentThatCannotBe(t *testing.T) {
	say := func(m ...Message) Conversation { return Conversation{Messages: m} }
	for _, d := range []dialect{ollamaDialect, llamaDialect, openaiDialect, vllmDialect} {
		f := d.serve(t, d.says(d.end))
		m := f.open(t, Options{})
		for name, c := range map[string]Conversation{
			"nothing":                 {},
			"the assistant's word":    say(Message{Role: RoleUser, Content: "x"}, Message{Role: RoleAssistant, Content: "y"}),
			"no UTF-8":                say(Message{Role: RoleUser, Content: "\xe4"}),
			"parameters of no object": {Messages: say(Message{Role: RoleUser}).Messages, Tools: []ToolSpec{{Name: "t", Parameters: json.RawMessage(`[]`)}}},
		} {
			var p *PromptError
			if got, err := m.(Renderer).Render(t.Context(), c); !errors.As(err, &p) {
				t.Errorf("%s, %s: %q, %v", d.name, name, got, err)
			}
		}
		if s, ok := m.(Scorer); ok && d.name == "openai" {
			for _, bad := range [][2]string{{"", "x"}, {"x", "\xe4"}, {"\xe4", "x"}} {
				var p *PromptError
				if got, err := s.Score(t.Context(), text(bad[0]), bad[1]); !errors.As(err, &p) {
					t.Errorf("score of %q after %q: %v, %v", bad[1], bad[0], got, err)
				}
			}
		}
		if slices.ContainsFunc(f.asked, func(path string) bool { return path != "/api/ps" }) {
			t.Errorf("%s was asked %v", d.name, f.asked)
		}
	}
}
