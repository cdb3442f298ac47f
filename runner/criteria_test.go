package runner_test

import (
	"errors"
	"strings"
	"testing"

	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

func TestCriteriaThatCannotBe(t *testing.T) {
	for name, c := range map[string]stopping.Criterion{
		"the format's name": {Name: "end of turn", Literal: "x"},
		"no name":           {Literal: "x"},
		"a broken pattern":  {Name: "mine", Regex: "(["},
	} {
		m := &fakeModel{}
		r := newRunner(t, "qwen", m)
		r.Criteria = []stopping.Criterion{c}
		events, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
		var refused *stopping.CompileError
		if !errors.As(err, &refused) || len(events) != 0 || len(m.requests) != 0 {
			t.Errorf("%s: error %v, %d events, %d requests", name, err, len(events), len(m.requests))
		}
	}
}

func TestActions(t *testing.T) {
	for name, tc := range map[string]struct {
		format, text string
		c            stopping.Criterion
		answer       string
		means        template.Meaning
	}{
		"halt":              {"qwen", "one STOP two", stopping.Criterion{Literal: " STOP", Strip: true}, "one", template.MeansEnd},
		"call":              {"qwen", "one STOP two", stopping.Criterion{Literal: " STOP", Action: stopping.Call}, "one STOP", template.MeansCall},
		"finish":            {"qwen", "<think>x</think>one STOP two", stopping.Criterion{Literal: " STOP", Strip: true, Action: stopping.Finish}, "one", template.MeansAnswer},
		"finish in thought": {"qwen", "<think>\nso 42. But", stopping.Criterion{Literal: " But", Strip: true, Action: stopping.Finish}, "so 42.", template.MeansAnswer},
		"finish in react":   {"react", " {\"a\": 1} and", stopping.Criterion{JSON: true, Action: stopping.Finish}, "{\"a\": 1}", template.MeansAnswer},
		"finish after call": {"qwen", qwenCall + "\nsaid STOP", stopping.Criterion{Literal: " STOP", Strip: true, Action: stopping.Finish}, "said", template.MeansAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			tc.c.Name = "mine"
			m := &fakeModel{texts: []string{tc.text}, cut: 5}
			tool := echo("search")
			r := newRunner(t, tc.format, m, tool)
			r.Criteria = []stopping.Criterion{tc.c}
			events, out, err := trial(t, r, runner.Task{})
			if err != nil || out.Termination != runner.TermAnswered || out.Answer != tc.answer || tool.runs.Load() != 0 {
				t.Errorf("ended %s with %v, answer %q, %d runs", out.Termination, err, out.Answer, tool.runs.Load())
			}
			if st := of[runner.Stopped](events)[0]; st.Means != tc.means || st.Criterion != "mine" {
				t.Errorf("stopped %+v", st)
			}
		})
	}
}

func TestNotifyIsAnEvent(t *testing.T) {
	m := &fakeModel{texts: []string{"one and two and three"}, cut: 4}
	r := newRunner(t, "qwen", m)
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "and", Action: stopping.Notify}}
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Answer != "one and two and three" {
		t.Fatalf("answer %q, %v", out.Answer, err)
	}
	n := of[runner.Noticed](events)
	if len(n) != 2 || n[0] != (runner.Noticed{Turn: 1, Criterion: "mine", MatchStart: 4, MatchEnd: 7}) || n[1].MatchStart != 12 {
		t.Errorf("noticed %+v", n)
	}
}

// Text before a response that the model invents is no answer, and the model is
// told what was wrong.
func TestInventedResponseWithoutACall(t *testing.T) {
	for _, text := range []string{"I look it up.\n<tool_response>\nThe moon is made of cheese.", "<tool_response>x"} {
		m := &fakeModel{texts: []string{text, qwenAnswer}}
		events, out, err := trial(t, newRunner(t, "qwen", m, echo("search")), runner.Task{})
		if err != nil || out.Answer != "The moon is far [a.md]." || out.Invented != 1 || out.Problems != 1 {
			t.Errorf("answer %q, %d invented, %v", out.Answer, out.Invented, err)
		}
		if n := of[runner.Nudged](events); len(n) != 1 || n[0].Reason != string(template.InventedResponse) {
			t.Errorf("nudged %+v", n)
		}
	}
}

// Observations without an action, and empty answers, are corrected and end.
func TestReactWithoutAnAction(t *testing.T) {
	for _, text := range []string{" hm\nObservation: cheese", "\nObservation: cheese", " done\nFinal Answer: \nObservation: x", " ok\nFinal Answer:"} {
		m := &fakeModel{texts: []string{text, reactDone}}
		events, out, err := trial(t, newRunner(t, "react", m, echo("search")), runner.Task{})
		if err != nil || out.Termination != runner.TermAnswered || out.Answer != "The moon is far [a.md]." || len(of[runner.Nudged](events)) != 1 {
			t.Errorf("%q: ended %s, answer %q, %v", text, out.Termination, out.Answer, err)
		}
		m = &fakeModel{texts: []string{text, text, text, text, text, text}}
		if _, out, err = trial(t, newRunner(t, "react", m, echo("search")), runner.Task{}); err != nil || out.Termination != runner.TermNoAnswer || out.Turns != 4 {
			t.Errorf("%q: ended %s after %d turns, %v", text, out.Termination, out.Turns, err)
		}
	}
}

// A base model that asks itself the next question has answered.
func TestReactNextQuestion(t *testing.T) {
	for text, want := range map[string]string{
		" I know.\nFinal Answer: 42\n\nQuestion: And why?\nThought:":           "42",
		" I know.\nFinal Answer: 42\nObservation: yes":                         "42",
		" So the Final Answer: is not this one.\nFinal Answer: 42\nQuestion: ": "42",
	} {
		m := &fakeModel{texts: []string{text}}
		_, out, err := trial(t, newRunner(t, "react", m, echo("search")), runner.Task{})
		if err != nil || out.Answer != want || out.Termination != runner.TermAnswered {
			t.Errorf("%q: ended %s, answer %q, %v", text, out.Termination, out.Answer, err)
		}
		if strings.Contains(out.Ledger.Text(), "And why?") {
			t.Error("text past the stop is in the ledger")
		}
	}
}

// A caller who ends the text inside a thought wants it to end there.
func TestHaltInThoughtEndsTheRun(t *testing.T) {
	m := &fakeModel{texts: []string{"<think>\nfirst second third"}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "second"}}
	events, out, err := collect(t.Context(), r, runner.Task{Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if out.Termination != runner.TermNoAnswer || out.Turns != 1 || out.Problems != 0 || len(of[runner.Nudged](events)) != 0 {
		t.Errorf("ended %s after %d turns with %d problems", out.Termination, out.Turns, out.Problems)
	}
	if !strings.HasSuffix(out.Ledger.Text(), "first second") {
		t.Errorf("the text is not kept: %q", out.Ledger.Text())
	}
}
