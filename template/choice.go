package template

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
)

// A Frame is what stands around the name and the arguments of one call, where
// the arguments are a JSON object: Before, the name, Between, the arguments,
// After.
type Frame struct {
	Before string
	// Quoted says that the name is a JSON string.
	Quoted  bool
	Between string
	After   string
	// Opening is the regular expression that matches where a model begins a
	// call, and Opened the part of Before that has been written by then.
	Opening string
	Opened  string
}

// Frame gives the frame of a call, or false where the arguments are not spelled
// as one JSON object.
func (f *Format) Frame() (Frame, bool) {
	name, key := rand.Text(), rand.Text()
	object := fmt.Sprintf(`{"%s": 1}`, key)
	out, err := f.writeCalls([]Call{{Name: name, Arguments: []byte(object)}})
	i, j := strings.Index(out, name), strings.Index(out, object)
	if err != nil || i < 0 || j < i {
		return Frame{}, false
	}
	fr := Frame{Before: out[:i], Between: out[i+len(name) : j], After: out[j+len(object):]}
	if before, ok := strings.CutSuffix(fr.Before, `"`); ok && strings.HasPrefix(fr.Between, `"`) {
		fr.Before, fr.Between, fr.Quoted = before, fr.Between[1:], true
	}
	switch {
	case f.Call.Kind == LineCalls:
		fr.Opened = f.Call.Name[0]
		fr.Opening = `(?:^|\n)` + regexp.QuoteMeta(fr.Opened)
	case strings.HasPrefix(fr.Before, f.Call.Open) && f.Call.Open != "":
		fr.Opened = f.Call.Open
		fr.Opening = regexp.QuoteMeta(fr.Opened)
	case f.Call.Bare && strings.HasPrefix(fr.Before, "{"):
		fr.Opened, fr.Opening = "{", `^\s*(?:`+regexp.QuoteMeta(f.Call.Open)+`\s*)?\{`
	}
	return fr, fr.Opened != "" && strings.HasPrefix(fr.Before, fr.Opened)
}

// Prefix gives the words that make a turn begin with a call: of any tool, or of
// the named one, then up to its arguments. inThink says that the prompt has
// opened the thinking part. ok is false where the format cannot spell that.
func (f *Format) Prefix(tool string, tools []Tool, inThink bool) (prefix string, ok bool) {
	if tool == "" && f.Call.Kind == TagCalls && len(tools) == 1 {
		tool = tools[0].Name
	}
	if tool == "" {
		prefix = f.anyCall()
	} else {
		prefix = f.namedCall(tool)
	}
	if prefix == "" {
		return "", false
	}
	switch {
	case f.Call.Kind == LineCalls && inThink:
		prefix = "\n" + prefix
	case f.Call.Kind != LineCalls && inThink && !f.Think.Calls:
		prefix = "\n" + f.Think.Close + "\n\n" + prefix
	}
	return prefix, true
}

// anyCall is the beginning of a call of any tool.
func (f *Format) anyCall() string {
	switch f.Call.Kind {
	case LineCalls:
		return f.Call.Name[0]
	case PythonCalls:
		return "["
	case TagCalls:
		return ""
	}
	if f.Call.Bare {
		if fr, ok := f.Frame(); ok {
			return strings.TrimRight(fr.Before, " ")
		}
	}
	return f.Call.Open
}

// namedCall is the beginning of a call of the tool, up to its arguments.
func (f *Format) namedCall(tool string) string {
	if fr, ok := f.Frame(); ok {
		if fr.Quoted {
			tool = pythonString(tool)
		}
		return strings.TrimRight(fr.Before+tool+fr.Between, " ")
	}
	if f.Call.Kind == TagCalls {
		for _, t := range f.Call.Tags {
			if t.name() == tool {
				return t.open()
			}
		}
		return ""
	}
	key := rand.Text()
	out, err := f.writeCalls([]Call{{Name: tool, Arguments: []byte(fmt.Sprintf(`{"%s": 1}`, key))}})
	i := strings.Index(out, key)
	if err != nil || i < 0 {
		return ""
	}
	out = out[:i]
	if f.Call.Kind == XMLCalls { // whether there is an argument is the model's choice
		out = strings.TrimRight(strings.TrimSuffix(out, f.Call.Arguments[0]), " ")
	}
	return out
}

// WithCallsInThink gives the format with calls inside the thinking part counted
// or not, where it has one: the switch of the head's think.calls, and the
// stops that end a turn at a call with it.
func (f *Format) WithCallsInThink(count bool) *Format {
	if f.Think.Close == "" || f.Think.Calls == count {
		return f
	}
	other := *f
	other.Think.Calls = count
	other.Stops = nil
	for _, s := range f.Stops {
		if (s.Means == MeansCall || s.Means == MeansInvented) && s.After == "" {
			s.OutsideThink = !count
		}
		other.Stops = append(other.Stops, s)
	}
	return &other
}
