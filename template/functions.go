package template

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// funcs are the functions of blocks; Compile's comment says what each is for.
// JSON is a json.RawMessage; one that is empty is a value that is not there.
var funcs = template.FuncMap{
	"json":    jsonText,
	"indent":  indented,
	"python":  literal.spell,
	"str":     pythonStr,
	"kind":    kindOf,
	"field":   field,
	"entries": entries,
	"trim":    trimmed,
	"date":    dateText,
	"join":    strings.Join,
	"names": func(tools []Tool) []string {
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.Name
		}
		return names
	},
}

func jsonText(v any) (any, error) {
	switch v := v.(type) {
	case hidden:
		if v == "" {
			return `""`, nil
		}
		return v.then(opJSON), nil
	case string:
		return pythonString(v), nil
	case json.RawMessage:
		return pythonJSON(v)
	}
	return nil, fmt.Errorf("json renders texts and parameters, not %T", v)
}

// maxIndentation bounds width and level: what they give is bounded too then.
const maxIndentation = 64

func indented(width, level int, v json.RawMessage) (string, error) {
	if width < 1 || width > maxIndentation || level < 0 || level > maxIndentation {
		return "", fmt.Errorf("indent takes a width from 1 and a level from 0, to %d", maxIndentation)
	}
	d := dumps
	d.width, d.beginning = width, level
	return d.spell(v)
}

// pythonStr is Python's str of a value: a text is itself.
func pythonStr(v json.RawMessage) (string, error) {
	var text string
	if kindOf(v) == "string" && json.Unmarshal(v, &text) == nil {
		return text, nil
	}
	return repr.spell(v)
}

// field gives the value of a key, nothing where there is none.
func field(v json.RawMessage, key string) json.RawMessage {
	keys, _ := object(v)
	return keys[key]
}

// entries gives the keys of an object with their values, in their order. What
// is not an object has none.
func entries(v json.RawMessage) []entry {
	values, ok := object(v)
	if !ok {
		return nil
	}
	var out []entry
	for _, key := range keyOrder(v) {
		e := entry{Key: key, JSON: values[key]}
		if kindOf(e.JSON) != "string" || json.Unmarshal(e.JSON, &e.Text) != nil {
			e.Text, _ = pythonJSON(e.JSON) // it is part of valid JSON
		}
		out = append(out, e)
	}
	return out
}

func trimmed(v any) (any, error) {
	switch v := v.(type) {
	case hidden:
		return v.then(opTrim), nil
	case string:
		return strings.TrimSpace(v), nil
	}
	return nil, fmt.Errorf("trim takes a text, not %T", v)
}

// dateVerbs are those of strftime, with the layouts of package time.
var dateVerbs = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'B': "January", 'b': "Jan", 'd': "02", 'A': "Monday", 'a': "Mon", '%': "%",
}

func dateText(layout, date string) (string, error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return "", fmt.Errorf("%q is no date of the form YYYY-MM-DD", date)
	}
	before, rest, found := strings.Cut(layout, "%")
	out := before
	for found {
		if rest == "" || dateVerbs[rest[0]] == "" {
			return "", fmt.Errorf("date does not know %%%.1s, it has %%Y %%y %%m %%B %%b %%d %%A %%a %%%%", rest)
		}
		verb := dateVerbs[rest[0]]
		before, rest, found = strings.Cut(rest[1:], "%")
		out += day.Format(verb) + before
	}
	return out, nil
}
