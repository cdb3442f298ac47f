package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"stopgap/models"
	"stopgap/runner"
)

// A prefilled is a model that keeps prefills apart from the requests of turns.
type prefilled struct {
	*spellingModel
	mu   sync.Mutex
	seen [][]models.Segment
	came chan struct{}
	err  error
}

func (m *prefilled) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	if !req.Prefill {
		return m.spellingModel.Stream(ctx, req)
	}
	return func(yield func(models.Chunk, error) bool) {
		m.mu.Lock()
		m.seen = append(m.seen, req.Prompt)
		m.mu.Unlock()
		if m.err != nil {
			yield(models.Chunk{}, m.err)
		} else {
			yield(models.Chunk{Usage: &models.Usage{Evaluated: models.Known(7)}}, nil)
		}
		m.came <- struct{}{}
		if m.err == nil {
			<-ctx.Done() // a server that is slower than the tool
		}
	}
}

// While a tool runs the server reads the beginning of the next prompt, and is
// left when the tool is done.
func TestPrefill(t *testing.T) {
	for _, fault := range []error{nil, errors.New("refused")} {
		for _, asText := range []bool{false, true} {
			m := &prefilled{spellingModel: &spellingModel{told: control, known: true, exact: true, asText: asText, special: control}, came: make(chan struct{}, 1), err: fault}
			m.texts = []string{"<think>\nlook\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"q\"}}\n</tool_call>", "<think>\nseen\n</think>\n\nDone."}
			tool := &fakeTool{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
				<-m.came // the tool is slower than what is told here
				return "found", nil
			}}
			r := newRunner(t, "qwen", m, tool)
			r.Prefill = true
			_, out, err := collect(t.Context(), r, runner.Task{Question: "where"})
			if err != nil || out.Answer != "Done." || len(m.seen) != 1 || out.Requests != 2 {
				t.Fatalf("%v, %v: %q, %v, %d prefills, %d requests", fault, asText, out.Answer, err, len(m.seen), out.Requests)
			}
			read, next := m.ids(m.seen[0]), m.ids(m.prompts[1])
			if !slices.Equal(next[:len(read)], read) || !strings.HasSuffix(text(m.seen[0]), "<tool_response>\n") {
				t.Errorf("what was read is no beginning of the next prompt: %q", text(m.seen[0]))
			}
			if want := map[bool]int{true: 7, false: 0}[fault == nil]; out.Prefilled != want {
				t.Errorf("%d tokens prefilled, want %d", out.Prefilled, want)
			}
		}
	}
}

// Nothing is read ahead where nobody asked for it.
func TestNoPrefill(t *testing.T) {
	m := &prefilled{spellingModel: &spellingModel{told: control, known: true}, came: make(chan struct{}, 1)}
	spelling(t, m.spellingModel, "where", "found")
	if len(m.seen) > 0 {
		t.Error("a prefill was sent")
	}
}
