package template

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// tryBlocks renders every block with sample data, so that a field that does
// not exist or an untrusted string that is never printed is found when the
// format is compiled.
func (f *Format) tryBlocks() error {
	switch f.Opening {
	case OpenServer:
		return nil
	case OpenChat:
		return f.tryWords()
	}
	tool := Tool{Name: "search", Description: "finds documents", Parameters: []byte(`{"type": "object", "properties": {}}`)}
	openings := []Opening{
		{Question: "q"},
		{System: "s", Question: "q", Tools: []Tool{tool, tool}, Date: "2025-01-31", MaxCalls: 2, Values: map[string]string{"k": "v"}, Texts: map[string]string{"k": "t"}},
	}
	for _, o := range openings {
		parts, err := f.Open(o)
		if err := f.mustPrint("prompt", ".Question", FromUser, parts, err); err != nil {
			return err
		}
	}
	results := []Result{{Name: "search", ID: "call00001", Content: "r"}, {Name: "search", ID: "call00002", Content: "r", Error: true}}
	for _, end := range []Continuation{{}, {Open: true}, {InThink: true}, {Open: true, InThink: true}} {
		for _, s := range []struct {
			field string
			from  Source
			c     Continuation
		}{
			{".Content of .Results", FromTool, Continuation{Results: results}},
			{".Note", FromRunner, Continuation{Note: "n"}},
			{".Note", FromRunner, Continuation{Note: "n", Results: results}},
			{".Question", FromUser, Continuation{Question: "q"}},
		} {
			s.c.Open, s.c.InThink = end.Open, end.InThink
			parts, err := f.Continue(s.c)
			if err := f.mustPrint("continue", s.field, s.from, parts, err); err != nil {
				return err
			}
		}
	}
	if err := f.tryCalls(); err != nil {
		return err
	}
	return f.tryWords()
}

// tryCalls spells calls and reads them again: what the format tells models to
// write must be what it reads.
func (f *Format) tryCalls() error {
	calls, tools := f.samples()
	for _, some := range [][]Call{calls[:1], calls} {
		if len(some) > 1 && f.SingleCall {
			continue
		}
		text, err := f.Write(Turn{Calls: some}, false)
		if err != nil {
			return err
		}
		for _, tag := range f.tags() {
			if part := tag.field == "call.open" || tag.field == "call.close"; part && !f.Call.Bare && !strings.Contains(text, tag.text) {
				return f.inBlock("calls", fmt.Sprintf("it never writes %s, %q", tag.field, tag.text))
			}
		}
		read := f.parse(text, Reading{Tools: tools, Strict: true})
		if len(read.Problems) > 0 {
			return f.inBlock("calls", "what it renders is not read as calls: "+read.Problems[0].Message)
		}
		if !slices.EqualFunc(read.Calls, some, sameCall) {
			return f.inBlock("calls", "what it renders is read as other calls than those that were to be spelled")
		}
	}
	return nil
}

// samples are calls that the format can spell, and their tools.
func (f *Format) samples() ([]Call, []Tool) {
	if f.Call.Kind != TagCalls {
		schema := []byte(`{"type": "object", "properties": {"query": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}}}`)
		return []Call{
			{Name: "search", Arguments: []byte(`{"query": ["a \"b\"", "c"], "n": 3}`)},
			{Name: "read", Arguments: []byte(`{"id": "7"}`)},
		}, []Tool{{Name: "search", Parameters: schema}, {Name: "read", Parameters: []byte(`{"type": "object", "properties": {"id": {"type": "string"}}}`)}}
	}
	var calls []Call
	var tools []Tool
	for _, t := range f.Call.Tags {
		values, properties := map[string]string{}, map[string]any{}
		for _, argument := range t.arguments() {
			values[argument], properties[argument] = "a b", map[string]string{"type": "string"}
		}
		arguments, _ := encode(values) // texts always encode
		schema, _ := encode(map[string]any{"type": "object", "properties": properties})
		calls = append(calls, Call{Name: t.name(), Arguments: arguments})
		tools = append(tools, Tool{Name: t.name(), Parameters: schema})
	}
	return calls, tools
}

// sameCall compares calls by name and by the values of their arguments.
func sameCall(a, b Call) bool {
	var x, y any
	return a.Name == b.Name && json.Unmarshal(a.Arguments, &x) == nil && json.Unmarshal(b.Arguments, &y) == nil && reflect.DeepEqual(x, y)
}

func (f *Format) mustPrint(block, field string, from Source, parts []Part, err error) error {
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.Source == from }) {
		return f.inBlock(block, "the block never prints "+field)
	}
	return nil
}

func (f *Format) tryWords() error {
	for _, reason := range []string{"", "a limit is reached"} {
		if err := f.mustSay("force")(f.Force(reason)); err != nil {
			return err
		}
	}
	for _, kind := range []ProblemKind{
		UnclosedCall, BadJSON, MissingName, CallInThink, InventedResponse, TextAfterCall, NoCallNoAnswer, RepeatedCall, "other",
	} {
		if err := f.mustSay("nudge")(f.Nudge(kind)); err != nil {
			return err
		}
		for _, tools := range [][]string{nil, {"a", "b"}} {
			if err := f.mustSay("problem")(f.Problem(Problem{Kind: kind, Message: "m"}, tools)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Format) mustSay(block string) func(string, error) error {
	return func(text string, err error) error {
		if err == nil && text == "" {
			err = f.inBlock(block, "the block renders nothing")
		}
		return err
	}
}
