package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// Where the length limit falls decides what happens: a call that is cut is gone
// on with once, only what is whole is executed, only an answer is an answer.
func TestLengthLimitEverywhere(t *testing.T) {
	const once, cut = "started stopped called returned stopped answered ended", "started stopped returned stopped answered ended"
	half, halfQwQ := strings.Index(qwenCall, "arg"), strings.Index(qwqCall, "_input")
	opened := strings.Index(qwenCall, "<tool_call>") + len("<tool_call>")
	nudged := "started stopped nudged stopped answered ended"
	for name, tc := range map[string]struct {
		format, text string
		rest         string // what the model writes when a call is gone on with
		finish       models.Finish
		want         string // kinds of the events
		term         runner.Termination
		runs         int32
	}{
		"in a thought":           {"qwen", "<think>\nand so", "", models.FinishLength, nudged, runner.TermAnsweredForced, 0},
		"in a call":              {"qwen", qwenCall[:half], qwenCall[half:], models.FinishLength, once, runner.TermAnswered, 1},
		"in a call, twice":       {"qwen", qwenCall[:half], qwenCall[half : half+5], models.FinishLength, cut, runner.TermAnswered, 0},
		"in the opening tag":     {"qwen", qwenCall[:opened], qwenCall[opened:], models.FinishLength, once, runner.TermAnswered, 1},
		"in the closing tag":     {"qwen", qwenCall[:len(qwenCall)-3], "", models.FinishLength, once, runner.TermAnswered, 1},
		"in the second call":     {"qwen", qwenCall + "\n" + qwenCall[:half], qwenCall[half:], models.FinishLength, "started stopped called called returned returned stopped answered ended", runner.TermAnswered, 2},
		"in an answer":           {"qwen", "The moon is", "", models.FinishLength, "started stopped answered ended", runner.TermAnswered, 0},
		"after a call":           {"qwen", qwenCall, "", models.FinishLength, once, runner.TermAnswered, 1},
		"nothing":                {"qwen", "", "", models.FinishLength, nudged, runner.TermAnsweredForced, 0},
		"context in a thought":   {"qwen", "<think>\nand so", "", models.FinishContext, "started stopped ended", runner.TermTokenLimit, 0},
		"context in a call":      {"qwen", qwenCall[:half], "", models.FinishContext, "started stopped ended", runner.TermTokenLimit, 0},
		"context after a call":   {"qwen", qwenCall, "", models.FinishContext, "started stopped ended", runner.TermTokenLimit, 0},
		"context in an answer":   {"qwen", "The moon is", "", models.FinishContext, "started stopped answered ended", runner.TermAnswered, 0},
		"in a thought of qwq":    {"qwq", "and so", "", models.FinishLength, nudged, runner.TermAnsweredForced, 0},
		"in a call of qwq":       {"qwq", qwqCall[:halfQwQ], qwqCall[halfQwQ:], models.FinishLength, once, runner.TermAnswered, 1},
		"in a tag of qwq":        {"qwq", qwqCall[:len(qwqCall)-9], "", models.FinishLength, once, runner.TermAnswered, 1},
		"in an action":           {"react", " Look.\nAction: sea", "rch\nAction Input: {\"query\": \"m\"}\nObservation:", models.FinishLength, once, runner.TermAnswered, 1},
		"in an input":            {"react", " Look.\nAction: search\nAction Input: {\"que", "ry\": \"m\"}", models.FinishLength, once, runner.TermAnswered, 1},
		"in an input of words":   {"react", " Look.\nAction: search\nAction Input: how far is", " the moon\nObservation:", models.FinishLength, once, runner.TermAnswered, 1},
		"in words, for good":     {"react", " Look.\nAction: search\nAction Input: how far is", " the", models.FinishLength, cut, runner.TermAnswered, 0},
		"in an input, for good":  {"react", " Look.\nAction: search\nAction Input: {\"que", "ry", models.FinishLength, cut, runner.TermAnswered, 0},
		"after an input":         {"react", " Look.\nAction: search\nAction Input: {\"query\": \"m\"}", "", models.FinishLength, once, runner.TermAnswered, 1},
		"after an answer marker": {"react", " I know.\nFinal Answer:", "", models.FinishLength, nudged, runner.TermAnsweredForced, 0},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"qwen": qwenAnswer, "qwq": qwqAnswer, "react": reactDone}
			m := &rawModel{turns: [][]models.Chunk{said(tc.text, tc.finish)}}
			if tc.rest != "" {
				m.turns = append(m.turns, said(tc.rest, map[bool]models.Finish{true: models.FinishLength, false: models.FinishStop}[tc.runs == 0]))
			}
			m.turns = append(m.turns, said(answers[tc.format], models.FinishStop))
			tool := echo("search")
			events, out, err := trial(t, newRunner(t, tc.format, m, tool), runner.Task{})
			if err != nil {
				t.Fatal(err)
			}
			if kinds(events) != tc.want || out.Termination != tc.term || tool.runs.Load() != tc.runs {
				t.Errorf("%s, ended %s, the tool ran %d times", kinds(events), out.Termination, tool.runs.Load())
			}
			if first := of[runner.Stopped](events)[0]; first.Requests != 1+min(1, len(tc.rest)) || out.Requests != len(m.requests) {
				t.Errorf("the first turn took %d requests, the run %d of %d", first.Requests, out.Requests, len(m.requests))
			}
			for _, a := range of[runner.Answered](events) {
				if a.Truncated != (out.Turns == 1) {
					t.Errorf("answered %+v", a)
				}
			}
		})
	}
}

// What a forced generation may be: an answer, or the end for the reason that
// it was forced for.
func TestForcedGenerations(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		finish models.Finish
		want   runner.Termination
		answer string
	}{
		"an answer":              {qwenAnswer, models.FinishStop, runner.TermAnsweredForced, "The moon is far [a.md]."},
		"calls again":            {qwenCall, models.FinishStop, runner.TermTurnLimit, ""},
		"an answer and a call":   {"Perhaps.\n" + qwenCall, models.FinishStop, runner.TermTurnLimit, ""},
		"thinks to the limit":    {"<think>\nhm", models.FinishLength, runner.TermTurnLimit, ""},
		"empty":                  {"", models.FinishStop, runner.TermTurnLimit, ""},
		"an answer cut":          {"The moon", models.FinishLength, runner.TermAnsweredForced, "The moon"},
		"an answer that runs on": {"The moon.\n<tool_response>\nx", models.FinishStop, runner.TermAnsweredForced, "The moon."},
	} {
		m := &rawModel{turns: [][]models.Chunk{said(qwenCall, models.FinishStop), said(tc.text, tc.finish)}}
		r := newRunner(t, "qwen", m, echo("search"))
		r.Limits.Turns = 1
		_, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Termination != tc.want || out.Answer != tc.answer || out.Calls != 1 || out.Turns != 2 {
			t.Errorf("%s: ended %s with %v, %d calls, answer %q", name, out.Termination, err, out.Calls, out.Answer)
		}
	}
}

// At the last turn there is one note, the one that the model gets.
func TestNotesAreInThePrompt(t *testing.T) {
	r := newRunner(t, "qwen", &fakeModel{texts: []string{"", qwenAnswer}})
	r.Limits.Turns = 1
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Termination != runner.TermAnsweredForced {
		t.Fatalf("ended %s with %v", out.Termination, err)
	}
	for _, n := range of[runner.Nudged](events) {
		if !strings.Contains(out.Ledger.Text(), n.Note) {
			t.Errorf("the model was never told %q", n.Note)
		}
	}
}

// The budget of problems counts turns, also where good ones stand between.
func TestProblemsBudget(t *testing.T) {
	bad, other := "<tool_call>{]</tool_call>", func(i int) string { return strings.Replace(qwenCall, "moon", fmt.Sprint("moon ", i), 1) }
	texts := []string{strings.Repeat(bad, 50)}
	for i := range 5 {
		texts = append(texts, other(i), bad)
	}
	m := &fakeModel{texts: texts, cut: 100}
	events, out, err := trial(t, newRunner(t, "qwen", m, echo("search")), runner.Task{})
	if err != nil || out.Termination != runner.TermFormatError || out.Problems != 4 || out.Calls != 3 {
		t.Errorf("ended %s with %v, %d problems, %d calls", out.Termination, err, out.Problems, out.Calls)
	}
	first := 0
	for _, ret := range of[runner.Returned](events) {
		if ret.Turn == 1 {
			first++
		}
	}
	if first != 1 {
		t.Errorf("the same problem 50 times in a row gets %d answers", first)
	}
}

func words(text string) int { return len(strings.Fields(text)) }

// A prompt that is too long from the beginning is refused before any request,
// with the numbers.
func TestPromptOverTheLimit(t *testing.T) {
	long := strings.Repeat("word ", 500)
	for name, set := range map[string]func(*runner.Runner){
		"limit":                func(r *runner.Runner) { r.Limits.Tokens = 400 },
		"limit, counted":       func(r *runner.Runner) { r.Limits.Tokens, r.CountTokens = 400, words },
		"context, counted":     func(r *runner.Runner) { r.Context, r.CountTokens = 400, words },
		"limit under contexts": func(r *runner.Runner) { r.Limits.Tokens, r.Context = 400, 9000 },
	} {
		m := &fakeModel{texts: []string{qwenAnswer}}
		r := newRunner(t, "qwen", m)
		set(r)
		events, out, err := trial(t, r, runner.Task{Question: long})
		var limit *runner.LimitError
		if !errors.As(err, &limit) || limit.Limit != 400 || limit.Tokens < 500 || limit.Estimated != (r.CountTokens == nil) {
			t.Errorf("%s: error %v", name, err)
		}
		if len(m.requests) != 0 || out.Termination != runner.TermTokenLimit || kinds(events) != "started ended" {
			t.Errorf("%s: %d requests, ended %s, %s", name, len(m.requests), out.Termination, kinds(events))
		}
	}
	// An estimate says nothing for certain about the server's context.
	r := newRunner(t, "qwen", &fakeModel{texts: []string{qwenAnswer}})
	r.Context = 400
	if _, out, err := trial(t, r, runner.Task{Question: long}); err != nil || out.Termination != runner.TermAnswered {
		t.Errorf("ended %s with %v", out.Termination, err)
	}
}

// No request asks for more than fits, nothing grows over the limit, and there
// is always room for the answer that is asked for at the end.
func TestRoom(t *testing.T) {
	evil := strings.Repeat("<|im_end|>", 4000)
	for _, limit := range []int{1600, 2500, 5000, 12000, 60000} {
		tool := &fakeTool{name: "search", run: func(_ context.Context, args json.RawMessage) (string, error) {
			if strings.Contains(string(args), "short") {
				return "short", nil
			}
			return evil, nil
		}}
		var texts []string
		for i := range 25 {
			texts = append(texts, strings.Replace(qwenCall, "moon", fmt.Sprint("moon ", i), 1)+
				strings.Replace(qwenCall, "moon", fmt.Sprint("short ", i), 1)+strings.Replace(qwenCall, "moon", fmt.Sprint("sun ", i), 1))
		}
		m := &fakeModel{texts: texts, cut: 40}
		r := newRunner(t, "qwen", m, tool)
		r.Limits.Tokens = limit
		r.CountTokens = tools.EstimateTokens // exact, for this model
		events, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Termination != runner.TermTokenLimit {
			t.Fatalf("limit %d: ended %s with %v", limit, out.Termination, err)
		}
		for i, req := range m.requests {
			n := 0
			for _, s := range req.Prompt {
				n += tools.EstimateTokens(s.Text)
			}
			if n+req.MaxTokens > limit || req.MaxTokens < 1 {
				t.Errorf("limit %d: request %d asks for %d after %d", limit, i+1, req.MaxTokens, n)
			}
			if i == len(m.requests)-1 && req.MaxTokens < 300 {
				t.Errorf("limit %d: %d tokens are left for the answer", limit, req.MaxTokens)
			}
		}
		if out.Ledger.Tokens() > limit {
			t.Errorf("limit %d: the ledger has %d", limit, out.Ledger.Tokens())
		}
		for _, ret := range of[runner.Returned](events) {
			if limit >= 5000 && ret.Content != "short" && ret.Turn == 1 && ret.Cut == 0 {
				t.Errorf("limit %d: a long result is whole", limit)
			}
		}
	}
}

// Ids count as they are; only text without them is estimated.
func TestTokensOfIds(t *testing.T) {
	m := &rawModel{turns: [][]models.Chunk{{{Text: "The moon is very far away.", Tokens: []int{1, 2}}, end(models.FinishStop)}}}
	r := newRunner(t, "qwen", m)
	_, out, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	want := 2
	for _, s := range m.requests[0].Prompt {
		want += tools.EstimateTokens(s.Text)
	}
	if out.Ledger.Tokens() != want {
		t.Errorf("%d tokens, want %d", out.Ledger.Tokens(), want)
	}
}

func TestTurnTokens(t *testing.T) {
	m := &fakeModel{texts: []string{qwenAnswer}}
	r := newRunner(t, "qwen", m)
	r.Limits.TurnTokens = 77
	if _, _, err := trial(t, r, runner.Task{}); err != nil || m.requests[0].MaxTokens != 77 {
		t.Errorf("asked for %d tokens, %v", m.requests[0].MaxTokens, err)
	}
}
