package models

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
)

var llamaScenarios = []scenario{
	{
		name: "llama-server/plain", about: "a generation that ends by itself, twice",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			for i := range 2 {
				got := complete(t, m, Request{Prompt: text(userPrompt)})
				check(t, "text", got.text, testScript.Turns[0].Text)
				check(t, "finish", got.final.Finish, FinishStop)
				u := got.final.Usage
				check(t, "reused and evaluated", u.Reused.N+u.Evaluated.N, u.Prompt.N)
				check(t, "whether the second prompt was found in the cache", u.Evaluated.N == 1, i == 1)
				// The end-of-generation token is counted and not part of the output.
				check(t, "ids", len(got.tokens), u.Generated.N-1)
				if len(got.progress) == 0 || got.progress[0].Phase != Reading {
					t.Errorf("progress is %v, want reading", got.progress)
				}
				if got.usage == nil || got.usage.Prompt != u.Prompt || got.usage.Reused != u.Reused {
					t.Errorf("usage before the end is %v, want the prompt of %v", got.usage, u)
				}
			}
		},
	},
	{
		name: "llama-server/preserved", about: "preserved_tokens renders the end-of-generation token",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt), Preserve: []string{"<|im_end|>"}})
			check(t, "text", got.text, testScript.Turns[0].Text+"<|im_end|>")
			check(t, "ids", len(got.tokens), got.final.Usage.Generated.N)
		},
	},
	{
		name: "llama-server/limit", about: "n_predict is reached",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[endless]"), MaxTokens: 4})
			check(t, "text", got.text, "around and aroundaround")
			check(t, "finish", got.final.Finish, FinishLength)
			check(t, "generated", got.final.Usage.Generated, Known(4))
		},
	},
	{
		name: "llama-server/context", about: "the context is full",
		flags: []string{"-np", "2", "-c", "512"}, // 256 a slot
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(strings.Repeat("x", 200) + "[endless]")})
			check(t, "finish", got.final.Finish, FinishContext)
		},
	},
	{
		name: "llama-server/overflow", about: "the prompt is longer than the context",
		flags: []string{"-np", "2", "-c", "512"},
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text(strings.Repeat("x", 300) + "[1]")})
			var o *OverflowError
			if !errors.As(got.err, &o) {
				t.Fatalf("error is %v, want an OverflowError", got.err)
			}
			check(t, "error", *o, OverflowError{PromptTokens: Known(301), Context: Known(256)})
		},
	},
	{
		name: "llama-server/hidden", about: "a control token in the output: hidden with its id, then preserved",
		model: "special", flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			hidden := complete(t, m, Request{Prompt: text("[hidden]")})
			check(t, "text", hidden.text, "firstthen the rest")
			shown := complete(t, m, Request{Prompt: text("[hidden]"), Preserve: []string{"</tool_response>"}})
			check(t, "text", shown.text, "first</tool_response>then the rest")
			check(t, "ids", fmt.Sprint(hidden.tokens), fmt.Sprint(shown.tokens))
		},
	},
	{
		name: "llama-server/hole", about: "a character of two tokens: the first one has no event",
		model: "special", flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[hole]")})
			check(t, "text", got.text, "one ab中cdeF two")
			holes := 0
			for _, c := range got.chunks {
				if c.Text != "" && c.Tokens == nil {
					holes++
					check(t, "text of the hole", c.Text, " ab中cdeF")
				}
			}
			check(t, "holes", holes, 1)
			check(t, "ids", len(got.tokens), 2)
		},
	},
	{
		name: "llama-server/stop", about: "a stop string is cut from the text and not from the ids",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt), Stop: []string{"</think>"}})
			check(t, "text", got.text, "<think>\nI look it up.\n")
			check(t, "finish", got.final.Finish, FinishStop)
			check(t, "ids", len(got.tokens), 0)
		},
	},
	{
		name: "llama-server/ids", about: "the second prompt has the ids of the first answer in its middle",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			first := complete(t, m, Request{Prompt: text("Tides.[1]")})
			second := complete(t, m, Request{Prompt: []Segment{
				{Text: "Tides."}, {Text: "[1]"}, {Text: first.text, Tokens: first.tokens}, {Text: "<|im_end|>[2]"},
			}})
			check(t, "text", second.text, testScript.Turns[6].Text)
			check(t, "evaluated", second.final.Usage.Evaluated, Known(2))
		},
	},
	{
		name: "llama-server/tokenize", about: "tokens with pieces, one of which is no text",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			tokens, err := m.(Tokenizer).Tokenize(t.Context(), "a<tool_call>é")
			if err != nil {
				t.Fatal(err)
			}
			var pieces []string
			for _, token := range tokens {
				pieces = append(pieces, token.Piece)
			}
			check(t, "pieces", fmt.Sprintf("%q", pieces), `["a" "<tool_call>" "\xc3" "\xa9"]`)
		},
	},
	{
		name: "llama-server/describe", about: "what the server says of itself",
		flags: []string{"-np", "2", "-c", "4096", "--alias", "automaton"},
		run: func(t *testing.T, m Model) {
			info, err := m.(Describer).Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, "model", info.Model, "automaton")
			check(t, "context", info.Context, Known(2048))
			check(t, "trained", info.Trained, Known(32768))
			check(t, "slots", info.Slots, Known(2))
			if !strings.HasPrefix(info.Server, "llama-server ") {
				t.Errorf("server is %q", info.Server)
			}
			models, err := m.(Lister).List(t.Context())
			if err != nil || len(models) != 1 || models[0].Name != "automaton" || models[0].Size == 0 {
				t.Errorf("models are %v, %v", models, err)
			}
		},
	},
	{
		name: "llama-server/sessions-np", about: "two sessions take turns, -np 2: a turn costs its own tokens",
		flags: []string{"-np", "2", "-c", "8192"},
		run: func(t *testing.T, m Model) {
			for _, turn := range alternate(t, m) {
				if turn.n > 1 {
					// What was appended and nothing else.
					check(t, turn.name+" evaluated", turn.usage.Evaluated, Known(turn.added))
				}
			}
			check(t, "verdict", measure(t, m).Verdict, PrefixKept)
		},
	},
	{
		name: "llama-server/sessions-np-free", about: "two sessions take turns, -np 2, no slot is named: sessions with a long common start share a slot",
		flags: []string{"-np", "2", "-c", "8192"}, opts: Options{Slots: SlotsFree},
		run: func(t *testing.T, m Model) { check(t, "verdict", measure(t, m).Verdict, PrefixLost) },
	},
	{
		name: "llama-server/sessions-default", about: "two sessions take turns, default flags: only the common start is reused",
		flags: []string{"-c", "8192"},
		run: func(t *testing.T, m Model) {
			for _, turn := range alternate(t, m) {
				if turn.n > 1 && turn.usage.Evaluated.N <= 2*turn.added {
					t.Errorf("%s evaluated %s: the server has learned to keep prefixes", turn.name, turn.usage.Evaluated)
				}
			}
			report := measure(t, m)
			check(t, "exact", report.Exact, true)
			check(t, "verdict", report.Verdict, PrefixLost)
			check(t, "advice", report.Advice, "-np 2")
		},
	},
	{
		name: "llama-server/sessions-default-pinned", about: "two sessions take turns, default flags, slots named all the same",
		flags: []string{"-c", "8192"}, opts: Options{Slots: SlotsPinned},
		run: func(t *testing.T, m Model) {
			report := measure(t, m)
			check(t, "verdict", report.Verdict, PrefixLost)
			check(t, "advice", report.Advice, "-np 2")
		},
	},
}

func TestRecordedLlamaServer(t *testing.T) {
	for _, s := range llamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			replay(t, s, func(url string) string { return "llamacpp:" + url })
		})
	}
}

func TestLiveLlamaServer(t *testing.T) {
	for _, s := range llamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			file := modelFile
			if s.model == "special" {
				file = specialFile
			}
			live(t, s, ollamatest.LlamaServer(t, file(t), s.flags...), func(url string) string { return "llamacpp:" + url },
				s.about+"\nllama-server 0.5.0-dev (0c1e570), flags "+strings.Join(s.flags, " "))
		})
	}
}
