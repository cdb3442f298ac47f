package template

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	searchTool = Tool{
		Name: "search", Description: "Finds documents.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"array","items":{"type":"string"}}},"required":["query"]}`),
	}
	readTool = Tool{
		Name: "read", Description: "Reads one document.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
	}
)

// spoken is what a model writes in each format, up to where the stops cut it.
var spoken = map[string]struct{ call, calls, thought, answer, next string }{
	"qwen": {
		call:    "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>",
		calls:   "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>",
		thought: "<think>\nI should look.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>",
		answer:  "Ann found it [7].",
		next:    "In 1999.",
	},
	"qwq-tools": {
		call:    "I should look.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>",
		calls:   "\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>",
		thought: "I should look.\n\nAnd then?\n</think>\n\nLooking.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"owl\"]}}\n</tool_call>",
		answer:  "It says so.\n</think>\n\nAnn found it [7].",
		next:    "The same page.\n</think>\n\nIn 1999.",
	},
	"qwq": {
		call:    "<tool_call>\n{ \"action\": \"search\", \"action_input\": { \"query\": [\"owl\"] } }\n</tool_call>",
		calls:   "I need both.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": [\"owl\"]}}\n</tool_call>",
		thought: "I should look.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": [\"owl\"]}}\n</tool_call>",
		answer:  "It says so.\n</think>\n\nAnn found it [7].",
		next:    "The same page.\n</think>\n\nIn 1999.",
	},
	"react": {
		call:    " I should look.\nAction: search\nAction Input: {\"query\": [\"owl\"]}",
		calls:   "\nAction: read\nAction Input: {\"id\":\n \"7\"}",
		thought: " First one thing.\nThought: I should look.\nAction: search\nAction Input: {\"query\": [\"owl\"]}",
		answer:  " I now know the final answer\nFinal Answer: Ann found it [7].",
		next:    " I now know the final answer\nFinal Answer: In 1999.",
	},
}

// A dialogue is one case of the goldens; the model's turns come from spoken.
type dialogue struct {
	name    string
	opening Opening
	turns   []func(f *Format) (generated string, next Continuation)
}

func dialogues(format string) []dialogue {
	say := spoken[format]
	plain := Opening{Question: "Who found the owl?"}
	full := Opening{
		System: "Be brief.", Question: "Who found the owl?\nAnd {{when}}?", Date: "2025-03-14", MaxCalls: 3,
		Tools: []Tool{searchTool, readTool},
	}
	one := Opening{Question: "Who found the owl?", Tools: []Tool{searchTool}, Date: "2025-03-14"}
	type turn = func(f *Format) (string, Continuation)
	then := func(generated string, c Continuation) turn {
		return func(*Format) (string, Continuation) { return generated, c }
	}
	answered := func(content ...string) Continuation { return Continuation{Results: results(content)} }
	forced := func(generated string, c Continuation) turn {
		return func(f *Format) (string, Continuation) {
			c.Note, _ = f.Force("the limit of 5 calls is reached")
			return generated, c
		}
	}
	nudged := func(generated string, kind ProblemKind) turn {
		return func(f *Format) (string, Continuation) {
			note, _ := f.Nudge(kind)
			return generated, Continuation{Note: note}
		}
	}
	failed := func(f *Format) (string, Continuation) {
		words, _ := f.Problem(Problem{Kind: BadJSON, Message: "the call is not a JSON object"}, []string{"search", "read"})
		return say.call, Continuation{Results: []Result{{Content: words, Error: true}}}
	}
	return []dialogue{
		{"plain", plain, nil},
		{"one_tool", one, nil},
		{"full", full, nil},
		{"single_call", one, []turn{then(say.call, answered("[7] Ann {found} it."))}},
		{"several_calls", full, []turn{then(say.calls, answered("[7] Ann found it.", "whole\n\ntext"))}},
		{"think_before_call", one, []turn{then(say.thought, answered("[7] Ann found it."))}},
		{"two_rounds", full, []turn{then(say.call, answered("see 7")), then(say.calls, answered("Ann."))}},
		{"error_response", full, []turn{failed}},
		{"forced", one, []turn{then(say.call, answered("see 7")), forced(say.thought, answered("[7] Ann found it."))}},
		{"forced_in_think", one, []turn{forced("Let me think", Continuation{Open: true})}},
		{"nudged", one, []turn{nudged("Hm", NoCallNoAnswer)}},
		{"repeated", one, []turn{then(say.call, answered("see 7")), nudged(say.call, RepeatedCall)}},
		{"next_question", one, []turn{
			then(say.call, answered("[7] Ann found it.")), then(say.answer, Continuation{Question: "And when?"}), then(say.next, Continuation{}),
		}},
	}
}

// TestGoldens renders whole dialogues; the goldens show who wrote what.
func TestGoldens(t *testing.T) {
	for name := range spoken {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dialogues(name) {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				checkGolden(t, filepath.Join("testdata", name, d.name+".golden"), f.play(t, d))
			})
		}
	}
}

// play runs a dialogue as a runner does and gives its prompt with the sources.
func (f *Format) play(t *testing.T, d dialogue) string {
	t.Helper()
	var b strings.Builder
	write := func(parts []Part, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			b.WriteString("⟦" + string(p.Source) + "⟧" + p.Text)
		}
	}
	write(f.Open(d.opening))
	inThink := f.Think.Opened
	for i, turn := range d.turns {
		generated, next := turn(f)
		write([]Part{{generated, FromModel}}, nil)
		next.InThink = f.Parse(generated, Reading{InThink: inThink}).InThink
		if i < len(d.turns)-1 || len(next.Results) > 0 || next.Note != "" || next.Question != "" {
			write(f.Continue(next))
		}
		inThink = f.StartsInThink(next)
	}
	return b.String()
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
