package runner_test

import (
	"strings"
	"testing"

	"stopgap/runner"
)

// TestTwoSearches is what the script that qwq comes from cannot do: it searches
// the whole text for calls, so that the second one begins at the first, and the
// example in the prompt is one more. Here each search runs once.
func TestTwoSearches(t *testing.T) {
	first := strings.Replace(qwqCall, "moon", "moon distance", 1)
	second := strings.Replace(qwqCall, "moon", "moon orbit", 1)
	m := &fakeModel{texts: []string{first, second, qwqAnswer}}
	tool := echo("search")
	events, out, err := collect(t.Context(), newRunner(t, "qwq", m, tool), runner.Task{Question: "How far?", Date: "2026-01-02"})
	if err != nil {
		t.Fatal(err)
	}
	if out.Termination != runner.TermAnswered || out.Calls != 2 || tool.runs.Load() != 2 {
		t.Errorf("termination %s, %d calls, %d runs", out.Termination, out.Calls, tool.runs.Load())
	}
	returned := of[runner.Returned](events)
	if len(returned) != 2 || !strings.Contains(returned[0].Content, "moon distance") || !strings.Contains(returned[1].Content, "moon orbit") {
		t.Errorf("returned %+v", returned)
	}
	if prompt := text(m.requests[0].Prompt); !strings.Contains(prompt, "<tool_call>") || len(of[runner.Called](events)) != 2 {
		t.Errorf("the example of the prompt: %q, %d calls", prompt, len(of[runner.Called](events)))
	}
	prefixes(t, m)
}
