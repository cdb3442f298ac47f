package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A fakeModel writes one text a request and keeps what it was asked. It counts
// the streams that are open, so that a test can see one that was left behind.
type fakeModel struct {
	texts    []string
	finish   models.Finish // of the last text; "" means stop
	err      error         // yielded after the texts are used up, or after failAt bytes
	failAt   int
	cut      int           // bytes a chunk; default 3
	ids      bool          // chunks carry token ids
	pause    time.Duration // between chunks
	requests []models.Request
	open     atomic.Int32
	served   int // chunks handed out
}

func (f *fakeModel) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		f.open.Add(1)
		defer f.open.Add(-1)
		f.requests = append(f.requests, req)
		n := len(f.requests)
		if n > len(f.texts) {
			err := f.err
			if err == nil {
				err = fmt.Errorf("request %d, but only %d texts", n, len(f.texts))
			}
			yield(models.Chunk{}, err)
			return
		}
		text, size := f.texts[n-1], max(f.cut, 1)
		if f.cut == 0 {
			size = 3
		}
		if !yield(models.Chunk{Progress: &models.Progress{Phase: models.Reading}}, nil) {
			return
		}
		for i := 0; i < len(text); i += size {
			if ctx.Err() != nil {
				yield(models.Chunk{}, ctx.Err())
				return
			}
			if f.failAt > 0 && i >= f.failAt {
				yield(models.Chunk{}, f.err)
				return
			}
			c := models.Chunk{Text: text[i:min(i+size, len(text))]}
			if f.ids {
				c.Tokens = []int{1000*n + i}
			}
			f.served++
			if !yield(c, nil) {
				return
			}
			if f.pause > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(f.pause):
				}
			}
		}
		finish := models.FinishStop
		if f.finish != "" && n == len(f.texts) {
			finish = f.finish
		}
		yield(models.Chunk{Final: &models.Final{Finish: finish, Usage: models.Usage{
			Prompt: models.Known(100 * n), Generated: models.Known(len(text) / size),
		}}}, nil)
	}
}

// A fakeTool answers with a function and counts its runs.
type fakeTool struct {
	name string
	run  func(ctx context.Context, args json.RawMessage) (string, error)
	runs atomic.Int32
}

func (f *fakeTool) Spec() tools.Spec {
	return tools.Spec{
		Name: f.name, Description: "Looks things up.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`),
	}
}

func (f *fakeTool) Run(ctx context.Context, args json.RawMessage) (string, error) {
	f.runs.Add(1)
	return f.run(ctx, args)
}

func echo(name string) *fakeTool {
	return &fakeTool{name: name, run: func(_ context.Context, args json.RawMessage) (string, error) {
		return "result of " + string(args), nil
	}}
}

var loaded sync.Map // formats are immutable

func format(t testing.TB, name string) *template.Format {
	t.Helper()
	if f, ok := loaded.Load(name); ok {
		return f.(*template.Format)
	}
	f, err := template.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Store(name, f)
	return f
}

func newRunner(t testing.TB, f string, m models.Model, ts ...tools.Tool) *runner.Runner {
	t.Helper()
	set, err := tools.NewSet(ts, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &runner.Runner{Model: m, Format: format(t, f), Tools: set, Name: "fake"}
}

// collect runs a task to its end.
func collect(ctx context.Context, r *runner.Runner, task runner.Task) (events []runner.Event, out runner.Outcome, err error) {
	for ev, e := range r.Run(ctx, task) {
		if e != nil {
			return events, out, e
		}
		events = append(events, ev)
		if end, ok := ev.(runner.Ended); ok {
			out = end.Outcome
		}
	}
	return events, out, nil
}

func of[E runner.Event](events []runner.Event) []E {
	var out []E
	for _, ev := range events {
		if e, ok := ev.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

func text(segments []models.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}
