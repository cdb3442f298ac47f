package ollamatest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"stopgap/internal/automaton"
)

// A client that leaves the stream when the call is complete stops a model that
// would never stop by itself, and Slots tells how many tokens that took.
func TestHaltReachesTheServer(t *testing.T) {
	const limit = 7000 // which takes longer than a busy machine needs to hear of the halt
	s := Start(t)
	call := runs[0].script.Turns[0]
	call.Text += "\n<tool_response>\nI invent what the tool said.\n</tool_response>\nAnd I go on."
	call.Finish = automaton.FinishLength
	_, path := write(t, automaton.Script{Turns: []automaton.Turn{call}}, automaton.Options{FeedForward: 8192})
	s.Create(t, "endless", path, nil)

	if _, last := generate(t, s, "endless", opening, map[string]any{"num_ctx": 8192, "num_predict": 100}); last.EvalCount != 100 || last.DoneReason != "length" {
		t.Errorf("not halted: %d tokens, reason %q; want 100, length", last.EvalCount, last.DoneReason)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	no, text, read := false, "", 0
	halt := errors.New("halt")
	err := s.Client.Generate(ctx, &api.GenerateRequest{
		Model: "endless", Prompt: opening, Raw: true,
		Think: &api.ThinkValue{Value: false}, Truncate: &no, Shift: &no,
		Options: map[string]any{"num_ctx": 8192, "num_predict": limit},
	}, func(r api.GenerateResponse) error {
		text += r.Response
		read++
		if strings.HasSuffix(text, "</tool_call>") {
			return halt
		}
		return nil
	})
	if !errors.Is(err, halt) {
		t.Fatalf("the call did not come: %v after %q", err, text)
	}
	// The next request waits until the model is free, and tells what is left.
	generate(t, s, "endless", "x", map[string]any{"num_ctx": 8192})
	slots := s.Slots()
	if len(slots) < 3 {
		t.Fatalf("the log tells of %d requests, want 3", len(slots))
	}
	halted, next := slots[len(slots)-2], slots[len(slots)-1]
	generated := next.Cached - halted.Prompt
	if generated < read || generated >= limit {
		t.Errorf("the server kept %d tokens of a generation that was halted after %d, with a limit of %d", generated, read, limit)
	}
	t.Logf("%d tokens read, %d kept by the server", read, generated)
}
