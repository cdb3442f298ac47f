package probe

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"stopgap/internal/eval/bfcl"
	"stopgap/tools"
)

//go:embed suite/*.jsonl
var shipped embed.FS

// A written case is one line of the suite.
type written struct {
	ID       string       `json:"id"`
	Group    string       `json:"group"`
	Language string       `json:"language"`
	Question string       `json:"question"`
	Tools    []string     `json:"tools"` // names of suite/tools.jsonl
	History  [][]Exchange `json:"history"`
	// Right are the replies that are right, each of them.
	Right []expectation `json:"right"`
}

// An expectation is a reply that is right: calls in any order, or none and what
// the text holds.
type expectation struct {
	Calls []expected `json:"calls"`
	// Says are texts of which one must stand in the answer, Never such as must not.
	Says  []string `json:"says"`
	Never []string `json:"never"`
}

// An expected call has for each argument the values that are right; null among
// them says that it may be left out.
type expected struct {
	Name      string           `json:"name"`
	Arguments map[string][]any `json:"arguments"`
}

// Suite gives the cases that are shipped, in the order of the file.
func Suite() ([]*Case, error) {
	catalogue := map[string]tools.Spec{}
	err := eachLine("suite/tools.jsonl", func(line []byte) error {
		var t struct {
			Name, Description string
			Parameters        json.RawMessage
		}
		err := strict(line, &t)
		catalogue[t.Name] = tools.Spec{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
		return err
	})
	if err != nil {
		return nil, err
	}
	var cases []*Case
	err = eachLine("suite/cases.jsonl", func(line []byte) error {
		var w written
		if err := strict(line, &w); err != nil {
			return err
		}
		c := &Case{
			ID: w.ID, Group: w.Group, Language: w.Language, Question: w.Question, History: w.History,
			Wanted: len(w.Right) > 0 && len(w.Right[0].Calls) > 0, judge: w.judge,
		}
		for _, name := range w.Tools {
			spec, ok := catalogue[name]
			if !ok {
				return fmt.Errorf("%s: there is no tool %q", w.ID, name)
			}
			c.Tools = append(c.Tools, spec)
		}
		cases = append(cases, c)
		return nil
	})
	return cases, err
}

func eachLine(file string, use func([]byte) error) error {
	b, err := shipped.ReadFile(file)
	if err != nil {
		return err
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if err := use(line); err != nil {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return nil
}

// strict reads JSON and refuses keys that mean nothing.
func strict(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// judge compares a reply with those that are right. What is wrong is told by the
// first of them.
func (w *written) judge(r Reply) Verdict {
	var first Verdict
	for i, e := range w.Right {
		v := e.judge(r)
		if v.OK() {
			return v
		}
		if i == 0 {
			first = v
		}
	}
	return first
}

func fault(kind, format string, args ...any) Verdict {
	return Verdict{Fault: kind, Reason: fmt.Sprintf(format, args...)}
}

func (e *expectation) judge(r Reply) Verdict {
	switch n := len(e.Calls); {
	case n == 0 && len(r.Calls) > 0:
		return fault(FaultCall, "%s is called, and no call is right", r.Calls[0].Name)
	case n > 0 && len(r.Calls) == 0:
		return fault(FaultNoCall, "nothing is called where %s is right", e.Calls[0].Name)
	case n != len(r.Calls):
		return fault(FaultCount, "%d calls where %d are right", len(r.Calls), n)
	case n == 0:
		return e.text(r.Answer)
	}
	left := r.Calls
	for _, want := range e.Calls {
		var v Verdict
		at := -1
		for i, c := range left {
			if got := want.judge(c); got.OK() {
				at = i
				break
			} else if v.OK() || v.Fault == FaultTool { // a fault of the right tool says more
				v = got
			}
		}
		if at < 0 {
			return v
		}
		left = append(append([]Call(nil), left[:at]...), left[at+1:]...)
	}
	return Verdict{}
}

// text judges an answer that is no call.
func (e *expectation) text(answer string) Verdict {
	for _, s := range e.Never {
		if holds(answer, s) {
			return fault(FaultAnswer, "the answer says %q", s)
		}
	}
	if len(e.Says) == 0 {
		return Verdict{}
	}
	for _, s := range e.Says {
		if holds(answer, s) {
			return Verdict{}
		}
	}
	return fault(FaultAnswer, "the answer does not say %q", e.Says[0])
}

func holds(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (e *expected) judge(c Call) Verdict {
	if c.Name != e.Name {
		return fault(FaultTool, "%s is called, and %s is right", c.Name, e.Name)
	}
	var given map[string]any
	if err := json.Unmarshal(c.Arguments, &given); err != nil {
		return fault(FaultValue, "the arguments are no JSON object")
	}
	for name := range given {
		if _, ok := e.Arguments[name]; !ok {
			return fault(FaultUnexpected, "the argument %q of %s is not expected", name, e.Name)
		}
	}
	for name, values := range e.Arguments {
		value, ok := given[name]
		if !ok && !anyOf(nil, values) {
			return fault(FaultMissing, "the argument %q of %s is missing", name, e.Name)
		}
		if ok && !anyOf(value, values) {
			return fault(FaultValue, "the argument %q of %s has a wrong value", name, e.Name)
		}
	}
	return Verdict{}
}

func anyOf(value any, values []any) bool {
	for _, v := range values {
		if same(value, v) {
			return true
		}
	}
	return false
}

// same compares values: numbers by what they are worth, texts as BFCL does,
// objects key by key.
func same(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && bfcl.Same(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !same(x[k], v) {
				return false
			}
		}
		return true
	}
	return a == b
}
