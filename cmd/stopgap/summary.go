package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stopgap/models"
	"stopgap/runner"
)

// summary writes the last line: how the run ended, turns, tokens and time.
func (v *view) summary(o runner.Outcome) {
	parts := []string{
		endingWords(o.Termination),
		fmt.Sprintf("%d %s, %d %s", o.Turns, plural(o.Turns, "turn"), o.Calls, plural(o.Calls, "call")),
	}
	if words := tokenWords(o); words != "" {
		parts = append(parts, words)
	}
	parts = append(parts, duration(o.Duration))
	v.line(v.screen.paint(dim, joinParts(parts, v.screen.width())))
}

// joinParts puts parts on one line, or on several where it is too long.
func joinParts(parts []string, width int) string {
	const separator = " · "
	lines, length := []string{parts[0]}, cells(parts[0])
	for _, p := range parts[1:] {
		w := cells(p)
		if width != plain && length+cells(separator)+w > width {
			lines, length = append(lines, p), w
			continue
		}
		lines[len(lines)-1] += separator + p
		length += cells(separator) + w
	}
	var out []string
	for _, line := range lines { // a part alone may be too long as well
		out = append(out, wrap(line, width, 0)...)
	}
	return strings.Join(out, "\n")
}

// endingWords says how a run ended.
func endingWords(t runner.Termination) string {
	switch t {
	case runner.TermAnsweredForced:
		return "answered when asked to end"
	case runner.TermTurnLimit, runner.TermTokenLimit:
		return strings.ReplaceAll(string(t), "_", " ") + " reached"
	case runner.TermDeadline:
		return "time limit reached"
	case runner.TermLoop:
		return "went in circles"
	case runner.TermCancelled:
		return "interrupted"
	}
	return strings.ReplaceAll(string(t), "_", " ")
}

// tokenWords tells the tokens, and where the server does not. Nothing is said
// where nothing was generated and nothing counted.
func tokenWords(o runner.Outcome) string {
	if u := o.Usage; o.Pieces == 0 && u.Generated.N == 0 && u.Evaluated.N == 0 && u.Reused.N == 0 {
		return ""
	}
	words := []string{"tokens: "}
	if o.Usage.Generated.Known {
		words[0] += fmt.Sprintf("%d generated", o.Usage.Generated.N)
	} else {
		words[0] += fmt.Sprintf("~%d generated", o.Pieces)
	}
	if !o.Usage.Evaluated.Known && !o.Usage.Reused.Known {
		return words[0] + ", evaluated and reused unknown"
	}
	for _, c := range []struct {
		count models.Count
		name  string
	}{{o.Usage.Evaluated, "evaluated"}, {o.Usage.Reused, "reused"}} {
		if c.count.Known {
			words = append(words, fmt.Sprintf("%d %s", c.count.N, c.name))
		} else {
			words = append(words, c.name+" unknown")
		}
	}
	return strings.Join(words, ", ")
}

// duration rounds to what a person wants to know.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// callWords writes a call as a person would: search("a", "b").
func callWords(name string, arguments json.RawMessage) string {
	return printable(name + "(" + argumentWords(arguments) + ")")
}

// argumentWords leaves out what a reader does not need: the name of an only
// argument and the brackets of its list.
func argumentWords(arguments json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(arguments)) // keeps the order of the keys
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return string(arguments)
	}
	var names, values []string
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return string(arguments)
		}
		names, values = append(names, fmt.Sprint(key)), append(values, valueWords(value))
	}
	if len(names) == 1 {
		return strings.TrimSuffix(strings.TrimPrefix(values[0], "["), "]")
	}
	for i := range values {
		values[i] = names[i] + ": " + values[i]
	}
	return strings.Join(values, ", ")
}

// valueWords writes a JSON value on one line, with a space after commas of a list of texts.
func valueWords(v json.RawMessage) string {
	var texts []string
	if json.Unmarshal(v, &texts) == nil && texts != nil {
		for i, t := range texts {
			texts[i] = quote(t)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		return quote(text)
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// quote is JSON's, without escapes that hide what stands there.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(b.String(), "\n")
}
