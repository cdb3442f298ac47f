package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Write spells a turn as a model writes it: its thought, its text, and its
// calls or its answer. inThink says that the prompt has opened the thinking
// part. Where t.InThink is true and nothing follows the thought, or calls that
// count inside of it, it stays open. Write is the inverse of Parse: what it gives
// reads as the same turn, as far as the format can spell it. Text that is a tag
// of the format itself is not escaped, because models do not. The error is a
// *FormatError.
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
	text := t.Text
	if t.Answered {
		text = f.writeAnswer(t)
	}
	return f.writeThink(t, inThink) + joinLines(text, calls), nil
}

// writeThink spells the thinking part, up to where the text after it begins.
func (f *Format) writeThink(t Turn, inThink bool) string {
	open := t.InThink && t.Text == "" && !t.Answered && (len(t.Calls) == 0 || f.Think.Calls)
	if f.Think.Open == "" || t.Think == "" && !inThink && !open {
		return ""
	}
	out := ""
	if !inThink {
		out = f.Think.Open + "\n"
	}
	if t.Think != "" || !open {
		out += t.Think + "\n"
	}
	if !open {
		out += f.Think.Close + "\n\n"
	}
	return out
}

// writeAnswer spells the text of a turn with its answer. Parse leaves the answer
// in the text too, with its marker and without its tags.
func (f *Format) writeAnswer(t Turn) string {
	whole := t.Text == t.Answer && t.Answer != ""
	switch {
	case f.Answer == Answer{} || f.Answer.Optional && whole:
		return cmp.Or(t.Text, t.Answer)
	case f.Answer.After != "" && strings.Contains(t.Text, f.Answer.After):
		return t.Text
	case f.Answer.After != "" && whole:
		return f.Answer.After + " " + t.Answer
	case f.Answer.After != "":
		return joinLines(t.Text, f.Answer.After+" "+t.Answer)
	}
	spelled := f.Answer.Open + t.Answer + f.Answer.Close
	if at := strings.LastIndex(t.Text, t.Answer); at >= 0 && t.Text != "" {
		return t.Text[:at] + spelled + t.Text[at+len(t.Answer):]
	}
	return joinLines(t.Text, spelled)
}

// writeLines is Write for calls in lines.
func (f *Format) writeLines(t Turn, calls string, inThink bool) string {
	first := t.Text
	if f.Think.Open != "" {
		first = t.Think
	}
	answer := ""
	if t.Answered && !(f.Answer.Optional && t.Text == t.Answer && t.Answer != "") {
		answer = f.Answer.After + " " + t.Answer
	}
	switch rest := joinLines(calls, answer); {
	case f.Think.Open == "":
		return joinLines(first, rest)
	case inThink && first == "":
		return "\n" + rest
	case inThink:
		return " " + joinLines(first, rest)
	case first == "":
		return rest
	default:
		return f.Think.Open + " " + joinLines(first, rest)
	}
}

// joinLines puts two texts below each other, where there are two.
func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
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
