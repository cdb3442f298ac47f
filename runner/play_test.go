package runner_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"stopgap/models"
	"stopgap/runner"
)

// A playModel writes what a function says, three bytes a chunk, and keeps what
// it was asked. It counts the streams that are open.
type playModel struct {
	play     func(n int, req models.Request) reply
	requests []models.Request
	open     atomic.Int32
}

// A reply is what is written in one request, and how that ends: without a
// finish and an error the stream just stops.
type reply struct {
	text   string
	finish models.Finish
	err    error
}

func wrote(text string) reply { return reply{text: text, finish: models.FinishStop} }

func (m *playModel) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		m.open.Add(1)
		defer m.open.Add(-1)
		m.requests = append(m.requests, req)
		r := m.play(len(m.requests), req)
		for i := 0; i < len(r.text); i += 3 {
			if ctx.Err() != nil {
				yield(models.Chunk{}, ctx.Err())
				return
			}
			if !yield(models.Chunk{Text: r.text[i:min(i+3, len(r.text))]}, nil) {
				return
			}
		}
		if r.err != nil {
			yield(models.Chunk{}, r.err)
		} else if r.finish != "" {
			yield(end(r.finish), nil)
		}
	}
}

// script plays texts, then an answer.
func script(texts ...string) *playModel {
	return &playModel{play: func(n int, req models.Request) reply {
		switch {
		case n <= len(texts):
			return wrote(texts[n-1])
		case len(req.Schema) > 0:
			return wrote("{}")
		}
		return wrote("It is 7.")
	}}
}

// requested are the prompts and the schemas of the requests, and what each may
// write at most.
func (m *playModel) requested() (prompts, schemas []string, tokens []int) {
	for _, r := range m.requests {
		prompts, schemas, tokens = append(prompts, text(r.Prompt)), append(schemas, string(r.Schema)), append(tokens, r.MaxTokens)
	}
	return prompts, schemas, tokens
}

// growing checks that every prompt begins with the one before.
func (m *playModel) growing(t *testing.T) {
	t.Helper()
	prompts, _, _ := m.requested()
	for i := range prompts {
		if i > 0 && !strings.HasPrefix(prompts[i], prompts[i-1]) {
			t.Errorf("prompt %d does not begin with the one before", i)
		}
	}
}

func constrained(t *testing.T, f string, m models.Model) *runner.Runner {
	t.Helper()
	r := newRunner(t, f, m, echo("search"), readTool{echo("read")})
	r.Constrain = true
	return r
}
