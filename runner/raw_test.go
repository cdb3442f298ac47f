package runner_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
)

// A rawModel yields exactly these chunks, one list a request.
type rawModel struct {
	turns    [][]models.Chunk
	requests []models.Request
}

func (m *rawModel) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		m.requests = append(m.requests, req)
		if len(m.requests) > len(m.turns) {
			yield(models.Chunk{}, &models.ServerError{Message: "no more turns"})
			return
		}
		for _, c := range m.turns[len(m.requests)-1] {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// A concurrentModel calls where the last turn is a question, and answers then.
type concurrentModel struct{}

func (concurrentModel) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		p := text(req.Prompt)
		reply := qwenCall
		if strings.LastIndex(p, "</tool_response>") > strings.LastIndex(p, "question") {
			reply = qwenAnswer + " STOP"
		}
		for _, c := range said(reply, models.FinishStop) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func end(f models.Finish) models.Chunk {
	return models.Chunk{Final: &models.Final{Finish: f, Usage: models.Usage{Generated: models.Known(7)}}}
}

// said is a turn of the model in one chunk.
func said(text string, f models.Finish) []models.Chunk {
	return []models.Chunk{{Text: text}, end(f)}
}

// generated joins what the model wrote, by the events and by the ledger.
func generated(events []runner.Event, l *runner.Ledger) (shown, kept string) {
	var a, b strings.Builder
	for _, ev := range of[runner.Text](events) {
		a.WriteString(ev.Text)
	}
	for _, s := range l.Segments() {
		if s.Turn > 0 {
			b.WriteString(s.Text)
		}
	}
	return a.String(), b.String()
}

// kinds lists the events' names, without texts.
func kinds(events []runner.Event) string {
	var out []string
	for _, ev := range events {
		if k := ev.Kind(); k != "text" && k != "waiting" {
			out = append(out, k)
		}
	}
	return strings.Join(out, " ")
}

// trial runs a task to its end, errors included.
func trial(t *testing.T, r *runner.Runner, task runner.Task) (events []runner.Event, out runner.Outcome, fault error) {
	t.Helper()
	if task.Question == "" {
		task.Question = "q"
	}
	events, out, fault = collect(t.Context(), r, task)
	if n := len(of[runner.Ended](events)); n != 1 {
		t.Fatalf("%d endings: %s", n, kinds(events))
	}
	if shown, kept := generated(events, out.Ledger); task.Ledger == nil && shown != kept {
		t.Errorf("shown %q, kept %q", shown, kept)
	}
	return events, out, fault
}
