package runner_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/tools"
)

const readSchema = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`

// A reader is a tool with another schema than that of fakeTool.
type readTool struct{ *fakeTool }

func (r readTool) Spec() tools.Spec {
	return tools.Spec{Name: "read", Description: "Reads.", Parameters: json.RawMessage(readSchema)}
}

// TestConstrain follows the requests of a turn whose call is held to a schema.
func TestConstrain(t *testing.T) {
	both := []tools.Tool{echo("search"), readTool{echo("read")}}
	for name, tc := range map[string]struct {
		format string
		tools  []tools.Tool
		texts  []string // what the model writes, request by request
		want   string   // the turn's text
		called string
		asked  int // requests of the turn
	}{
		"two tools": {"qwen", both, []string{"Look. <tool_call>\n{\"nam", "\"read\"", "{\"id\": \"7\"}\n", "<|im_end|>", "It is 7."},
			"Look. <tool_call>\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>", `read {"id": "7"}`, 4},
		"one tool": {"qwen", both[:1], []string{"<tool_call>", "{\"query\":\"m\"}", "", "It is 7."},
			"<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\":\"m\"}}\n</tool_call>", `search {"query":"m"}`, 3},
		"two calls": {"qwen", both, []string{"<tool_call>", "\"read\"", "{\"id\": \"7\"}", "\n<tool_call>\n", "\"search\" ", "{\"query\": \"m\"}", "", "It is 7."},
			"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"m\"}}\n</tool_call>",
			`read {"id": "7"} search {"query": "m"}`, 7},
		"qwq": {"qwq", both, []string{"I look.\n<tool_call>", "\"read\"", "{\"id\": \"7\"}", "Found.\n</think>\n\nIt is 7."},
			"I look.\n<tool_call>\n{\"action\": \"read\", \"action_input\": {\"id\": \"7\"}}\n</tool_call>", `read {"id": "7"}`, 3},
		"react": {"react", both, []string{" I look.\nAction: rea", "\"read\"", "{\"id\": \"7\"}", " So.\nFinal Answer: It is 7."},
			" I look.\nAction: read\nAction Input: {\"id\": \"7\"}", `read {"id": "7"}`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeModel{texts: tc.texts}
			r := newRunner(t, tc.format, m, tc.tools...)
			r.Constrain = true
			events, out, err := trial(t, r, runner.Task{})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, ev := range of[runner.Text](events) {
				if ev.Turn == 1 {
					text.WriteString(ev.Text)
				}
			}
			var called []string
			for _, ev := range of[runner.Called](events) {
				called = append(called, ev.Name+" "+string(ev.Arguments))
				if len(ev.Repairs) > 0 {
					t.Errorf("repairs %v", ev.Repairs)
				}
			}
			if text.String() != tc.want || strings.Join(called, " ") != tc.called {
				t.Errorf("turn %q\nwant %q\ncalled %q, want %q", text.String(), tc.want, called, tc.called)
			}
			if first := of[runner.Stopped](events)[0]; first.Requests != tc.asked || out.Requests != len(tc.texts) || len(first.Problems) > 0 {
				t.Errorf("the turn took %d requests, want %d; the run %d of %d; problems %v", first.Requests, tc.asked, out.Requests, len(tc.texts), first.Problems)
			}
			if out.Answer != "It is 7." || !strings.Contains(out.Ledger.Text(), tc.want) {
				t.Errorf("answer %q, ledger %q", out.Answer, out.Ledger.Text())
			}
			prefixes(t, m)
		})
	}
}

// TestConstrainSchemas are what the requests of a call are held to.
func TestConstrainSchemas(t *testing.T) {
	m := &fakeModel{texts: []string{"<tool_call>", "\"read\"", "{\"id\": \"7\"}", "", "It is 7."}}
	r := newRunner(t, "qwen", m, echo("search"), readTool{echo("read")})
	r.Constrain = true
	if _, _, err := trial(t, r, runner.Task{}); err != nil {
		t.Fatal(err)
	}
	var schemas []string
	for _, req := range m.requests {
		schemas = append(schemas, string(req.Schema))
	}
	if want := []string{"", `{"enum":["search","read"],"type":"string"}`, readSchema, "", ""}; !slices.Equal(schemas, want) {
		t.Errorf("got %q, want %q", schemas, want)
	}
}

// TestConstrainIsNotForThoughts: a call that is only thought of is no call.
func TestConstrainIsNotForThoughts(t *testing.T) {
	m := &fakeModel{texts: []string{"<think>\nI could <tool_call> it.\n</think>\n\nIt is 7."}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Constrain = true
	if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Answer != "It is 7." || out.Requests != 1 {
		t.Errorf("answer %q after %d requests, %v", out.Answer, out.Requests, err)
	}
}

// TestConstrainFaults: a server that does not keep to the schema is told of,
// one that runs out of tokens leaves a call that is not made.
func TestConstrainFaults(t *testing.T) {
	for name, texts := range map[string][]string{
		"another name":           {"<tool_call>", "\"write\""},
		"no string":              {"<tool_call>", "read"},
		"arguments that are cut": {"<tool_call>", "\"read\"", "{\"id\": "},
	} {
		m := &fakeModel{texts: texts}
		r := newRunner(t, "qwen", m, echo("search"), readTool{echo("read")})
		r.Constrain = true
		_, out, err := trial(t, r, runner.Task{})
		var pe *models.ProtocolError
		if !errors.As(err, &pe) || out.Termination != runner.TermServerError || out.Calls != 0 {
			t.Errorf("%s: %v, ended %s after %d calls", name, err, out.Termination, out.Calls)
		}
	}
	m := &rawModel{turns: [][]models.Chunk{
		said("<tool_call>", models.FinishStop), said("\"read\"", models.FinishStop), said("{\"id\": \"7", models.FinishLength), said("It is 7.", models.FinishStop),
	}}
	tool := echo("read")
	r := newRunner(t, "qwen", m, echo("search"), readTool{tool})
	r.Constrain = true
	if _, out, err := trial(t, r, runner.Task{}); err != nil || tool.runs.Load() != 0 || out.Problems != 1 || out.Answer != "It is 7." {
		t.Errorf("%v; the tool ran %d times, %d problems, answer %q", err, tool.runs.Load(), out.Problems, out.Answer)
	}
}

// TestToolChoice: words that the model did not write begin its first turn, and
// no other.
func TestToolChoice(t *testing.T) {
	for name, tc := range map[string]struct {
		format string
		choice runner.Choice
		prefix string // of the first turn
		rest   string // what the model writes after it
		done   string
	}{
		"required": {"qwen", runner.Choice{Mode: runner.Required}, "<tool_call>", "\n{\"name\": \"search\", \"arguments\": {\"query\": \"m\"}}\n</tool_call>", "It is 7."},
		"named": {"qwen", runner.Choice{Mode: runner.Named, Tool: "search"},
			"<tool_call>\n{\"name\": \"search\", \"arguments\":", " {\"query\": \"m\"}}\n</tool_call>", "It is 7."},
		"required in qwq": {"qwq", runner.Choice{Mode: runner.Required}, "<tool_call>", "{\"action\": \"search\", \"action_input\": {\"query\": \"m\"}}</tool_call>", "</think>It is 7."},
		"required after opened thinking": {"qwq-tools", runner.Choice{Mode: runner.Required}, "\n</think>\n\n<tool_call>",
			"{\"name\": \"search\", \"arguments\": {\"query\": \"m\"}}</tool_call>", "</think>It is 7."},
		"required in react": {"react", runner.Choice{Mode: runner.Required}, "\nAction:", " search\nAction Input: {\"query\": \"m\"}\nObservation:", " So.\nFinal Answer: It is 7."},
		"named in react": {"react", runner.Choice{Mode: runner.Named, Tool: "search"},
			"\nAction: search\nAction Input:", " {\"query\": \"m\"}\nObservation:", " So.\nFinal Answer: It is 7."},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeModel{texts: []string{tc.rest, tc.done}}
			tool := echo("search")
			r := newRunner(t, tc.format, m, tool)
			r.Choice = tc.choice
			events, out, err := trial(t, r, runner.Task{})
			if err != nil || tool.runs.Load() != 1 || out.Answer != "It is 7." {
				t.Fatalf("%v; the tool ran %d times, answer %q", err, tool.runs.Load(), out.Answer)
			}
			if got := text(m.requests[0].Prompt); !strings.HasSuffix(got, tc.prefix) {
				t.Errorf("the first request ends in %q", got[len(got)-40:])
			}
			if strings.Count(out.Ledger.Text(), tc.prefix) < 1 || strings.HasSuffix(text(m.requests[1].Prompt), tc.prefix) {
				t.Errorf("ledger %q", out.Ledger.Text())
			}
			if first := of[runner.Text](events)[0]; !strings.HasPrefix(strings.TrimLeft(tc.prefix, "\n"), strings.TrimLeft(first.Text, "\n")) {
				t.Errorf("the first text is %q", first.Text)
			}
			prefixes(t, m)
		})
	}
}

// TestNoTools: the prompt tells of none, and none runs.
func TestNoTools(t *testing.T) {
	m := &fakeModel{texts: []string{qwenCall, "It is 7."}}
	tool := echo("search")
	r := newRunner(t, "qwen", m, tool)
	r.Choice.Mode = runner.None
	events, _, err := trial(t, r, runner.Task{})
	if err != nil || tool.runs.Load() != 0 || strings.Contains(text(m.requests[0].Prompt), "search") {
		t.Errorf("%v; the tool ran %d times, the prompt is %q", err, tool.runs.Load(), text(m.requests[0].Prompt))
	}
	if started := of[runner.Started](events)[0]; len(started.Tools) != 0 {
		t.Errorf("tools %q", started.Tools)
	}
}

// TestChoiceErrors: what cannot be chosen is told before anything is sent.
func TestChoiceErrors(t *testing.T) {
	m := &fakeModel{}
	for name, r := range map[string]*runner.Runner{
		"no tools":     {Choice: runner.Choice{Mode: runner.Required}, Format: format(t, "qwen")},
		"unknown mode": {Choice: runner.Choice{Mode: "perhaps"}, Format: format(t, "qwen")},
		"no such tool": {Choice: runner.Choice{Mode: runner.Named, Tool: "x"}, Format: format(t, "qwen"), Tools: newRunner(t, "qwen", m, echo("search")).Tools},
	} {
		r.Model = m
		_, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
		var ce *runner.ChoiceError
		if !errors.As(err, &ce) || len(m.requests) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(m.requests))
		}
	}
}

// TestStrict takes no call that is repaired.
func TestStrict(t *testing.T) {
	broken := "<tool_call>\n{'name': 'search', 'arguments': {'query': 'm',}}\n</tool_call>"
	for _, strict := range []bool{false, true} {
		tool := echo("search")
		r := newRunner(t, "qwen", &fakeModel{texts: []string{broken, "It is 7."}}, tool)
		r.Strict = strict
		events, out, err := trial(t, r, runner.Task{})
		if err != nil || (tool.runs.Load() == 0) != strict || (out.Problems == 1) != strict {
			t.Errorf("strict %v: %v; the tool ran %d times, %d problems", strict, err, tool.runs.Load(), out.Problems)
		}
		if called := of[runner.Called](events); !strict && len(called[0].Repairs) == 0 {
			t.Error("the repair is not recorded")
		}
	}
}

// TestProblemsAreTold: what only the tools know is a problem of the turn as well.
func TestProblemsAreTold(t *testing.T) {
	text := "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"qwery\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"find\", \"arguments\": {}}\n</tool_call>"
	events, out, err := trial(t, newRunner(t, "qwen", &fakeModel{texts: []string{text, "It is 7."}}, echo("search")), runner.Task{})
	if err != nil || out.Problems != 1 {
		t.Fatalf("%v, %d problems", err, out.Problems)
	}
	var got []string
	for _, p := range of[runner.Stopped](events)[0].Problems {
		got = append(got, string(p.Kind)+" "+text[p.Start:p.Start+11]+" "+p.Message)
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "bad_arguments <tool_call>") || !strings.Contains(got[0], "query") || !strings.HasPrefix(got[1], "unknown_tool <tool_call>") {
		t.Errorf("got %q", got)
	}
}

// TestHaltEndsABrokenCall: where the caller's own criterion ended the turn there
// is nothing to mend.
func TestHaltEndsABrokenCall(t *testing.T) {
	m := &fakeModel{texts: []string{"<tool_call>\n{\"name\": STOP and more"}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "STOP"}}
	if _, out, err := trial(t, r, runner.Task{}); err != nil || len(m.requests) != 1 || out.Termination != runner.TermNoAnswer {
		t.Errorf("%v; %d requests, ended %s", err, len(m.requests), out.Termination)
	}
}
