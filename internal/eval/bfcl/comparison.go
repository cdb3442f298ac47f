package bfcl

import (
	"regexp"
	"strings"

	"stopgap/internal/eval/pystr"
)

// ignored are the characters that two texts may differ in.
var ignored = regexp.MustCompile(`[ ,./\-_*^]`)

// standard makes texts comparable: without spaces and some punctuation, lower
// case, double quotes for single ones.
func standard(s string) string {
	return strings.ReplaceAll(pystr.Lower(ignored.ReplaceAllString(s, "")), "'", `"`)
}

// standardised is standard for texts, and anything else as it is.
func standardised(v value) value {
	if s, ok := v.(string); ok {
		return standard(s)
	}
	return v
}

func standardisedAll(l list) list {
	out := list{}
	for _, v := range l {
		out = append(out, standardised(v))
	}
	return out
}

// items are the elements of a list, or the characters of a text, which is what
// Python takes them for. Anything else ends the official checker.
func items(v value) list {
	switch v := v.(type) {
	case list:
		return v
	case string:
		out := list{}
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	case *dict:
		if len(v.keys) == 0 {
			return nil
		}
	}
	panic(unjudged{"right answers that are no list"})
}

// contains is Python's "s in v".
func contains(v value, s string) bool {
	switch v := v.(type) {
	case list:
		return in(s, v)
	case string:
		return strings.Contains(v, s)
	case *dict:
		_, ok := v.get(s)
		return ok
	}
	panic(unjudged{"right answers that are no list"})
}

func texts(p, given string, possible list) Verdict {
	for _, v := range possible {
		if s, ok := v.(string); ok && standard(s) == standard(given) {
			return Verdict{}
		}
	}
	return wrong("value_error:string", "%q is %q, which is not right", p, given)
}

func lists(p string, given list, possible list) Verdict {
	mine, answers := standardisedAll(given), list{}
	for _, v := range possible {
		answers = append(answers, standardisedAll(items(v)))
	}
	if !in(mine, answers) {
		return wrong("value_error:list/tuple", "the list %q is not right", p)
	}
	return Verdict{}
}

// dicts judges an object by the right ones, each with a list of right values for
// each key. What was wrong with the last of them is told.
func dicts(given *dict, possible list) Verdict {
	v := wrong("dict_checker:unclear", "there is no right object")
	for _, candidate := range possible {
		if equal(candidate, "") {
			continue
		}
		truth, ok := candidate.(*dict)
		if !ok {
			panic(unjudged{"a right answer that is no object"})
		}
		if v = oneDict(given, truth); v.OK() {
			return v
		}
	}
	return v
}

func oneDict(given, truth *dict) Verdict {
	var v Verdict
	for _, key := range given.keys {
		mine, _ := given.get(key)
		possible, ok := truth.get(key)
		if !ok {
			v = wrong("value_error:dict_key", "the key %q is not expected", key)
			break
		}
		if !in(standardised(mine), standardisedAll(items(possible))) {
			v = wrong("value_error:dict_value", "the value of the key %q is not right", key)
			break
		}
	}
	for _, key := range truth.keys {
		possible, _ := truth.get(key)
		if _, ok := given.get(key); !ok && !contains(possible, "") {
			return wrong("value_error:dict_key", "the key %q is missing", key)
		}
	}
	return v
}

func listOfDicts(given list, possible list) Verdict {
	v := wrong("list_dict_checker:unclear", "there is no right list")
	for _, candidate := range possible {
		truth := items(candidate)
		if len(given) != len(truth) {
			v = wrong("value_error:list_dict_count", "the list has %d objects, not %d", len(given), len(truth))
			continue
		}
		fits := true
		for i := range given {
			d, ok := given[i].(*dict)
			if !ok {
				panic(unjudged{"a list with something that is no object"})
			}
			if v = dicts(d, list{truth[i]}); !v.OK() {
				fits = false
				break
			}
		}
		if fits {
			return Verdict{}
		}
	}
	return v
}

// Same reports whether two texts are the same to the checker: case, spaces and
// some punctuation do not count.
func Same(a, b string) bool { return standard(a) == standard(b) }
