package template

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestWrite spells turns that are easy to get wrong.
func TestWrite(t *testing.T) {
	search := []Call{{Name: "search", Arguments: []byte(`{"query": "owl"}`)}}
	for _, c := range []struct {
		format  string
		inThink bool
		turn    Turn
		want    string
	}{
		{"qwen", false, Turn{Text: "Ann.", Answer: "Ann.", Answered: true}, "Ann."},
		{"qwen", false, Turn{Answer: "Ann.", Answered: true}, "Ann."},
		{"qwen", false, Turn{Think: "Hm.", InThink: true}, "<think>\nHm.\n"},
		{"qwq-tools", true, Turn{Answer: "Ann.", Answered: true}, "\n</think>\n\nAnn."},
		{"qwq", true, Turn{Think: "Hm.", Calls: search, InThink: true},
			"Hm.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": \"owl\"}}\n</tool_call>"},
		{"qwq", true, Turn{Think: "Hm.", Answer: "Ann.", Answered: true, InThink: true}, "Hm.\n</think>\n\nAnn."},
		{"qwen", false, Turn{Think: "Hm.", Calls: search, InThink: true},
			"<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"owl\"}}\n</tool_call>"},
		{"react", true, Turn{Calls: search}, "\nAction: search\nAction Input: {\"query\": \"owl\"}"},
		{"react", false, Turn{Calls: search}, "Action: search\nAction Input: {\"query\": \"owl\"}"},
		{"react", false, Turn{Think: "Hm.", Answer: "Ann.", Answered: true}, "Thought: Hm.\nFinal Answer: Ann."},
		{"deepresearch", false, Turn{Answer: "Ann.", Answered: true}, "<answer>Ann.</answer>"},
		{"deepresearch", false, Turn{Text: "So:\nAnn.", Answer: "Ann.", Answered: true}, "So:\n<answer>Ann.</answer>"},
		{"deepresearch", false, Turn{Text: "So:", Answer: "Ann.", Answered: true}, "So:\n<answer>Ann.</answer>"},
		{"deepresearch", false, Turn{Calls: []Call{{Name: "PythonInterpreter", Arguments: []byte(`{"code": "print(1)\nprint(\"<b>\")"}`)}}},
			"<tool_call>\n{\"name\": \"PythonInterpreter\", \"arguments\": {}}\n<code>\nprint(1)\nprint(\"<b>\")\n</code>\n</tool_call>"},
		{"fewshot", false, Turn{Answer: "Ann.", Answered: true}, "Answer: Ann."},
		{"fewshot", false, Turn{Text: "Ann.", Answer: "Ann.", Answered: true}, "Ann."},
		{"fewshot", false, Turn{Text: "So.\nAnswer: Ann.", Answer: "Ann.", Answered: true}, "So.\nAnswer: Ann."},
		{"fewshot", false, Turn{Think: "lost", Answer: "Ann.", Answered: true}, "Answer: Ann."},
		{"qwen-functions", false, Turn{Text: "Ann.", Answer: "Ann.", Answered: true}, "Ann."},
		{"qwen-functions", false, Turn{Text: "So.", Answer: "Ann.", Answered: true}, "So.\n✿RETURN✿: Ann."},
		{"search-r1", false, Turn{Calls: []Call{{Name: "search", Arguments: []byte(`{"query": ["owl"]}`)}}}, "<search> owl </search>"},
		{"weaver-plan", false, Turn{Calls: []Call{{Name: "access", Arguments: []byte(`{"url": "https://example.org", "goal": "who"}`)}}},
			"<access> https://example.org <goal> who </goal> </access>"},
		{"weaver-plan", false, Turn{Calls: []Call{{Name: "access", Arguments: []byte(`{"url": "https://example.org"}`)}}},
			"<access> https://example.org </access>"},
		{"weaver-plan", false, Turn{Calls: []Call{{Name: "write_outline"}}}, "<write_outline>"},
		{"weaver-write", false, Turn{Calls: []Call{{Name: "retrieve", Arguments: []byte(`{"id": [1, 12], "goal": "who"}`)}}},
			"<retrieve> <id>1</id>, <id>12</id> <goal> who </goal> </retrieve>"},
		{"weaver-write", false, Turn{Calls: []Call{{Name: "write", Arguments: []byte(`{"text": "## Ann\n\nShe <cite> <id>1</id> </cite>."}`)}}},
			"<write>\n## Ann\n\nShe <cite> <id>1</id> </cite>.\n</write>"},
		{"python", false, Turn{Calls: append(search, Call{Name: "now"})}, `[search(query="owl"), now()]`},
	} {
		f, err := Load(c.format)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Write(c.turn, c.inThink); err != nil || got != c.want {
			t.Errorf("%s: %+v\n got %q, %v\nwant %q", c.format, c.turn, got, err, c.want)
		}
	}
}

// TestWriteParse: what Write spells, Parse reads as the same turn, strictly and
// without a repair.
func TestWriteParse(t *testing.T) {
	for _, name := range rendering() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		w := writer{Format: f, rand: rand.New(rand.NewPCG(1, 2))}
		w.tools = speakable(f)
		for range 400 {
			turn, inThink := w.turn()
			text, err := f.Write(turn, inThink)
			if err != nil {
				t.Fatalf("%s: %+v: %v", name, turn, err)
			}
			for _, strict := range []bool{true, false} {
				got := f.Parse(text, Reading{InThink: inThink, Tools: w.tools, Strict: strict})
				if !sameTurn(got, turn) {
					t.Fatalf("%s, strict %v: %q\n got %s\n     %+v\nwant %s", name, strict, text, describe(got, text), got, describeWritten(turn))
				}
			}
		}
	}
}

// sameTurn compares all but places in the text.
func sameTurn(a, b Turn) bool {
	sameProblems := slices.EqualFunc(a.Problems, b.Problems, func(x, y Problem) bool { return x.Kind == y.Kind })
	return sameProblems && slices.EqualFunc(a.Calls, b.Calls, func(x, y Call) bool { return sameCall(x, y) && len(x.Repairs) == 0 }) &&
		a.Think == b.Think && a.Text == b.Text && a.Answer == b.Answer && a.Answered == b.Answered && a.InThink == b.InThink
}

func describeWritten(t Turn) string {
	for i := range t.Calls {
		t.Calls[i].Start, t.Calls[i].End = 0, 0
	}
	return describe(t, "")
}

// A writer makes turns that its format can spell.
type writer struct {
	*Format
	rand  *rand.Rand
	tools []Tool
}

// turn gives a turn as Parse gives it, and whether it begins in the thinking part.
func (w writer) turn() (t Turn, inThink bool) {
	inThink = w.Think.Opened
	if w.Think.Open != "" && w.chance() {
		t.Think = w.text()
	}
	if w.Call.Kind == LineCalls {
		t.InThink = w.Think.Opened
	} else if w.Think.Close != "" && w.rand.IntN(8) == 0 { // cut
		t.InThink, t.Problems = true, []Problem{{Kind: NoCallNoAnswer}}
		return t, inThink
	}
	begins := w.Call.Bare || w.Call.Kind == PythonCalls // calls begin the text
	hasText := w.Call.Kind != LineCalls || w.Think.Open == ""
	if w.chance() {
		t.Calls = w.calls()
		if w.Think.Calls && w.Call.Kind != LineCalls {
			t.InThink = w.chance()
		}
		if hasText && !begins && !t.InThink && w.chance() {
			t.Text = w.text()
		}
		return t, inThink
	}
	t.Answer, t.Answered = w.text(), true
	spelled := t.Answer
	if w.Answer.After != "" && (!w.Answer.Optional || w.chance()) {
		spelled = w.Answer.After + " " + t.Answer
	}
	marked := spelled != t.Answer || w.Answer.Open != ""
	switch {
	case !hasText:
	case w.Call.Kind != LineCalls && marked && w.chance():
		t.Text = w.text() + "\n" + spelled
	case w.Call.Kind != LineCalls || !marked:
		t.Text = spelled
	case w.chance():
		t.Text = w.text()
	}
	return t, inThink
}

func (w writer) chance() bool { return w.rand.IntN(2) == 0 }

// pieces are what texts are made of; none is part of a tag of a format.
var pieces = []string{
	"owl", "é", "北京", "😀", " ", "  ", "\n", "\n\n", "\t", `"`, "'", `\`, `\n`, `\"`, "`", "{", "}", "[", "]", "<b>", "</b>", "< ", "&amp;",
	": ", ", ", "“", "”", "·", "1", "-0.5", "=", "%", "#", "\u2028", "\ufeff", "…", "|", "null", "//", "/*",
}

// text gives a text without white space around it, which is no JSON.
func (w writer) text() string { return "owl" + w.pieces(pieces) + "owl" }

// pieces gives some of the pieces.
func (w writer) pieces(of []string) string {
	var b strings.Builder
	for range w.rand.IntN(12) {
		b.WriteString(of[w.rand.IntN(len(of))])
	}
	return b.String()
}

// quoted gives any text, for arguments that stand in quotes; where they do not
// it is a text.
func (w writer) quoted() string {
	switch w.Call.Kind {
	case XMLCalls, TagCalls:
		return w.text()
	}
	return w.pieces(append(pieces, "\r", "\x00", "\x1b", "(", ")", "<think>", "<answer>", "</code>", "</tool_call>", "<tool_response>", "\nAction:", "\n✿ARGS✿:"))
}

func (w writer) calls() []Call {
	n := 1
	if !w.SingleCall {
		n += w.rand.IntN(3)
	}
	var out []Call
	for range n {
		tool := w.tools[w.rand.IntN(len(w.tools))]
		values := map[string]any{}
		for name, p := range tool.parameters() {
			switch {
			case tool.Name == w.Call.Body.Tool && tool.Name != "":
				values[name] = w.text()
			case w.rand.IntN(4) > 0 || w.Call.Kind == TagCalls:
				values[name] = w.value(p)
			}
		}
		arguments, _ := encode(values) // they always encode
		out = append(out, Call{Name: tool.Name, Arguments: arguments})
	}
	return out
}

// value gives a value of the parameter's type.
func (w writer) value(p parameter) any {
	switch p.Types[0] {
	case "integer":
		return w.rand.IntN(1000) - 500
	case "boolean":
		return w.chance()
	case "array":
		var list []string
		for range 1 + w.rand.IntN(3) {
			list = append(list, w.quoted())
		}
		return list
	case "object":
		return map[string]any{"a " + w.quoted(): []any{1.5, nil, w.chance(), w.quoted()}, "b": map[string]any{}}
	}
	return w.quoted()
}

// speakable gives tools that the format can call with arguments of all types
// that it can spell.
func speakable(f *Format) []Tool {
	parameters := func(properties map[string]any) json.RawMessage {
		raw, _ := encode(map[string]any{"type": "object", "properties": properties}) // it always encodes
		return raw
	}
	text := map[string]any{"type": "string"}
	list := map[string]any{"type": "array", "items": text}
	var tools []Tool
	for _, tag := range f.Call.Tags {
		properties := map[string]any{}
		for _, argument := range tag.arguments() {
			properties[argument] = text
			if argument == "id" {
				properties[argument] = list
			}
		}
		tools = append(tools, Tool{Name: tag.name(), Parameters: parameters(properties)})
	}
	if f.Call.Body.Tool != "" {
		tools = append(tools, Tool{Name: f.Call.Body.Tool, Parameters: parameters(map[string]any{f.Call.Body.Argument: text})})
	}
	if f.Call.Kind == TagCalls {
		return tools
	}
	return append(tools,
		Tool{Name: "search", Parameters: parameters(map[string]any{
			"query": list, "n": map[string]any{"type": "integer"}, "exact": map[string]any{"type": "boolean"}, "more": map[string]any{"type": "object"},
		})},
		Tool{Name: "read", Parameters: parameters(map[string]any{"id": text})},
	)
}

// TestCallData holds what the block "calls" sees.
func TestCallData(t *testing.T) {
	d, err := newCallData(Call{Name: "f", Arguments: []byte(`{"b": "x\"", "a": [1, "y", {"z": null}], "n": null, "b": "again"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"b": "x\"", "a": [1, "y", {"z": null}], "n": null, "b": "again"}`; d.Arguments != want {
		t.Errorf("arguments %s", d.Arguments)
	}
	if want := map[string]string{"a": `[1, "y", {"z": null}]`, "b": "again", "n": "null"}; !reflect.DeepEqual(d.Values, want) {
		t.Errorf("values %q", d.Values)
	}
	if want := map[string][]string{"a": {"1", "y", `{"z": null}`}, "b": {"again"}, "n": {"null"}}; !reflect.DeepEqual(d.Lists, want) {
		t.Errorf("lists %q", d.Lists)
	}
	if _, err := newCallData(Call{Name: "f", Arguments: []byte(`[]`)}); err == nil {
		t.Error("a list as arguments gives no error")
	}
}
