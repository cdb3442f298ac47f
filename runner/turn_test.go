package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
)

// TestSeveralConstrainedCalls: one ends a single-call turn, and a turn without
// end has sixteen.
func TestSeveralConstrainedCalls(t *testing.T) {
	for _, single := range []bool{false, true} {
		m := &playModel{play: func(n int, req models.Request) reply {
			switch {
			case strings.Contains(text(req.Prompt), "result of {"):
				return wrote("It is 7.")
			case len(req.Schema) > 0:
				return wrote(fmt.Sprintf(`{"query": "%d"}`, n))
			}
			return wrote("\n<tool_call>")
		}}
		r := newRunner(t, "qwen", m, echo("search"))
		r.Constrain, r.SingleCall = true, single
		_, out, err := trial(t, r, runner.Task{})
		if want := map[bool]int{true: 1, false: 16}[single]; err != nil || out.Calls != want || out.Requests != 2*want+1 {
			t.Errorf("single %v: %v, %d calls, %d requests", single, err, out.Calls, out.Requests)
		}
	}
}

// TestForcedTurnIsNotConstrained: a call that is not made need not be written.
func TestForcedTurnIsNotConstrained(t *testing.T) {
	m := script("<tool_call>", `{"query": "m"}`, "", "But <tool_call>\n{")
	r := newRunner(t, "qwen", m, echo("search"))
	r.Constrain, r.Limits.Turns = true, 1
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Termination != runner.TermTurnLimit || out.Calls != 1 || len(m.requests) != 4 {
		t.Errorf("%v, ended %s after %d calls and %d requests", err, out.Termination, out.Calls, len(m.requests))
	}
	if last := of[runner.Stopped](events)[1]; last.Criterion != "call opening" || !strings.HasSuffix(out.Ledger.Text(), "But <tool_call>") {
		t.Errorf("stopped %+v", last)
	}
}

// TestConstrainedCircles: the guard sees calls that were written under a schema.
func TestConstrainedCircles(t *testing.T) {
	m := &playModel{play: func(n int, req models.Request) reply {
		if len(req.Schema) > 0 {
			return wrote(`{"query": "m"}`)
		}
		return wrote("<tool_call>")
	}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Constrain, r.SingleCall = true, true
	if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Termination != runner.TermLoop || out.Calls != 6 {
		t.Errorf("%v, ended %s after %d calls", err, out.Termination, out.Calls)
	}
}

// TestAllowanceOfATurn: the requests of a turn share its tokens.
func TestAllowanceOfATurn(t *testing.T) {
	m := script("Look. <tool_call>", `"read"`, `{"id": "7"}`, "")
	r := constrained(t, "qwen", m)
	r.Limits.TurnTokens = 20
	_, out, err := trial(t, r, runner.Task{})
	if _, _, tokens := m.requested(); err != nil || out.Calls != 1 || !slices.Equal(tokens, []int{20, 14, 12, 8, 20}) {
		t.Errorf("%v, %d calls, tokens %v", err, out.Calls, tokens) // six chunks, two, four
	}

	// A call that the limit cuts is not made, whole arguments at the limit are.
	for finish, calls := range map[string]int{`{"id": `: 0, `{"id": "7"}`: 1, `{"id": "7"} `: 1, "12": 0} {
		m := script()
		m.play = func(n int, req models.Request) reply {
			switch n {
			case 1:
				return wrote("<tool_call>")
			case 2:
				return wrote(`"read"`)
			case 3:
				return reply{text: finish, finish: models.FinishLength}
			}
			return wrote("It is 7.")
		}
		r := constrained(t, "qwen", m)
		r.Limits.TurnTokens = 10
		_, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Calls != calls || out.Answer != "It is 7." || out.Problems != 1-calls || len(m.requests) != 4 {
			t.Errorf("%s: %v, %d calls, %d problems, %d requests, answer %q", finish, err, out.Calls, out.Problems, len(m.requests), out.Answer)
		}
	}
}

// TestCriteriaAndWordsPutIn: the caller's criteria see the whole turn, and fire
// only where the model has written freely.
func TestCriteriaAndWordsPutIn(t *testing.T) {
	call := func(c stopping.Criterion, action stopping.Action) stopping.Criterion {
		c.Name, c.Action = "mine", action
		return c
	}
	word := func(s string) stopping.Criterion { return stopping.Criterion{Literal: s} }
	regex := func(s string) stopping.Criterion { return stopping.Criterion{Regex: s} }
	named := runner.Choice{Mode: runner.Named, Tool: "search"}
	for name, tc := range map[string]struct {
		criterion stopping.Criterion
		choice    runner.Choice
		constrain bool
		texts     []string
		stopped   string // the first turn's criterion, match and end
		calls     int
		requests  int
	}{
		"in words put in": {call(word("\"name\""), stopping.Halt), named, false,
			[]string{" {\"query\": \"m\"}}\n</tool_call>"}, "", 1, 2},
		"across them": {call(regex(`"arguments": \{"query`), stopping.Halt), named, false,
			[]string{" {\"query\": \"m\"}}\n</tool_call>"}, "mine 31 51 51", 0, 1},
		"in a constrained call": {call(word("search"), stopping.Halt), runner.Choice{}, true,
			[]string{"<tool_call>", "{\"query\": \"search\"}", "", "It is 7."}, "", 1, 4},
		"after a constrained call": {call(word("\n"), stopping.Call), runner.Choice{}, true,
			[]string{"<tool_call>", "{\"query\": \"m\"}", "\n\n", "It is 7."}, "mine 72 73 73", 1, 4},
		"across a constrained call": {call(regex(`(?<a><tool_call>.*so)`), stopping.Finish), runner.Choice{}, true,
			[]string{"<tool_call>", "{\"query\": \"m\"}", " and so on"}, "mine 0 79 79", 0, 3},
		"where a call begins": {call(word("<tool_call>"), stopping.Halt), runner.Choice{}, true,
			[]string{"I could <tool_call>"}, "mine 8 19 19", 0, 1},
		"before a call": {call(word("could"), stopping.Finish), runner.Choice{}, true,
			[]string{"I could <tool_call>"}, "mine 2 7 7", 0, 1},
		"a finished call": {call(word("</tool_call>"), stopping.Finish), runner.Choice{}, false,
			[]string{"<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"m\"}}\n</tool_call>"}, "mine 60 72 72", 0, 1},
	} {
		m := script(tc.texts...)
		r := newRunner(t, "qwen", m, echo("search"))
		r.Criteria, r.Choice, r.Constrain = []stopping.Criterion{tc.criterion}, tc.choice, tc.constrain
		events, out, err := trial(t, r, runner.Task{})
		first, got := of[runner.Stopped](events)[0], ""
		if first.Criterion == "mine" {
			got = fmt.Sprintf("mine %d %d %d", first.MatchStart, first.MatchEnd, first.KeepEnd)
		}
		if err != nil || got != tc.stopped || out.Calls != tc.calls || len(m.requests) != tc.requests {
			t.Errorf("%s: %v, stopped %q, want %q; %d calls, %d requests, ended %s\n%s", name, err, got, tc.stopped, out.Calls, len(m.requests), out.Termination, out.Ledger.Text())
		}
	}
}

// TestStopsAfterAConstrainedCall: a format's stop that counts from the first
// call on sees it.
func TestStopsAfterAConstrainedCall(t *testing.T) {
	m := script("✿FUNCTION✿:", `{"query": "m"}`, "\n✿RETURN✿: I made it up.", "✿RETURN✿: It is 7.")
	r := newRunner(t, "qwen-functions", m, echo("search"))
	r.Constrain = true
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Calls != 1 || of[runner.Stopped](events)[0].Criterion != "return" || strings.Contains(out.Ledger.Text(), "made it up") {
		t.Errorf("%v, %d calls, %s", err, out.Calls, out.Ledger.Text())
	}
}

// TestResumedCall: a call that was cut is gone on with once; what was reported
// is not reported again, and counts go on.
func TestResumedCall(t *testing.T) {
	m := script()
	m.play = func(n int, req models.Request) reply {
		return []reply{{text: "Note. <tool_call>\n{\"name\": \"search\", \"argu", finish: models.FinishLength},
			wrote("ments\": {\"query\": \"Note.\"}}\n</tool_call>"), wrote("It is 7.")}[n-1]
	}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Limits.TurnTokens = 30
	r.Criteria = []stopping.Criterion{
		{Name: "note", Literal: "Note.", Action: stopping.Notify},
		{Name: "late", Literal: "N", MinTokens: 14, Action: stopping.Notify},
		{Name: "later", Literal: "N", MinTokens: 30, Action: stopping.Notify},
		{Name: "behind", Literal: "Note.", MinBytes: 67, Action: stopping.Notify},
	}
	events, out, err := trial(t, r, runner.Task{})
	var noticed []string
	for _, ev := range of[runner.Noticed](events) {
		noticed = append(noticed, fmt.Sprint(ev.Criterion, ev.MatchStart, ev.MatchEnd))
	}
	if want := []string{"note0 5", "late61 62", "note61 66"}; err != nil || out.Calls != 1 || !slices.Equal(noticed, want) {
		t.Errorf("%v, %d calls, noticed %q, want %q", err, out.Calls, noticed, want)
	}
	first := of[runner.Stopped](events)[0]
	if _, _, tokens := m.requested(); !slices.Equal(tokens, []int{30, 30, 30}) || first.Requests != 2 || first.Finish != models.FinishStop {
		t.Errorf("tokens %v, %+v", tokens, first)
	}
}

// TestNameOfTheOpening: the runner's own criterion has a name, which is taken
// only where calls are constrained.
func TestNameOfTheOpening(t *testing.T) {
	for _, constrain := range []bool{false, true} {
		r := newRunner(t, "qwen", script(), echo("search"))
		r.Criteria, r.Constrain = []stopping.Criterion{{Name: "call opening", Literal: "x"}}, constrain
		_, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
		var ce *stopping.CompileError
		if errors.As(err, &ce) != constrain {
			t.Errorf("constrain %v: %v", constrain, err)
		}
	}
}

// TestChoiceOfEachRun: the words come at the first turn of each run, also of one
// that continues a conversation, and never where a cut call is gone on with.
func TestChoiceOfEachRun(t *testing.T) {
	for _, constrain := range []bool{false, true} {
		m := &playModel{play: func(n int, req models.Request) reply {
			switch prompt := text(req.Prompt); {
			case len(req.Schema) > 0:
				return wrote(`{"query": "m"}`)
			case strings.HasSuffix(prompt, `"arguments":`):
				return wrote(" {\"query\": \"m\"}}\n</tool_call>")
			case strings.HasSuffix(prompt, "</tool_call>"):
				return wrote("")
			}
			return wrote("It is 7.")
		}}
		r := newRunner(t, "qwen", m, echo("search"), readTool{echo("read")})
		r.Choice, r.Constrain = runner.Choice{Mode: runner.Named, Tool: "search"}, constrain
		_, out, err := trial(t, r, runner.Task{})
		for range 2 {
			before := out.Ledger
			if err != nil || out.Calls != 1 || out.Answer != "It is 7." || out.Turns != 2 {
				t.Fatalf("constrain %v: %v, %d calls, answer %q", constrain, err, out.Calls, out.Answer)
			}
			if _, out, err = collect(t.Context(), r, runner.Task{Question: "Again?", Ledger: before}); !strings.HasPrefix(out.Ledger.Text(), before.Text()) {
				t.Error("the conversation did not go on")
			}
		}
	}
}
