package template

import "slices"

// tryBlocks renders every block with sample data, so that a field that does
// not exist or an untrusted string that is never printed is found when the
// format is compiled.
func (f *Format) tryBlocks() error {
	tool := Tool{Name: "search", Description: "finds documents", Parameters: []byte(`{"type": "object", "properties": {}}`)}
	openings := []Opening{
		{Question: "q"},
		{System: "s", Question: "q", Tools: []Tool{tool, tool}, Date: "2025-01-31", MaxCalls: 2, Values: map[string]string{"k": "v"}},
	}
	for _, o := range openings {
		parts, err := f.Open(o)
		if err := f.mustPrint("prompt", ".Question", FromUser, parts, err); err != nil {
			return err
		}
	}
	results := []Result{{Name: "search", Content: "r"}, {Name: "search", Content: "r", Error: true}}
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
	return f.tryWords()
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
