package template

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Write spells a turn as a model writes it: its thought, its text, and its
// calls or its answer. inThink says that the prompt has opened the thinking
// part. It is the inverse of Parse: what it gives reads as the same turn. Text
// that is a tag of the format itself is not escaped, because models do not.
// The error is a *FormatError.
func (f *Format) Write(t Turn, inThink bool) (string, error) {
	calls := ""
	if len(t.Calls) > 0 {
		var err error
		if calls, err = f.writeCalls(t.Calls); err != nil {
			return "", err
		}
	}
	if f.Call.Kind == LineCalls {
		return f.writeLines(t, calls, inThink), nil
	}
	var b strings.Builder
	callInThink := inThink && f.Think.Calls && len(t.Calls) > 0 && t.InThink
	if t.Think != "" {
		if !inThink {
			b.WriteString(f.Think.Open + "\n")
		}
		b.WriteString(t.Think + "\n")
	}
	if (t.Think != "" || inThink) && !callInThink {
		b.WriteString(f.Think.Close + "\n\n")
	}
	parts := []string{t.Text, calls}
	if t.Answered {
		if parts = []string{f.Answer.Open + t.Answer + f.Answer.Close}; f.Answer.After != "" {
			parts[0] = f.Answer.After + " " + t.Answer
		}
		if f.Answer != (Answer{}) && t.Text != "" && t.Text != t.Answer && !strings.Contains(t.Text, f.Answer.After+f.Answer.Open) {
			parts = append([]string{t.Text}, parts...)
		}
	}
	for i, p := range parts {
		if p != "" && i > 0 && parts[i-1] != "" {
			b.WriteString("\n")
		}
		b.WriteString(p)
	}
	return b.String(), nil
}

// writeLines is Write for calls in lines.
func (f *Format) writeLines(t Turn, calls string, inThink bool) string {
	var lines []string
	switch {
	case f.Think.Open == "":
		lines = append(lines, t.Text)
	case inThink:
		lines = append(lines, " "+t.Think)
	default:
		lines = append(lines, f.Think.Open+" "+t.Think)
	}
	lines = append(lines, calls)
	if t.Answered {
		lines = append(lines, f.Answer.After+" "+t.Answer)
	}
	var out []string
	for _, l := range lines {
		if l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// What the block "calls" sees.
type (
	callsData struct{ Calls []callData }
	callData  struct {
		Name string
		// Arguments is the object as Python's json.dumps spells it.
		Arguments string
		Pairs     []entry
		// Values are the texts of the arguments by name: a string as it is,
		// anything else as JSON, "" for one that is missing.
		Values map[string]string
		// Lists are the texts of an argument's elements by name; what is not a
		// list has one.
		Lists map[string][]string
	}
	entry struct {
		Key  string
		Text string          // as in Values
		JSON json.RawMessage // for python, str, kind
	}
)

func (f *Format) writeCalls(calls []Call) (string, error) {
	var data callsData
	for _, c := range calls {
		d, err := newCallData(c)
		if err != nil {
			return "", fmt.Errorf("arguments of %q: %w", c.Name, err)
		}
		data.Calls = append(data.Calls, d)
	}
	var b strings.Builder
	if err := f.blocks.ExecuteTemplate(&b, "calls", data); err != nil {
		return "", blockError(f.Name, err)
	}
	return b.String(), nil
}

func newCallData(c Call) (callData, error) {
	d := callData{Name: c.Name, Values: map[string]string{}, Lists: map[string][]string{}}
	arguments := c.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var err error
	if d.Arguments, err = pythonJSON(arguments); err != nil {
		return d, err
	}
	if _, ok := object(arguments); !ok {
		return d, fmt.Errorf("not a JSON object")
	}
	d.Pairs = entries(arguments)
	for _, p := range d.Pairs {
		d.Values[p.Key], d.Lists[p.Key] = p.Text, elements(p)
	}
	return d, nil
}

// elements gives the texts of a list, or the one of anything else.
func elements(e entry) []string {
	var list []json.RawMessage
	if kindOf(e.JSON) != "array" || json.Unmarshal(e.JSON, &list) != nil {
		return []string{e.Text}
	}
	texts := make([]string, len(list))
	for i, v := range list {
		if kindOf(v) != "string" || json.Unmarshal(v, &texts[i]) != nil {
			texts[i], _ = pythonJSON(v) // it is part of valid JSON
		}
	}
	return texts
}

// keyOrder gives the keys of a valid JSON object in their order, each once.
func keyOrder(value json.RawMessage) []string {
	dec := json.NewDecoder(strings.NewReader(string(value)))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var skipped json.RawMessage
		if err != nil || !ok || dec.Decode(&skipped) != nil {
			break
		}
		if !seen[name] {
			names, seen[name] = append(names, name), true
		}
	}
	return names
}
