package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stopgap/runner"
	"stopgap/template"
)

// In these turns each letter is a call with that query; a turn without letters
// is an answer.
func circleTurns(turns string) []string {
	var out []string
	for turn := range strings.FieldsSeq(turns) {
		text := ""
		for _, query := range strings.Trim(turn, ".") {
			text += fmt.Sprintf("<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": %q}}\n</tool_call>\n", string(query))
		}
		if text == "" {
			text = "It is 7."
		}
		out = append(out, text)
	}
	return out
}

// The same call with the same result three times, or a cycle of two to five
// calls three times over, earns one nudge and then a forced answer, however the
// calls are divided into turns.
func TestWhatIsACircle(t *testing.T) {
	for turns, want := range map[string]string{
		"a a .":                             "answered",
		"a a a .":                           "nudged after 3, answered",
		"aa a .":                            "nudged after 2, answered",
		"aaa .":                             "nudged after 1, answered",
		"ab ab ab .":                        "nudged after 3, answered",
		"a b a b a b .":                     "nudged after 6, answered",
		"a ba bab .":                        "nudged after 3, answered",
		"x abc abc abc .":                   "nudged after 4, answered",
		"abcd abcd abcd .":                  "nudged after 3, answered",
		"abcde abcde abcde .":               "nudged after 3, answered",
		"abcdef abcdef abcdef .":            "nudged after 3, answered", // by turns
		"a b c d e f a b c d e f a b c d .": "answered",
		"a b a c a b a c .":                 "answered",
		"aa b aa b .":                       "answered",
		"a a b a a c a a d .":               "answered",
		"a a a a a a .":                     "nudged after 3, forced after 6, answered_forced",
		"a a a b b b .":                     "nudged after 3, forced after 6, answered_forced",
		"a a a a a b c .":                   "nudged after 3, answered",
	} {
		events, out, err := trial(t, newRunner(t, "qwen", &fakeModel{texts: circleTurns(turns), cut: 50}, echo("search")), runner.Task{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range of[runner.Nudged](events) {
			switch {
			case n.Reason == string(template.RepeatedCall) && !n.Forced:
				got += fmt.Sprintf("nudged after %d, ", n.Turn)
			case n.Reason == string(runner.TermLoop) && n.Forced:
				got += fmt.Sprintf("forced after %d, ", n.Turn)
			default:
				got += fmt.Sprintf("%+v", n)
			}
		}
		if got += string(out.Termination); got != want {
			t.Errorf("%s: %s, want %s", turns, got, want)
		}
	}

	// The same call whose result changes is work.
	n := 0
	counting := &fakeTool{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
		n++
		return fmt.Sprint("page ", n), nil
	}}
	events, out, err := trial(t, newRunner(t, "qwen", &fakeModel{texts: circleTurns("a a a a a a a ."), cut: 50}, counting), runner.Task{})
	if err != nil || out.Termination != runner.TermAnswered || len(of[runner.Nudged](events)) != 0 {
		t.Errorf("ended %s with %v, nudged %+v", out.Termination, err, of[runner.Nudged](events))
	}
}
