package runner_test

import (
	"fmt"
	"testing"

	"stopgap/models"
	"stopgap/runner"
)

// Where calls end the run, its first turn does, whatever it is: nothing is run,
// nothing is asked again, and calls are told with what it took to read them.
func TestCallsEndTheRun(t *testing.T) {
	two := qwenCall + "\n<tool_call>\n{\"name\": \"nowhere\", \"arguments\": {'query': 7}}\n</tool_call>"
	for name, tc := range map[string]struct {
		text   string
		finish models.Finish
		want   string
	}{
		"a call":                {qwenCall, "", "called 1 0 [search 0]"},
		"two, neither fits":     {two, "", "called 2 0 [search 0 nowhere 1]"},
		"one cannot be read":    {qwenCall + "\n<tool_call>\nnothing\n</tool_call>", "", "called 1 1 [search 0]"},
		"none can be read":      {"<think>\nx\n</think>\n\n<tool_call>\nnothing\n</tool_call>", "", "format_error 0 1 []"},
		"an answer":             {qwenAnswer, "", "answered 0 0 []"},
		"nothing":               {"<think>\nx\n</think>\n\n", "", "no_answer 0 1 []"},
		"a thought that is cut": {"<think>\nI think and", models.FinishLength, "no_answer 0 1 []"},
	} {
		m := &fakeModel{texts: []string{tc.text}, finish: tc.finish}
		tool := echo("search")
		r := newRunner(t, "qwen", m, tool)
		r.CallsEnd = true
		events, out, err := collect(t.Context(), r, runner.Task{Question: "How far?"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		told := []any{}
		for _, c := range of[runner.Called](events) {
			told = append(told, c.Name, len(c.Repairs))
		}
		if got := fmt.Sprint(out.Termination, " ", out.Calls, " ", out.Problems, " ", told); got != tc.want {
			t.Errorf("%s: %s, not %s", name, got, tc.want)
		}
		if n := len(of[runner.Returned](events)) + len(of[runner.Nudged](events)) + int(tool.runs.Load()); n > 0 || out.Turns != 1 || len(m.requests) != 1 {
			t.Errorf("%s: %d results and notes, %d turns, %d requests", name, n, out.Turns, len(m.requests))
		}
	}
}
