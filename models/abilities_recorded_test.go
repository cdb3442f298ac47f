package models

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"stopgap/internal/ollamatest"
)

// What servers can do beside a plain generation, with the real ones: text under
// a schema, scores, and the model's own chat template.

// callSchema allows few texts, so that a model that would say something else
// writes one of them.
const callSchema = `{"type":"object","properties":{"name":{"enum":["search","visit"]},` +
	`"arguments":{"type":"object","properties":{"query":{"const":"tide"}},"required":["query"],"additionalProperties":false}},` +
	`"required":["name","arguments"],"additionalProperties":false}`

// constrained generates under callSchema where the model would say something
// else, and checks the text but for what it gives back, which follows it.
func constrained(t *testing.T, m Model, preserve ...string) string {
	t.Helper()
	got := complete(t, m, Request{Prompt: text("[1]"), MaxTokens: 200, Schema: json.RawMessage(callSchema), Preserve: preserve})
	check(t, "finish", got.final.Finish, FinishStop)
	check(t, "the first byte", got.text[:1], "{")
	var call struct {
		Name      string
		Arguments struct{ Query string }
	}
	d := json.NewDecoder(strings.NewReader(got.text))
	if err := d.Decode(&call); err != nil {
		t.Fatalf("%v: %s", err, got.text)
	}
	check(t, "name", call.Name == "search" || call.Name == "visit", true)
	check(t, "query", call.Arguments.Query, "tide")
	return got.text[d.InputOffset():]
}

// refusedSchemas are refused by the server: nothing is generated.
func refusedSchemas(t *testing.T, m Model) {
	t.Helper()
	for _, schema := range []string{`{"type":"nonsense"}`, `{"$ref":"#/nowhere"}`, `{"type":"object","properties":5}`} {
		got := listen(t, t.Context(), m, Request{Prompt: text("[1]"), MaxTokens: 5, Schema: json.RawMessage(schema)})
		var refused *SchemaError
		if !errors.As(got.err, &refused) || refused.Server == "" || len(got.chunks) != 1 {
			t.Errorf("%s: got %q and %v, want a SchemaError", schema, got.text, got.err)
		}
	}
}

// asked is a conversation in which everything occurs.
var (
	depthTool = ToolSpec{Name: "depth", Description: "Finds <pages>.", Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"a":{"type":"integer"}},"required":["q"]}`)}
	asked     = Conversation{Tools: []ToolSpec{depthTool}, Messages: []Message{
		{Role: RoleSystem, Content: "Be brief."},
		{Role: RoleUser, Content: "How deep & \"wide\"?"},
		{Role: RoleAssistant, Thinking: "I look it up.", Content: "Wait.", Calls: []ToolCall{{ID: "call00001", Name: "depth", Arguments: json.RawMessage(`{"q":"tide \"é\"","a":12345678901234567}`)}}},
		{Role: RoleTool, Name: "depth", CallID: "call00001", Content: "4 m"},
	}}
)

// renderedAsked is asked by testdata/chat.jinja and its twin for Ollama.
func renderedAsked(tool, arguments string) string {
	return "<|im_start|>system\nTools, one a line:\n<tools>\n" + tool + "\n</tools>\nA call:\n<tool_call>\n" +
		"{\"name\": \"<name>\", \"arguments\": {}}\n</tool_call><|im_end|>\n" +
		"<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHow deep & \"wide\"?<|im_end|>\n" +
		"<|im_start|>assistant\n<think>\nI look it up.\n</think>\n\nWait.\n<tool_call>\n" +
		"{\"name\": \"depth\", \"arguments\": " + arguments + "}\n</tool_call><|im_end|>\n" +
		"<|im_start|>user\n<tool_response>\n4 m\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
}

func render(t *testing.T, m Model, c Conversation, want string) {
	t.Helper()
	got, err := m.(Renderer).Render(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "rendering", got, want)
}

func unsupported(t *testing.T, err error) {
	t.Helper()
	var u *UnsupportedError
	if !errors.As(err, &u) {
		t.Errorf("error is %v, want an UnsupportedError", err)
	}
}

// likely is what the model of softFile gives the token that follows, and other
// what it gives each other one.
func likely(t *testing.T) (next, other float64) {
	a := compiled(t)
	l := a.Logit(softOptions)
	other = -math.Log(math.Exp(l) + float64(a.Size()-1))
	return l + other, other
}

// scored checks tokens and log-probabilities.
func scored(t *testing.T, m Model, prompt []Segment, text string, want ...Scored) {
	t.Helper()
	got, err := m.(Scorer).Score(t.Context(), prompt, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("scores are %v, want %v", got, want)
	}
	for i, s := range got {
		check(t, "piece", s.Piece, want[i].Piece)
		if d := math.Abs(s.LogProb - want[i].LogProb); d > 1e-4 || math.IsNaN(d) && s.LogProb != want[i].LogProb {
			t.Errorf("%q has %v, want %v", s.Piece, s.LogProb, want[i].LogProb)
		}
	}
}

func score(piece string, p float64) Scored { return Scored{Token{Piece: piece}, p} }

// scoreSoft scores a text of which the first token is likely, one is half a
// character, and the last is the end of generation.
func scoreSoft(t *testing.T, m Model) {
	next, other := likely(t)
	scored(t, m, text(strings.Repeat("The tide. ", 30)+userPrompt), "<think>é<|im_end|>",
		score("<think>", next), score("\xc3", other), score("\xa9", other), score("<|im_end|>", other))
}

var llamaAbilities = []scenario{
	{
		name: "llama-server/schema", about: "text under a schema, with the end-of-generation token hidden and shown",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			check(t, "what follows the value", constrained(t, m), "")
			end := constrained(t, m, "<|endoftext|>", "<|im_end|>")
			check(t, "what follows the value is a token that ends a generation", end == "<|endoftext|>" || end == "<|im_end|>", true)
		},
	},
	{
		name: "llama-server/schema-refused", about: "schemas that the server refuses",
		flags: []string{"-np", "2", "-c", "4096"}, run: refusedSchemas,
	},
	{
		name: "llama-server/score", about: "scores of a text, one token of which is half a character",
		model: "soft", flags: []string{"-np", "2", "-c", "4096"}, run: scoreSoft,
	},
	{
		name: "llama-server/score-default", about: "the same with default flags",
		model: "soft", flags: []string{"-c", "4096"}, run: scoreSoft,
	},
	{
		name: "llama-server/score-never", about: "a token that the model never says",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			scored(t, m, text(userPrompt), "<think>x", score("<think>", 0), score("x", math.Inf(-1)))
		},
	},
	{
		name: "llama-server/score-overflow", about: "a text for which the context has no room",
		flags: []string{"-np", "2", "-c", "512"},
		run: func(t *testing.T, m Model) {
			var o *OverflowError
			if _, err := m.(Scorer).Score(t.Context(), text(strings.Repeat("x", 254)), "abcd"); !errors.As(err, &o) {
				t.Errorf("error is %v, want an OverflowError", err)
			}
		},
	},
	{
		name: "llama-server/render", about: "the model's chat template",
		flags: []string{"-np", "2", "-c", "4096", "--jinja", "--chat-template-file", "testdata/chat.jinja"},
		run: func(t *testing.T, m Model) {
			render(t, m, asked, renderedAsked(
				`{"type": "function", "function": {"name": "depth", "description": "Finds <pages>.", "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "a": {"type": "integer"}}, "required": ["q"]}}}`,
				`{"q": "tide \"é\"", "a": 12345678901234567}`))
		},
	},
	{
		name: "llama-server/render-bos", about: "a template that writes what the server puts before a prompt anyway",
		model: "bos", flags: []string{"-np", "2", "-c", "4096", "--jinja", "--chat-template-file", "testdata/bos.jinja"},
		run: func(t *testing.T, m Model) {
			render(t, m, Conversation{Messages: asked.Messages[1:2]}, "<|im_start|>user\nHow deep & \"wide\"?<|im_end|>\n<|im_start|>assistant\n")
		},
	},
	{
		name: "llama-server/render-toolless", about: "a template that knows no tools",
		flags: []string{"-np", "2", "-c", "4096", "--jinja"},
		run: func(t *testing.T, m Model) {
			_, err := m.(Renderer).Render(t.Context(), asked)
			unsupported(t, err)
		},
	},
}

// goTemplate is a template as Modelfiles have them.
//
//go:embed testdata/chat.gotmpl
var goTemplate string

var ollamaAbilities = []scenario{
	{
		name: "ollama/schema", about: "text under a schema",
		run: func(t *testing.T, m Model) {
			check(t, "what follows the value but white space", strings.TrimSpace(constrained(t, m)), "")
		},
	},
	{name: "ollama/schema-refused", about: "schemas that the server refuses", run: refusedSchemas},
	{
		name: "ollama/render", about: "the template of the Modelfile", derived: &api.CreateRequest{Template: goTemplate, System: "Never seen."},
		run: func(t *testing.T, m Model) {
			// Ollama reads numbers as floats and orders the members of objects.
			render(t, m, asked, renderedAsked(
				`{function <nil> {depth Finds <pages>. {object <nil> <nil> [q] {"a":{"type":"integer"},"q":{"type":"string"}}}}}`,
				`{"a":12345678901234568,"q":"tide \"é\""}`))
		},
	},
	{
		name: "ollama/render-builtin", about: "a renderer that is built into Ollama", derived: &api.CreateRequest{Renderer: "qwen3-coder", Parser: "qwen3-coder"},
		run: func(t *testing.T, m Model) {
			got, err := m.(Renderer).Render(t.Context(), asked)
			if err != nil {
				t.Fatal(err)
			}
			const start = "<|im_start|>system\nBe brief.\n\n# Tools\n\nYou have access to the following functions:\n\n<tools>\n<function>\n<name>depth</name>"
			const end = "<parameter=q>\ntide \"é\"\n</parameter>\n<parameter=a>\n1.2345678901234568e+16\n</parameter>\n</function>\n</tool_call><|im_end|>\n" +
				"<|im_start|>user\n<tool_response>\n4 m\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
			if !strings.HasPrefix(got, start) || !strings.HasSuffix(got, end) {
				t.Errorf("rendering is %s", got)
			}
		},
	},
	{
		name: "ollama/render-bos", about: "a template that writes what the server puts before a prompt anyway", model: "bos",
		derived: &api.CreateRequest{Template: "<|endoftext|>{{ .Prompt }}"},
		run: func(t *testing.T, m Model) {
			render(t, m, Conversation{Messages: asked.Messages[1:2]}, "How deep & \"wide\"?")
		},
	},
	{
		name: "ollama/render-toolless", about: "a template that knows no tools",
		run: func(t *testing.T, m Model) {
			_, err := m.(Renderer).Render(t.Context(), asked)
			unsupported(t, err)
		},
	},
}

func (s scenario) file() func(*testing.T) string {
	switch s.model {
	case "soft":
		return softFile
	case "bos":
		return bosFile
	}
	return modelFile
}

func derivedRef(s scenario) func(string) string {
	if s.derived == nil {
		return ollamaRef(s)
	}
	return func(string) string { return "ollama:derived" }
}

func llamaRef(url string) string { return "llamacpp:" + url }

func TestRecordedAbilities(t *testing.T) {
	for _, s := range llamaAbilities {
		t.Run(s.name, func(t *testing.T) { replay(t, s, llamaRef) })
	}
	for _, s := range ollamaAbilities {
		t.Run(s.name, func(t *testing.T) { replay(t, s, derivedRef(s)) })
	}
}

func TestLiveAbilities(t *testing.T) {
	for _, s := range llamaAbilities {
		t.Run(s.name, func(t *testing.T) {
			live(t, s, ollamatest.LlamaServer(t, s.file()(t), s.flags...), llamaRef,
				s.about+"\nllama-server 0.5.0-dev (0c1e570), flags "+strings.Join(s.flags, " "))
		})
	}
	for _, s := range ollamaAbilities {
		t.Run(s.name, func(t *testing.T) {
			server := ollamatest.Start(t, "OLLAMA_CONTEXT_LENGTH=4096")
			server.Create(t, "automaton", s.file()(t), nil)
			if s.derived != nil {
				r := *s.derived
				r.Model, r.From = "derived", "automaton"
				if err := server.Client.Create(t.Context(), &r, func(api.ProgressResponse) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			live(t, s, server.URL, derivedRef(s), s.about+"\nOllama 0.17.4")
			if strings.HasPrefix(s.name, "ollama/render") && strings.Contains(server.Log(), `msg="completion request"`) {
				t.Error("something was generated")
			}
		})
	}
}

// TestScoreReadsEachTokenOnce looks at what the server did: the prompt is read
// by the first request, and each further one reads the token that it adds.
func TestScoreReadsEachTokenOnce(t *testing.T) {
	for _, name := range []string{"llama-server/score", "llama-server/score-default"} {
		var read []int
		for _, e := range loadTranscript(t, name).exchanges {
			if e.Path != "/completion" {
				continue
			}
			events := bytes.Split(e.Response, []byte("data: "))
			var last llamaFrame
			if err := json.Unmarshal(events[len(events)-1], &last); err != nil {
				t.Fatal(err)
			}
			read = append(read, *last.Timings.Prompt)
		}
		t.Logf("%s: read %d", name, read)
		check(t, "requests for four tokens, one of which is asked for twice", len(read), 5)
		for i, n := range read[1:] {
			if n != 1 {
				t.Errorf("%s: request %d read %d tokens", name, i+2, n)
			}
		}
	}
}
