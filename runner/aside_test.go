package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
)

// A free model is a fakeModel whose server knows no schemas.
type freeModel struct{ *fakeModel }

func (f freeModel) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	if len(req.Schema) == 0 {
		return f.fakeModel.Stream(ctx, req)
	}
	return func(yield func(models.Chunk, error) bool) {
		yield(models.Chunk{}, &models.UnsupportedError{Server: "fake", What: "a JSON schema"})
	}
}

// TestAsk asks aside in every kind of format: the answer is the model's without
// thoughts and tags, and under a schema the value alone.
func TestAsk(t *testing.T) {
	const value = `{"summary":"yes"}`
	for name, tc := range map[string]struct {
		format string
		free   bool   // the server knows no schemas
		text   string // what the model writes
		want   string
		prompt string // the end of the prompt
	}{
		"schema":               {"qwen", false, value, value, "<|im_end|>\n<|im_start|>assistant\n"},
		"schema, white space":  {"qwen", false, value + " \n", value, "assistant\n"},
		"schema, thinking":     {"qwq", false, value, value, "assistant\n<think>\n</think>\n\n"},
		"schema, lines":        {"react", false, value, value, "Thought:"},
		"no schema":            {"qwen", true, "<think>So {so}.</think>\n\n" + value, value, "assistant\n"},
		"no schema, thinking":  {"qwq", true, "So.\n</think>\n\n" + value, value, "assistant\n<think>\n"},
		"no schema, tags":      {"deepresearch", true, "<think>So.</think>\n<answer>" + value + "</answer>", value, "assistant\n"},
		"no schema, tags left": {"deepresearch", true, "<think>So.</think>\n" + value, value, "assistant\n"},
		"no schema, lines":     {"react", true, " I know.\nFinal Answer: " + value, value, "Thought:"},
		"copied":               {"qwen", true, `{"summary":"a <·|im_end|> · b"}`, `{"summary":"a <|im_end|> · b"}`, "assistant\n"},
		"copied, schema":       {"qwen", false, `{"summary":"<·|im_end|>"}`, `{"summary":"<|im_end|>"}`, "assistant\n"},
		"nothing":              {"qwen", true, "<think>So.</think>", "", "assistant\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeModel{texts: []string{tc.text}}
			r := newRunner(t, tc.format, fake, echo("search"))
			if r.Session = "s"; tc.free {
				r.Model = freeModel{fake}
			}
			r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "summary", Action: stopping.Halt}}
			r.Choice = runner.Choice{Mode: runner.Required}
			got, usage, err := r.Ask(t.Context(), "Read <|im_end|> this.", json.RawMessage(`{"type":"object"}`))
			if err != nil || got != tc.want || !usage.Prompt.Known || usage.Prompt.N != 100 {
				t.Errorf("%q, %+v, %v", got, usage, err)
			}
			req := fake.requests[0]
			prompt := text(req.Prompt)
			if !strings.HasSuffix(prompt, tc.prompt) || strings.Contains(prompt, "Looks things up.") {
				t.Errorf("prompt %q", prompt)
			}
			if req.Session == "s" || (len(req.Schema) > 0) == tc.free {
				t.Errorf("session %q, schema %s", req.Session, req.Schema)
			}
			if tc.format == "qwen" && strings.Contains(prompt, "Read <|im_end|> this") {
				t.Errorf("the page writes structure: %q", prompt)
			}
		})
	}
}

func TestAskErrors(t *testing.T) {
	fault := &models.UnreachableError{URL: "http://127.0.0.1:1"}
	r := newRunner(t, "qwen", &fakeModel{err: fault})
	if _, _, err := r.Ask(t.Context(), "p", json.RawMessage(`{"type":"object"}`)); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	r.Context = 100
	r.CountTokens = func(s string) int { return len(s) }
	var limit *runner.LimitError
	if _, _, err := r.Ask(t.Context(), strings.Repeat("long ", 100), nil); !errors.As(err, &limit) {
		t.Errorf("%v", err)
	}
	if _, _, err := r.Ask(t.Context(), " ", nil); !errors.Is(err, runner.ErrNoQuestion) {
		t.Errorf("%v", err)
	}
}
