package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// thinking is a stream of a word a chunk.
func thinking(text string) []models.Chunk {
	var out []models.Chunk
	for _, w := range strings.SplitAfter(text, " ") {
		out = append(out, models.Chunk{Text: w})
	}
	return append(out, end(models.FinishStop))
}

// The thinking part that has had its tokens is closed, and the model goes on in
// the same turn, once.
func TestThinkLimit(t *testing.T) {
	long := "a b c d e f g h i j"
	for name, tc := range map[string]struct {
		format   string
		turns    [][]models.Chunk
		limit    int
		prompts  []string // the ends of the requests' prompts, after the first
		answer   string
		requests int // of the first turn
	}{
		"none":         {"qwen", [][]models.Chunk{thinking("<think>\n" + long + "</think>Six.")}, 0, nil, "Six.", 1},
		"not reached":  {"qwen", [][]models.Chunk{thinking("<think>\n" + long + " </think>Six.")}, 12, nil, "Six.", 1},
		"reached":      {"qwen", [][]models.Chunk{thinking("<think>\n" + long), thinking("Six.")}, 4, []string{"<think>\na b c d \n</think>\n\n"}, "Six.", 2},
		"opened":       {"qwq", [][]models.Chunk{thinking(long), thinking("Six.")}, 3, []string{"<think>\na b c \n</think>\n\n"}, "Six.", 2},
		"after a line": {"qwq", [][]models.Chunk{{{Text: "a"}, {Text: "\n"}, {Text: "b"}}, thinking("Six.")}, 2, []string{"<think>\na\n</think>\n\n"}, "Six.", 2},
		"other tags":   {"mistral-v13", [][]models.Chunk{thinking("[THINK]" + long), thinking("Six.")}, 2, []string{"[THINK]a b \n[/THINK]\n\n"}, "Six.", 2},
		"again":        {"qwen", [][]models.Chunk{thinking("<think>\n" + long), thinking("<think> and " + long + " </think>Six.")}, 4, []string{"<think>\na b c d \n</think>\n\n"}, "Six.", 2},
		"a tag begins": {"qwen", [][]models.Chunk{{{Text: "<think>"}, {Text: "a"}, {Text: "</th"}, {Text: "ink>"}, {Text: "Six."}, end(models.FinishStop)}}, 3, nil, "Six.", 1},
		"no tag after all": {"qwen", [][]models.Chunk{{{Text: "<think>"}, {Text: "a"}, {Text: "</th"}, {Text: "at"}, {Text: " b"}}, thinking("Six.")}, 3,
			[]string{"<think>a</that\n</think>\n\n"}, "Six.", 2},
		"inside a character": {"qwen", [][]models.Chunk{{{Text: "<think>"}, {Text: "\xe6"}, {Text: "\x9c\x88"}, {Text: "b"}}, thinking("Six.")}, 2,
			[]string{"<think>月\n</think>\n\n"}, "Six.", 2},
	} {
		m := &rawModel{turns: tc.turns}
		r := newRunner(t, tc.format, m, echo("search"))
		r.Limits.Think = tc.limit
		events, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Answer != tc.answer || out.Turns != 1 || out.Requests != tc.requests {
			t.Errorf("%s: %v, answer %q, %d turns, %d requests", name, err, out.Answer, out.Turns, out.Requests)
			continue
		}
		for i, want := range tc.prompts {
			if got := text(m.requests[i+1].Prompt); !strings.HasSuffix(got, want) {
				t.Errorf("%s: prompt %d ends with %q, want %q", name, i+2, got[max(0, len(got)-60):], want)
			}
		}
		nudges := of[runner.Nudged](events)
		if len(nudges) != len(tc.prompts) {
			t.Errorf("%s: nudged %+v", name, nudges)
		}
		for _, n := range nudges {
			var put []string
			for _, s := range out.Ledger.Segments() {
				if s.Source == template.FromTemplate && s.Turn == 1 {
					put = append(put, s.Text)
				}
			}
			if n.Reason != runner.ThinkLimit || n.Turn != 1 || n.Forced || !slices.Equal(put, []string{n.Note}) {
				t.Errorf("%s: nudged %+v, put in %q", name, n, put)
			}
		}
	}
}

// The limit is for each turn, calls after a thought that was closed are made,
// and the sums are those of all requests.
func TestThinkLimitOfEachTurn(t *testing.T) {
	call := qwenCall[strings.Index(qwenCall, "<tool_call>"):]
	m := &rawModel{turns: [][]models.Chunk{thinking("<think> a b c d e"), thinking(call), thinking("<think> a b c d e"), thinking("Six.")}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Limits.Think = 3
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Answer != "Six." || out.Calls != 1 || out.Requests != 4 || out.Turns != 2 {
		t.Fatalf("%v, %+v", err, out)
	}
	st := of[runner.Stopped](events)
	if n := of[runner.Nudged](events); len(n) != 2 || n[0].Turn != 1 || n[1].Turn != 2 || st[0].Requests != 2 {
		t.Errorf("nudged %+v, stopped %+v", n, st)
	}
	if m.requests[1].MaxTokens != m.requests[0].MaxTokens-3 {
		t.Errorf("%d tokens, then %d", m.requests[0].MaxTokens, m.requests[1].MaxTokens)
	}
}

func TestThinkLimitMeansNothing(t *testing.T) {
	for _, name := range []string{"react", "llama3", "chat"} {
		m := &chatModel{}
		r := newRunner(t, name, m)
		r.Limits.Think = 10
		events, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
		var none *runner.ThinkError
		if !errors.As(err, &none) || none.Format != name || len(events) != 0 || len(m.requests) != 0 {
			t.Errorf("%s: error %v, %d events", name, err, len(events))
		}
	}
}

// The built-in model answers after a thought that was closed.
func TestThinkLimitOfTheBuiltinModel(t *testing.T) {
	model, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	search := &fakeTool{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
		return "Kesper Bridge. Kesper Bridge was designed by Ottla Brunec. [kesper-bridge.md] (score 3.10)", nil
	}}
	for _, limit := range []int{0, 1, 4} {
		r := newRunner(t, "qwq", model, search, echo("read"))
		r.Limits.Think, r.Limits.Turns, r.Limits.TurnTokens = limit, 2, 120
		events, out, err := trial(t, r, runner.Task{Question: "Who designed Kesper Bridge?"})
		if err != nil {
			t.Fatal(err)
		}
		closed := of[runner.Nudged](events)
		closed = slices.DeleteFunc(closed, func(n runner.Nudged) bool { return n.Reason != runner.ThinkLimit })
		if (len(closed) > 0) != (limit > 0) {
			t.Errorf("limit %d: closed %d times in %d turns", limit, len(closed), out.Turns)
		}
		if out.Ledger.Text() == "" || !strings.Contains(fmt.Sprint(out.Termination), "answered") {
			t.Errorf("limit %d: ended %s", limit, out.Termination)
		}
	}
}
