package endtoend

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"stopgap/stopping"
)

// A firing is a match of a criterion: its bytes, and where the output ends.
type firing struct {
	criterion        string
	start, end, keep int
	groups           map[string]string
}

// A verdict is what happens to a text: the matches that are only reported, and
// the one that ends it, nil where none does.
type verdict struct {
	reports []firing
	stop    *firing
}

// keep is how much of the text is output.
func (v verdict) keep(text string) string {
	if v.stop == nil {
		return text
	}
	return text[:v.stop.keep]
}

func (v verdict) String() string {
	if v.stop == nil {
		return fmt.Sprintf("reports %+v, no stop", v.reports)
	}
	return fmt.Sprintf("reports %+v, stop %+v", v.reports, *v.stop)
}

// define says by brute force what criteria mean for a text: at every p, in
// order, it asks each of them whether it matches text[:p] up to its end. It
// knows what the tests use, and shares nothing with the engine but regexp2.
func define(t testing.TB, criteria []stopping.Criterion, text string) (v verdict) {
	t.Helper()
	var all []definition
	for _, c := range criteria {
		all = append(all, newDefinition(t, c))
	}
	from := make([]int, len(all))
	for p := 1; p <= len(text); p++ {
		if p < len(text) && !utf8.RuneStart(text[p]) {
			continue
		}
		for i, d := range all {
			f, ok := d.match(t, text[:p], from[i])
			switch {
			case !ok:
			case d.Action != stopping.Notify:
				v.stop = &f
				return v
			default:
				v.reports, from[i] = append(v.reports, f), p
			}
		}
	}
	return v
}

// A definition is one criterion.
type definition struct {
	stopping.Criterion
	somewhere, here *regexp2.Regexp // with a match that ends with the text
}

func newDefinition(t testing.TB, c stopping.Criterion) definition {
	d := definition{Criterion: c}
	if c.Regex == "" {
		return d
	}
	for prefix, re := range map[string]**regexp2.Regexp{"": &d.somewhere, `\G`: &d.here} {
		compiled, err := regexp2.Compile(prefix+"(?:"+c.Regex+`)\z`, regexp2.Singleline)
		if err != nil {
			t.Fatal(err)
		}
		compiled.MatchTimeout = time.Minute
		*re = compiled
	}
	return d
}

// match asks whether the criterion matches at the end of text, from a start at
// byte from or later.
func (d *definition) match(t testing.TB, text string, from int) (f firing, ok bool) {
	f = firing{criterion: d.Name, end: len(text), keep: len(text)}
	allows := func(start int) bool { return start >= from && inScope(d.Scope, text[:start]) }
	switch {
	case d.Literal != "":
		f.start = len(text) - len(d.Literal)
		ok = strings.HasSuffix(text, d.Literal) && allows(f.start)
	case d.Regex != "":
		return d.regex(t, text, f, allows)
	case d.Repetition != nil:
		for n := d.Repetition.Min; n <= d.Repetition.Max && n*d.Repetition.Count <= len(text) && !ok; n++ {
			f.start = len(text) - n*d.Repetition.Count
			// A text that equals itself n bytes further on is n bytes over and over.
			ok = text[f.start:len(text)-n] == text[f.start+n:] && utf8.RuneStart(text[f.start]) && allows(f.start)
		}
	case d.JSON:
		if strings.HasSuffix(text, "}") || strings.HasSuffix(text, "]") {
			f.start, ok = value(text, allows)
		}
	case d.Sentences > 0:
		if last, _ := utf8.DecodeLastRuneInString(text); last < utf8.RuneSelf && !unicode.IsSpace(last) {
			break // no sentence ends here
		}
		if all := sentence.FindAllStringSubmatchIndex(text, -1); len(all) >= d.Sentences {
			last := all[len(all)-1]
			f.start, ok = max(last[2], last[4]), true // the group that took part
		}
	default:
		t.Fatalf("%s: a kind of criterion that define does not know", d.Name)
	}
	if d.Strip {
		f.keep = f.start
	}
	return f, ok
}

// regex tries every start.
func (d *definition) regex(t testing.TB, text string, f firing, allows func(int) bool) (firing, bool) {
	if found, err := d.somewhere.MatchString(text); err != nil {
		t.Fatal(err)
	} else if !found {
		return f, false
	}
	var last *regexp2.Match
	runes, at := []rune(text), 0
	for i, r := range runes {
		if allows(at) && (last == nil || d.Captures == stopping.Nearest) {
			m, err := d.here.FindRunesMatchStartingAt(runes, i)
			if err != nil {
				t.Fatal(err)
			}
			if m != nil {
				last, f.start = m, at
			}
		}
		at += utf8.RuneLen(r)
	}
	if last == nil {
		return f, false
	}
	if d.Strip {
		f.keep = f.start
	}
	for _, name := range d.here.GetGroupNames() {
		g := last.GroupByName(name)
		if name == "0" || len(g.Captures) == 0 {
			continue
		}
		if f.groups == nil {
			f.groups = map[string]string{}
		}
		f.groups[name] = g.String()
		if name == d.StripGroup {
			f.keep = len(string(runes[:g.RuneIndex]))
		}
	}
	return f, true
}

// value finds the first object or array and whether it ends with the text.
func value(text string, allows func(int) bool) (start int, ok bool) {
	for at := 0; at < len(text); at++ {
		if text[at] != '{' && text[at] != '[' || !allows(at) {
			continue
		}
		size, whole := balance(text[at:])
		if whole {
			return at, at+size == len(text)
		}
		at += size - 1
	}
	return 0, false
}

// balance is the size of the value that text begins with, by its brackets
// outside of strings; it is not whole where a bracket does not pair, or the
// text ends.
func balance(text string) (size int, whole bool) {
	bare := quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
	closes := ""
	for i, c := range bare {
		switch {
		case c == '{':
			closes = "}" + closes
		case c == '[':
			closes = "]" + closes
		case c != '}' && c != ']':
		case closes[0] != byte(c):
			return i + 1, false
		case len(closes) == 1:
			return i + 1, true
		default:
			closes = closes[1:]
		}
	}
	return len(text), false
}

// quoted is a string, also one that has not ended.
var quoted = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// sentence is the end of one. Groups are what the match is: the mark of a
// script that has no spaces, or the last mark and the white space behind it.
var sentence = regexp.MustCompile(`[.!?]*([。！？])[.!?。！？]*|[.!?]*([.!?][\s\p{Z}])`)

// inScope reads the text before a start.
func inScope(s stopping.Scope, before string) bool {
	if s.Open == "" {
		return true
	}
	for inside := s.StartsInside; ; inside = !inside {
		tag := s.Open
		if inside {
			tag = s.Close
		}
		_, rest, found := strings.Cut(before, tag)
		if !found {
			return inside != s.Outside
		}
		before = rest
	}
}
