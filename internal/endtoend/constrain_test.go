package endtoend

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// weather and tide are tools whose arguments leave a model much to get wrong.
type forecast string

func (f forecast) Spec() tools.Spec {
	return tools.Spec{Name: string(f), Description: "Tells the " + string(f) + ".", Parameters: json.RawMessage(`{"type": "object",
		"properties": {"city": {"type": "string", "enum": ["Oslo", "Bergen"]}, "unit": {"type": "string", "enum": ["metric", "imperial"]}},
		"required": ["city", "unit"], "additionalProperties": false}`)}
}

func (forecast) Run(context.Context, json.RawMessage) (string, error) { return "calm", nil }

// unsure is a model that means to call a tool and gets about one token in twenty
// wrong. Where words stand in its mouth it goes on from there.
var unsure = []automaton.Turn{
	{After: "<|im_start|>assistant\n", Text: "I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"unit\": \"metric\"}}\n</tool_call>"},
	{After: "<tool_call>\n{\"name\": ", Text: "\"weather\""},
	{After: ", \"arguments\": ", Text: "{\"city\": \"Oslo\", \"unit\": \"metric\"}"},
	{After: "}\n</tool_call>", Text: "\nNow wait."},
	{After: "\ncalm\n</tool_response><|im_end|>\n<|im_start|>assistant\n", Text: "It is calm."},
}

// A trial counts what a model's first turns were.
type trial struct {
	turns, called, invalid, requests, tokens int
}

// try asks with many seeds and judges each first turn strictly: a call counts
// only if its spelling, its name and its arguments are as they should be.
func try(t *testing.T, m models.Model, constrain bool, seeds int) (sum trial) {
	t.Helper()
	set, err := tools.NewSet([]tools.Tool{forecast("weather"), forecast("tide")}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one, none, all := 1.0, 0.0, 0 // the distribution as the model gives it
	for seed := range seeds {
		r := newRunner(t, "qwen", m, set)
		r.Constrain, r.SingleCall, r.Strict = constrain, true, true
		r.Sampling = models.Sampling{Temperature: &one, TopP: &one, MinP: &none, TopK: &all, Seed: &seed}
		r.Limits = runner.Limits{Turns: 1, TurnTokens: 60}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		for ev, err := range r.Run(ctx, runner.Task{Question: "How is the weather in Oslo?"}) {
			if err != nil {
				t.Fatal(err)
			}
			if stopped, ok := ev.(runner.Stopped); ok && stopped.Turn == 1 {
				sum.turns++
				sum.requests += stopped.Requests
				sum.tokens += stopped.Pieces
				if slices.ContainsFunc(stopped.Problems, invalidCall) {
					sum.invalid++
				}
			}
			if called, ok := ev.(runner.Called); ok && called.Turn == 1 {
				sum.called++
			}
		}
		cancel()
	}
	return sum
}

func invalidCall(p template.Problem) bool {
	return slices.Contains([]template.ProblemKind{
		template.UnclosedCall, template.BadJSON, template.MissingName, template.UnknownTool, template.BadArguments,
	}, p.Kind)
}

// TestConstrain measures on the real Ollama what calls under a schema cost and
// that none of them is invalid.
func TestConstrain(t *testing.T) {
	s := ollamatest.Shared(t)
	compare(t, model(t, s, "unsure", unsure, automaton.Options{Logit: 8}))
}

func TestConstrainOnLlamaServer(t *testing.T) {
	url := ollamatest.LlamaServer(t, modelFile(t, unsure, automaton.Options{Logit: 8}), "-c", "8192", "-np", "2")
	m, err := models.Open("llamacpp:"+url, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, m)
}

func compare(t *testing.T, m models.Model) {
	t.Helper()
	seeds := 8
	if ollamatest.Required() {
		seeds = 20
	}
	free, held := try(t, m, false, seeds), try(t, m, true, seeds)
	for name, c := range map[string]trial{"free": free, "constrained": held} {
		t.Logf("%s: %d turns, %d with calls, %d with invalid calls; %.1f requests and %.1f tokens a turn",
			name, c.turns, c.called, c.invalid, float64(c.requests)/float64(c.turns), float64(c.tokens)/float64(c.turns))
	}
	if free.invalid == 0 || free.called == 0 {
		t.Errorf("%d of %d calls of the free model are invalid: nothing is compared", free.invalid, free.turns)
	}
	if held.invalid != 0 || held.called == 0 {
		t.Errorf("%d of %d turns with a constrained call have an invalid one", held.invalid, held.turns)
	}
	if held.requests > 3*held.called+(held.turns-held.called) {
		t.Errorf("%d requests for %d turns with %d calls", held.requests, held.turns, held.called)
	}
}

// TestConstrainedRun is a whole run whose call is held to its schema, of a model
// that would misspell both the tool's name and its arguments.
func TestConstrainedRun(t *testing.T) {
	s := ollamatest.Shared(t)
	m := model(t, s, "misspells", []automaton.Turn{
		{After: "<|im_start|>assistant\n", Text: "I look.\n<tool_call>\n{\"name\": \"wether\", \"arguments\": {\"town\": 7}}\n</tool_call>"},
		{After: "<tool_call>\n{\"name\": ", Text: "\"wether\""},
		{After: ", \"arguments\": ", Text: "{\"town\": 7}"},
		{After: "}\n</tool_call>", Text: "\nNow wait."},
		{After: "\ncalm\n</tool_response><|im_end|>\n<|im_start|>assistant\n", Text: "It is calm."},
	}, automaton.Options{})
	set, err := tools.NewSet([]tools.Tool{forecast("weather"), forecast("tide")}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, "qwen", m, set)
	r.Constrain = true
	var called []runner.Called
	var out runner.Outcome
	for ev, err := range r.Run(t.Context(), runner.Task{Question: "How is the weather in Oslo?"}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case runner.Called:
			called = append(called, ev)
		case runner.Ended:
			out = ev.Outcome
		}
	}
	if len(called) != 1 || out.Answer != "It is calm." || out.Problems != 0 {
		t.Fatalf("%d calls, answer %q, %d problems\n%s", len(called), out.Answer, out.Problems, out.Ledger.Text())
	}
	if status, why := set.Check(tools.Call{Name: called[0].Name, Arguments: called[0].Arguments}); status != tools.OK {
		t.Errorf("%s %s: %s", called[0].Name, called[0].Arguments, why)
	}
}
