package runner_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// turnText is a turn of a model at its worst: calls that are good, bad and cut,
// tags and labels anywhere, text of any script, and all of it cut at random.
func turnText(rng *rand.Rand) string {
	pieces := []string{
		qwenCall, qwqCall, reactCall, qwenAnswer, qwqAnswer, reactDone, "\n", " ", "word ", "月は遠い。", "🌕", "é", "{", "}", "\"", "\\",
		"<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "</tool_response>", "<|im_end|>", "<|im_start|>", "<tool_",
		"\nAction:", " search", "\nAction Input:", " {\"query\": \"q\"}", "\nObservation:", "\nThought:", "\nFinal Answer:", "\nQuestion:",
		`<tool_call>{"name": "nothing", "arguments": {}}</tool_call>`, `<tool_call>{"name": "search"}</tool_call>`,
		`{"name": "search", "arguments": {"query": "` + strings.Repeat("x", 30) + `"}}`, "\xff", "\x00",
	}
	var b strings.Builder
	for range rng.IntN(9) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	s := b.String()
	if rng.IntN(3) == 0 {
		s = s[:rng.IntN(len(s)+1)]
	}
	return s
}

// chunked cuts a text anywhere, also inside characters, with ids or without.
func chunked(rng *rand.Rand, s string) []models.Chunk {
	ids := rng.IntN(2) == 0
	var out []models.Chunk
	for s != "" {
		n := min(len(s), 1+rng.IntN(9))
		c := models.Chunk{Text: s[:n]}
		if ids && rng.IntN(9) > 0 {
			c.Tokens = []int{rng.IntN(1000)}
		}
		if rng.IntN(9) == 0 {
			out = append(out, models.Chunk{Tokens: c.Tokens})
		}
		out, s = append(out, c), s[n:]
	}
	switch rng.IntN(12) {
	case 0: // the stream is cut
	case 1:
		out = append(out, end(models.FinishContext))
	case 2, 3:
		out = append(out, end(models.FinishLength))
	default:
		out = append(out, end(models.FinishStop))
	}
	return out
}

func TestRandomModels(t *testing.T) {
	for _, name := range []string{"qwen", "qwq", "react"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, set := format(t, name), searchSet(t)
			var ledger *runner.Ledger
			for seed := range uint64(800) {
				rng := rand.New(rand.NewPCG(seed, 7))
				m := &rawModel{}
				for range 12 {
					m.turns = append(m.turns, chunked(rng, turnText(rng)))
				}
				r := &runner.Runner{Model: m, Format: f, Tools: set, SingleCall: rng.IntN(3) == 0}
				r.Limits = runner.Limits{Turns: 1 + rng.IntN(6), Problems: rng.IntN(4)}
				if rng.IntN(3) == 0 {
					r.Limits.Tokens = 600 + rng.IntN(6000)
				}
				if rng.IntN(4) == 0 {
					r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "word", Action: []stopping.Action{
						stopping.Halt, stopping.Call, stopping.Finish, stopping.Notify}[rng.IntN(4)]}}
				}
				task := runner.Task{Question: "q"}
				if rng.IntN(4) == 0 {
					task.Ledger = ledger
				}
				ledger = randomRun(t, fmt.Sprint(name, " ", seed), r, m, task)
				if t.Failed() {
					return
				}
				if ledger.Tokens() > 20000 {
					ledger = nil
				}
			}
		})
	}
}

func searchSet(t *testing.T) *tools.Set {
	t.Helper()
	set, err := tools.NewSet([]tools.Tool{echo("search")}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// randomRun makes a run and checks what is true of every run.
func randomRun(t *testing.T, name string, r *runner.Runner, m *rawModel, task runner.Task) *runner.Ledger {
	t.Helper()
	before := ""
	if task.Ledger != nil {
		before = task.Ledger.Text()
	}
	var events []runner.Event
	errs := 0
	for ev, err := range r.Run(t.Context(), task) {
		if err != nil {
			errs++
			continue
		}
		if errs > 0 {
			t.Errorf("%s: an event after the error", name)
		}
		events = append(events, ev)
	}
	end, ok := events[len(events)-1].(runner.Ended)
	if !ok || len(of[runner.Ended](events)) != 1 || errs > 1 || (end.Error != "") != (errs == 1) {
		t.Errorf("%s: %d errors, %q, %s", name, errs, end.Error, kinds(events))
	}
	if max := r.Limits.Turns + 1; end.Turns > max || len(m.requests) != end.Requests || end.Requests > 2*end.Turns {
		t.Errorf("%s: %d turns, %d requests, at most %d", name, end.Turns, len(m.requests), max)
	}
	for i, req := range m.requests {
		p := text(req.Prompt)
		if i > 0 && !strings.HasPrefix(p, text(m.requests[i-1].Prompt)) || !strings.HasPrefix(p, before) || !strings.HasPrefix(end.Ledger.Text(), p) {
			t.Errorf("%s: prompt %d is no prefix", name, i)
		}
	}
	texts, kept := map[int]string{}, ""
	for _, ev := range of[runner.Text](events) {
		texts[ev.Turn] += ev.Text
		kept += ev.Text
	}
	for _, st := range of[runner.Stopped](events) {
		if len(texts[st.Turn]) != st.KeepEnd || st.Criterion != "" && !(st.KeepEnd <= st.MatchEnd && st.MatchStart <= st.MatchEnd) {
			t.Errorf("%s: %d bytes shown, stopped %+v", name, len(texts[st.Turn]), st)
		}
	}
	if !strings.HasSuffix(modelText(end.Ledger), kept) {
		t.Errorf("%s: shown %q, kept %q", name, kept, modelText(end.Ledger))
	}
	if len(of[runner.Called](events)) != end.Calls || (end.Termination == runner.TermAnswered) != (len(of[runner.Answered](events)) == 1 && !of[runner.Answered](events)[0].Forced) {
		t.Errorf("%s: %d calls, ended %s: %s", name, end.Calls, end.Termination, kinds(events))
	}
	if task.Ledger != nil && task.Ledger.Text() != before {
		t.Errorf("%s: the ledger that is continued has changed", name)
	}
	return end.Ledger
}

func modelText(l *runner.Ledger) string {
	var b strings.Builder
	for _, s := range l.Segments() {
		if s.Source == template.FromModel {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// One Runner answers many questions at once.
func TestRunsAtOnce(t *testing.T) {
	r := newRunner(t, "qwen", concurrentModel{}, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Regex: `(?<tail> STOP)$`, StripGroup: "tail"}}
	_, first, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			task := runner.Task{Question: fmt.Sprint("question ", i)}
			if i%2 == 0 {
				task.Ledger = first.Ledger
			}
			_, out, err := collect(t.Context(), r, task)
			if err != nil || out.Termination != runner.TermAnswered || !strings.Contains(out.Ledger.Text(), task.Question+"<") {
				t.Errorf("run %d ended %s with %v", i, out.Termination, err)
			}
		})
	}
	wg.Wait()
}
