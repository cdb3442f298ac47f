package template

import (
	"encoding/json"
	"strings"
	"testing"
)

// The script that the format qwq comes from searches the whole text, prompt and
// all, for a pattern from the first <tool_call> on. It cannot read a second call,
// and it takes the example in its prompt for one. Parse gets one turn.

// TestSecondCall: the second call of a turn is read, and the JSON of each is its
// own.
func TestSecondCall(t *testing.T) {
	for name, calls := range map[string][2]string{
		"qwq":            {`<tool_call>{"action": "search", "action_input": {"query": "a"}}</tool_call>`, `<tool_call>{"action": "search", "action_input": {"query": "b"}}</tool_call>`},
		"qwen":           {`<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>`, `<tool_call>{"name": "search", "arguments": {"query": "b"}}</tool_call>`},
		"qwen3-coder":    {"<tool_call>\n<function=search>\n<parameter=query>\na\n</parameter>\n</function>\n</tool_call>", "<tool_call>\n<function=search>\n<parameter=query>\nb\n</parameter>\n</function>\n</tool_call>"},
		"mistral-v13":    {`[TOOL_CALLS]search[ARGS]{"query": "a"}`, `[TOOL_CALLS]search[ARGS]{"query": "b"}`},
		"search-r1":      {"<search>a</search>", "<search>b</search>"},
		"qwen-functions": {"✿FUNCTION✿: search\n✿ARGS✿: {\"query\": \"a\"}", "\n✿FUNCTION✿: search\n✿ARGS✿: {\"query\": \"b\"}"},
	} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, between := range []string{"", "\n", "\nAnd then I need the other one.\n"} {
			if between == "" || strings.Contains(between, "And") && f.Call.Kind == LineCalls {
				continue
			}
			text := "I need both.\n" + calls[0] + between + calls[1]
			turn := f.Parse(text, Reading{InThink: f.Think.Opened && f.Think.Calls, Strict: true})
			if got := spellCalls(turn.Calls); len(got) != 2 || got[0] != `search{"query":"a"}` || got[1] != `search{"query":"b"}` {
				t.Errorf("%s: %q gives %q, %v", name, text, got, turn.Problems)
			}
		}
	}
}

// TestPromptExample: the prompt shows how a call is spelled; that counts neither
// in the prompt, of which Parse sees nothing, nor where the model repeats it.
func TestPromptExample(t *testing.T) {
	for _, name := range []string{"qwq", "qwen", "qwen3-coder", "react", "search-r1", "deepresearch"} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tool := Tool{Name: "search", Description: "finds", Parameters: json.RawMessage(`{"type": "object", "properties": {"query": {"type": "string"}}}`)}
		parts, err := f.Open(Opening{Question: "q", Tools: []Tool{tool}, Date: "2026-01-02", MaxCalls: 5})
		if err != nil {
			t.Fatal(err)
		}
		shown := joined(parts)
		opens := f.Call.Name[:min(1, len(f.Call.Name))]
		if f.Call.Kind != LineCalls {
			opens = tagKinds[f.Call.Kind].opens(f.Call)
		}
		if !labelled(shown, opens...) {
			t.Errorf("%s: the prompt has no example", name)
		}
		turn := f.Parse("It is 7.", Reading{Tools: []Tool{tool}})
		if len(turn.Calls) > 0 {
			t.Errorf("%s: %+v", name, turn.Calls)
		}
	}
	for name, example := range map[string]string{
		"qwq":  `I am to write {"action": ..., "action_input": ...} within <tool_call>...</tool_call>, I know.` + "\n</think>\n\nIt is 7.",
		"qwen": "I was told to answer with\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>\nIt is 7.",
	} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, strict := range []bool{true, false} {
			turn := f.Parse(example, Reading{InThink: f.Think.Opened, Strict: strict})
			if len(turn.Calls) > 0 || !turn.Answered || len(turn.Problems) > 0 {
				t.Errorf("%s, strict %v: %+v", name, strict, turn)
			}
		}
	}
}

// TestNumbers: arguments that nothing was wrong with stay as they are, byte for
// byte, and no repair rounds a number.
func TestNumbers(t *testing.T) {
	big := "123456789012345678901234567890"
	for _, c := range []struct{ format, text, want string }{
		{"qwen", `<tool_call>{"name": "f", "arguments": { "n" :` + big + `, "x":1.10,"e":1E400 , "u":"\u00e9" }}</tool_call>`, `{ "n" :` + big + `, "x":1.10,"e":1E400 , "u":"\u00e9" }`},
		{"qwen", `<tool_call>{'name': 'f', 'arguments': {'n': ` + big + `, 'x': 1.10}}</tool_call>`, `{"n":` + big + `,"x":1.10}`},
		{"qwen", `<tool_call>{"name": "f", "arguments": {"n": ` + big + `}</tool_call>`, `{"n": ` + big + `}`},
		{"qwen", `<tool_call>{"name": "f", "arguments": {"n": ` + big + ` "m": 1.10}}</tool_call>`, `{"n": ` + big + `, "m": 1.10}`},
		{"qwen", `<tool_call>{"name": "f", "n": ` + big + `}</tool_call>`, `{"n":` + big + `}`},
		{"qwen", `<tool_call>{"name": "f", "arguments": "{\"n\": ` + big + `}"}</tool_call>`, `{"n": ` + big + `}`},
		{"qwen", `<tool_call>{"name": "f", "arguments": {"n": 1, "n": ` + big + `}}</tool_call>`, `{"n": 1, "n": ` + big + `}`},
		{"qwen", `<tool_call>{'name': 'f', 'arguments': {'n': 1, 'n': ` + big + `}}</tool_call>`, `{"n":` + big + `}`},
		{"qwen3-coder", "<tool_call>\n<function=g>\n<parameter=n>\n" + big + "\n</parameter>\n</function>\n</tool_call>", `{"n": ` + big + `}`},
		{"qwen3-coder", "<tool_call>\n<function=g>\n<parameter=n>\n1\n</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>", `{"n": 2}`},
		{"python", "[f(n=" + big + ", x=1.10, y=-0.5)]", `{"n": ` + big + `, "x": 1.10, "y": -0.5}`},
		{"python", "[f(n=" + big + ", x=“a”)]", `{"n": ` + big + `, "x": "a"}`},
	} {
		f, err := Load(c.format)
		if err != nil {
			t.Fatal(err)
		}
		tools := []Tool{
			{Name: "f", Parameters: json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}}`)},
			{Name: "g", Parameters: json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}}`)},
		}
		turn := f.Parse(c.text, Reading{Tools: tools})
		if len(turn.Calls) != 1 || string(turn.Calls[0].Arguments) != c.want {
			t.Errorf("%s: %q\n got %s, %v\nwant %s", c.format, c.text, spellCalls(turn.Calls), turn.Problems, c.want)
			for _, call := range turn.Calls {
				t.Errorf("    %s", call.Arguments)
			}
		}
	}
}
