package bfcl

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// A Call is one call to judge. Arguments is a JSON object; 5 and 5.0 in it are
// different, as they are to the official checker.
type Call struct {
	Name      string
	Arguments json.RawMessage
}

// A Verdict says whether an answer is right. The zero value is one that is.
type Verdict struct {
	// Fault is the official checker's error_type, "" for a right answer.
	Fault string `json:"fault,omitempty"`
	// Reason says more. It may quote the model.
	Reason string `json:"reason,omitempty"`
}

// OK reports whether the answer is right.
func (v Verdict) OK() bool { return v.Fault == "" }

// Unjudged is the fault where the official checker itself ends in an exception:
// an answer of a shape that it does not know.
const Unjudged = "checker_exception"

// unjudged carries a Verdict past callers that would try another answer.
type unjudged struct{ reason string }

func wrong(fault, format string, args ...any) Verdict {
	return Verdict{fault, fmt.Sprintf(format, args...)}
}

// Check judges the calls of an answer by the rules of the official AST checker
// (bfcl_eval/eval_checker/ast_eval/ast_checker.py of 2026.3.23) for Python. A
// category of irrelevance wants no call at all, one of relevance wants any.
// underscores says that the dots of function names were made underscores, as for
// servers that take no dots.
func (it *Item) Check(calls []Call, underscores bool) (v Verdict) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unjudged:
			v = Verdict{Unjudged, r.reason}
		default:
			panic(r)
		}
	}()
	switch {
	case strings.Contains(it.Category, "irrelevance"):
		if len(calls) > 0 {
			return wrong("irrelevance_error:decoder_success", "there is a call where no function fits")
		}
		return Verdict{}
	case strings.Contains(it.Category, "relevance"):
		if len(calls) == 0 {
			return wrong("relevance_error:decoder_failed", "there is no call where a function fits")
		}
		return Verdict{}
	}
	c := checker{item: it, underscores: underscores}
	var answers []answer
	for _, call := range calls {
		arguments, err := read(call.Arguments)
		d, ok := arguments.(*dict)
		if err != nil || !ok {
			return wrong("ast_decoder:decoder_wrong_output_format", "the arguments are not a JSON object")
		}
		answers = append(answers, answer{call.Name, d})
	}
	return c.check(answers)
}

// An answer is one call with its arguments read.
type answer struct {
	name      string
	arguments *dict
}

type checker struct {
	item        *Item
	underscores bool
}

func (c checker) check(calls []answer) Verdict {
	parallel, prefix := strings.Contains(c.item.Category, "parallel"), "simple_function_checker"
	switch {
	case parallel:
		prefix = "parallel_function_checker_no_order"
	case strings.Contains(c.item.Category, "multiple"):
		prefix = "multiple_function_checker"
	}
	want := len(c.item.truth)
	if prefix == "simple_function_checker" {
		want = 1
	}
	if len(calls) != want {
		return wrong(prefix+":wrong_count", "%d calls where there should be %d", len(calls), want)
	}
	if parallel {
		return c.inAnyOrder(calls)
	}
	truth := c.item.truth[0]
	function := c.item.function(truth.name)
	if prefix == "simple_function_checker" {
		if len(c.item.functions) == 0 {
			panic(unjudged{"the item has no function"})
		}
		function = &c.item.functions[0]
	}
	return c.call(function, calls[0], truth)
}

// inAnyOrder looks for a call for each right answer, in their order, and never
// reconsiders one, as the official checker.
func (c checker) inAnyOrder(calls []answer) Verdict {
	var matched []int
	for i, truth := range c.item.truth {
		function := c.item.function(truth.name)
		var reasons []string
		found := false
		for j, call := range calls {
			if slices.Contains(matched, j) {
				continue
			}
			v := c.call(function, call, truth)
			if v.OK() {
				matched, found = append(matched, j), true
				break
			}
			reasons = append(reasons, fmt.Sprintf("call %d: %s", j+1, v.Reason))
		}
		if !found {
			return wrong("parallel_function_checker_no_order:cannot_find_match",
				"no call is right answer %d: %s", i+1, strings.Join(reasons, "; "))
		}
	}
	return Verdict{}
}

// call judges one call by one right answer.
func (c checker) call(f *function, call answer, truth right) Verdict {
	const prefix = "simple_function_checker:"
	if f == nil {
		panic(unjudged{"the right answer is no function of the item"})
	}
	if name := c.name(f.name); call.name != name {
		return wrong(prefix+"wrong_func_name", "the function %q is not called", name)
	}
	for _, p := range f.required {
		if _, ok := call.arguments.get(p); !ok {
			return wrong(prefix+"missing_required", "the required parameter %q is missing", p)
		}
	}
	for _, p := range call.arguments.keys {
		given, _ := call.arguments.get(p)
		details, known := f.properties.get(p)
		possible, expected := truth.parameters.get(p)
		if !known || !expected {
			return wrong(prefix+"unexpected_param", "the parameter %q is not expected", p)
		}
		if v := argument(p, given, details, items(possible)); !v.OK() {
			return v
		}
	}
	for _, p := range truth.parameters.keys {
		possible, _ := truth.parameters.get(p)
		if _, ok := call.arguments.get(p); !ok && !contains(possible, "") {
			return wrong(prefix+"missing_optional", "the parameter %q is missing and may not be left out", p)
		}
	}
	return Verdict{}
}

func (c checker) name(name string) string {
	if c.underscores {
		return strings.ReplaceAll(name, ".", "_")
	}
	return name
}

// kinds are the types of BFCL's function descriptions.
var kinds = map[string]kind{
	"string": text, "integer": integer, "float": decimal, "boolean": boolean,
	"array": array, "tuple": array, "dict": object, "any": text,
}

// argument judges the value of one parameter; details are its description.
func argument(p string, given, details value, possible list) Verdict {
	described := described(details)
	expected, nested := kinds[described], none
	if expected == none {
		panic(unjudged{fmt.Sprintf("the type %q is not known", described)})
	}
	if expected == array {
		element, _ := details.(*dict).get("items")
		if nested = kinds[typeName(element)]; nested == none {
			panic(unjudged{fmt.Sprintf("the items of %q have no known type", p)})
		}
	}
	if i, ok := given.(*big.Int); ok && described == "float" {
		f, _ := new(big.Float).SetInt(i).Float64()
		if math.IsInf(f, 0) {
			panic(unjudged{"an integer that no float holds"})
		}
		given = f
	}
	variable, v := typed(p, given, possible, described, expected, nested)
	switch {
	case !v.OK():
		return v
	case variable:
	case expected == object:
		return dicts(given.(*dict), possible)
	case expected == array && nested == object:
		return listOfDicts(given.(list), possible)
	case expected == text:
		return texts(p, given.(string), possible)
	case expected == array:
		return lists(p, given.(list), possible)
	}
	if !in(given, possible) {
		return wrong("value_error:others", "the value of %q is not one of those that are right", p)
	}
	return Verdict{}
}

func described(details value) string {
	if name := typeName(details); name != "" {
		return name
	}
	panic(unjudged{"a parameter without a type"})
}

func typeName(details value) string {
	d, ok := details.(*dict)
	if !ok {
		return ""
	}
	name, _ := d.get("type")
	s, _ := name.(string)
	return s
}

// kindOfAnswers is that of the first right value that is not "", which marks a
// parameter that may be left out.
func kindOfAnswers(possible list) kind {
	for _, v := range possible {
		if !equal(v, "") {
			return kindOf(v)
		}
	}
	return none
}

// typed judges the type of a value, and of a list's elements. A value of the
// type of the right answers, where that is not the described one, is a variable:
// the answer names it in place of its value.
func typed(p string, given value, possible list, name string, expected, nested kind) (variable bool, v Verdict) {
	answers := kindOfAnswers(possible)
	other := answers != none && answers != expected
	if kindOf(given) == expected {
		if nested == none {
			return other, Verdict{}
		}
		for _, candidate := range possible {
			if elementsFit(p, given, candidate, nested) {
				return other, Verdict{}
			}
		}
		v = wrong("type_error:nested", "the elements of %q are not all of type %s", p, nested)
	}
	if answers != none && kindOf(given) == answers {
		return true, v
	}
	return false, wrong("type_error:simple", "%q is of type %s, not %s", p, kindOf(given), name)
}

// elementsFit reports whether the elements have the type that a right answer
// has. One that is no list fits all.
func elementsFit(p string, given, candidate value, nested kind) bool {
	l, ok := candidate.(list)
	if !ok {
		return true
	}
	for _, element := range elements(given) {
		if _, v := typed(p, element, l, string(nested), nested, none); !v.OK() {
			return false
		}
	}
	return true
}

// elements are what Python iterates over.
func elements(v value) list {
	l, ok := v.(list)
	if !ok {
		panic(unjudged{"a value that cannot be iterated over"})
	}
	return l
}
