package template

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// checkUnmatched looks for tags of the head that nothing else knows: they are
// misspelled there, or in the blocks. s is the file itself.
func (f *Format) checkUnmatched(s source) error {
	if f.Opening != OpenOwn {
		return nil
	}
	_, tools := f.samples()
	opening, err := f.Open(Opening{System: "s", Question: "q", Tools: tools, Date: "2025-01-31", MaxCalls: 2})
	if err != nil {
		return err
	}
	prompt := joined(opening)
	if f.Think.Opened && !strings.Contains(prompt, f.Think.Open) {
		return f.unmatched(s, "think.open", f.Think.Open, "prompt")
	}
	results, err := f.Continue(Continuation{Results: []Result{{Name: "search", ID: "call00001", Content: "r"}}})
	if err != nil {
		return err
	}
	for _, tag := range f.tags() {
		if strings.HasPrefix(tag.field, "response.") && !strings.Contains(joined(results), tag.text) {
			return f.unmatched(s, tag.field, tag.text, "continue")
		}
	}
	return f.checkStopTags(s, prompt+joined(results))
}

// unmatched says that a block never writes a tag of the head. The line is the
// key's, where the file itself has it, else the block's.
func (f *Format) unmatched(s source, field, tag, block string) error {
	if line := s.line(field); line > 0 {
		return &FormatError{Name: s.name, Line: line, Field: field, Msg: fmt.Sprintf("the block %q never writes %q", block, tag)}
	}
	return f.inBlock(block, fmt.Sprintf("it never writes %s, %q", field, tag))
}

var (
	// element is a tag as XML spells it, control a control token.
	element = regexp.MustCompile(`^</?([A-Za-z][\w.-]*)>$`)
	control = regexp.MustCompile(`^<[|｜][^<>\s]+[|｜]>$`)
)

// checkStopTags refuses a stop at a tag that is a slip of the pen: no model has
// been told of it, so that it would never fire. An element is refused where it
// is almost one of the format's; a control token, which is always a string of
// the format, where nothing names it.
func (f *Format) checkStopTags(s source, written string) error {
	known := slices.Concat(f.Reserved.Strings, f.Reserved.Lines, f.Preserve, f.elements())
	for i, stop := range f.Stops {
		tag := strings.TrimSpace(stop.Literal)
		if slices.Contains(known, tag) || strings.Contains(written, tag) {
			continue
		}
		near := ""
		for _, k := range known {
			if most := max(1, len(tag)/5); sameShape(k, tag) && distance(k, tag) <= most {
				near = fmt.Sprintf(", did you mean %q?", k)
			}
		}
		switch {
		case element.MatchString(tag) && near != "":
		case control.MatchString(tag) && near == "":
			near = "; name it in reserved.strings, so that no text from outside can bring it either"
		case !control.MatchString(tag):
			continue
		}
		field := fmt.Sprintf("stops[%d].literal", i)
		return &FormatError{
			Name: s.name, Line: s.line(field), Field: field,
			Msg: fmt.Sprintf("stop %q: the format knows no %q%s", stop.Name, tag, near),
		}
	}
	return nil
}

// sameShape reports whether two tags are both opening or both closing elements,
// or both control tokens.
func sameShape(a, b string) bool {
	return strings.HasPrefix(a, "</") == strings.HasPrefix(b, "</") && control.MatchString(a) == control.MatchString(b)
}

// elements are the tags of calls that the head does not spell out.
func (f *Format) elements() []string {
	var out []string
	switch f.Call.Kind {
	case XMLCalls:
		out = append(out, closingOf(f.Call.Name[0]), closingOf(f.Call.Arguments[0]))
	case TagCalls:
		for _, t := range f.Call.Tags {
			out = append(out, t.open(), t.close())
			for child := range t.Children {
				out = append(out, "<"+child+">", "</"+child+">")
			}
		}
	}
	return out
}

func joined(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// checkPairs refuses a closing tag of another element than its opening one.
func (h *Head) checkPairs() (field, msg string) {
	c := h.Call
	for _, pair := range []struct{ part, open, close string }{
		{"think", h.Think.Open, h.Think.Close}, {"call", c.Open, c.Close}, {"call.body", c.Body.Open, c.Body.Close},
		{"response", h.Response.Open, h.Response.Close}, {"answer", h.Answer.Open, h.Answer.Close},
	} {
		opened, closed := element.FindStringSubmatch(pair.open), element.FindStringSubmatch(pair.close)
		if opened != nil && closed != nil && pair.close != "</"+opened[1]+">" {
			return pair.part + ".close", fmt.Sprintf("%q does not close %q", pair.close, pair.open)
		}
	}
	return "", ""
}
