package models

import (
	"errors"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
)

var ollamaScenarios = []scenario{
	{
		name: "ollama/plain", about: "a generation that ends by itself",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt)})
			check(t, "text", got.text, testScript.Turns[0].Text)
			check(t, "finish", got.final.Finish, FinishStop)
			u := got.final.Usage
			check(t, "prompt and generated are known", u.Prompt.Known && u.Generated.Known, true)
			check(t, "reused or evaluated are known", u.Reused.Known || u.Evaluated.Known, false)
			check(t, "ids", len(got.tokens), 0)
			if got.final.Timings.Prompt <= 0 || got.final.Timings.Total <= 0 {
				t.Errorf("timings are %v", got.final.Timings)
			}
		},
	},
	{
		name: "ollama/counts", about: "the same prompt twice: prompt_eval_count is the whole prompt both times",
		run: func(t *testing.T, m Model) {
			prompt := text(strings.Repeat("x", 500) + "[1]")
			first, second := complete(t, m, Request{Prompt: prompt}), complete(t, m, Request{Prompt: prompt})
			check(t, "prompt", first.final.Usage.Prompt, Known(501))
			check(t, "prompt", second.final.Usage.Prompt, Known(501))
		},
	},
	{
		name: "ollama/limit", about: "num_predict is reached",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[endless]"), MaxTokens: 4})
			check(t, "text", got.text, "around and aroundaround")
			check(t, "finish", got.final.Finish, FinishLength)
		},
	},
	{
		name: "ollama/context", about: "the context is full",
		opts: Options{ContextSize: 256},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(strings.Repeat("x", 200) + "[endless]")})
			check(t, "finish", got.final.Finish, FinishContext)
		},
	},
	{
		name: "ollama/overflow", about: "the prompt is longer than the context",
		opts: Options{ContextSize: 256},
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text(strings.Repeat("x", 300) + "[1]")})
			var o *OverflowError
			if !errors.As(got.err, &o) {
				t.Fatalf("error is %v, want an OverflowError", got.err)
			}
			check(t, "context", o.Context, Known(256))
		},
	},
	{
		name: "ollama/cut", about: "thirty equal pieces: the stream ends and does not say so",
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text("[same]"), MaxTokens: 200})
			var c *CutError
			if !errors.As(got.err, &c) {
				t.Fatalf("error is %v, want a CutError", got.err)
			}
			check(t, "bytes", c.Bytes, len(got.text))
			check(t, "tokens", c.Tokens, len(got.text)/len("same"))
		},
	},
	{
		name: "ollama/stops", about: "a request's stop, with the model's own: both end a generation",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[1]"), Stop: []string{"never"}})
			check(t, "text", got.text, "High water is")
			check(t, "finish", got.final.Finish, FinishStop)
			got = complete(t, m, Request{Prompt: text("[1]"), Stop: []string{"water"}})
			check(t, "text", got.text, "High ")
		},
	},
	{
		name: "ollama/hidden", about: "a control token in the output is rendered", model: "special",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[hidden]")})
			check(t, "text", got.text, "first</tool_response>then the rest")
		},
	},
	{
		name: "ollama/describe", about: "what the server says of itself, before and after loading",
		run: func(t *testing.T, m Model) {
			for _, context := range []Count{{}, Known(4096)} {
				info, err := m.(Describer).Describe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				check(t, "server", info.Server, "ollama 0.0.0") // built from its module
				check(t, "context", info.Context, context)
				check(t, "trained", info.Trained, Known(32768))
				check(t, "stops", strings.Join(info.Stops, ","), " at")
				complete(t, m, Request{Prompt: text("[1]"), MaxTokens: 1})
			}
			models, err := m.(Lister).List(t.Context())
			if err != nil || len(models) != 1 || models[0].Size == 0 {
				t.Errorf("models are %v, %v", models, err)
			}
		},
	},
	{
		name: "ollama/missing", about: "a model that is not there", model: "missing",
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text("[1]")})
			_, derr := m.(Describer).Describe(t.Context())
			for _, err := range []error{got.err, derr} {
				var nf *NotFoundError
				if !errors.As(err, &nf) {
					t.Fatalf("error is %v, want a NotFoundError", err)
				}
				check(t, "model", nf.Model, "missing")
				check(t, "available", strings.Join(nf.Available, ","), "automaton:latest")
			}
		},
	},
	{
		name: "ollama/sessions", about: "two sessions take turns on one slot", timed: true,
		run: func(t *testing.T, m Model) {
			report := measure(t, m)
			check(t, "exact", report.Exact, false)
			check(t, "verdict", report.Verdict, PrefixLost)
		},
	},
}

func ollamaRef(s scenario) func(string) string {
	return func(string) string {
		if s.model == "missing" {
			return "ollama:missing"
		}
		return "ollama:automaton"
	}
}

func TestRecordedOllama(t *testing.T) {
	for _, s := range ollamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) { replay(t, s, ollamaRef(s)) })
	}
}

func TestLiveOllama(t *testing.T) {
	for _, s := range ollamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) {
			file := modelFile
			if s.model == "special" {
				file = specialFile
			}
			if s.timed && !*record {
				t.Skip("its outcome depends on how long the server takes")
			}
			server := ollamatest.Start(t, append(s.flags, "OLLAMA_CONTEXT_LENGTH=4096")...)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the log of Ollama:\n%s", server.Log())
				}
			})
			server.Create(t, "automaton", file(t), map[string]any{"stop": []string{" at"}})
			live(t, s, server.URL, ollamaRef(s), s.about+"\nOllama 0.17.4, a model with stop \" at\" "+strings.Join(s.flags, " "))
		})
	}
}
