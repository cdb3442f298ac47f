package stopping

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		criteria []Criterion
		field    string
		position int
		problem  string // part of it
	}{
		{"bracket not closed", []Criterion{{Name: "c", Regex: `ab(c|d`}}, "Regex", 2, "missing closing )"},
		{"bracket too many", []Criterion{{Name: "c", Regex: `你)(`}}, "Regex", 3, "unexpected )"},
		{"set not closed", []Criterion{{Name: "c", Regex: `a[b`}}, "Regex", 1, "unterminated"},
		{"repeated repetition", []Criterion{{Name: "c", Regex: `ab**c`}}, "Regex", 3, "repetition"},
		{"unknown class", []Criterion{{Name: "c", Regex: `\p{Klingon}x`}}, "Regex", 10, "Klingon"},
		{"unknown reference", []Criterion{{Name: "c", Regex: `(a)\2b`}}, "Regex", 4, "undefined group"},
		{"Python's named group", []Criterion{{Name: "c", Regex: `(?P<x>a)`}}, "Regex", 1, "grouping"},
		{"named group not closed", []Criterion{{Name: "c", Regex: `a(?<x>b`}}, "Regex", 1, "missing closing )"},
		{"lookbehind not closed", []Criterion{{Name: "c", Regex: `(?<=a`}}, "Regex", 0, "missing closing )"},
		{"name not closed", []Criterion{{Name: "c", Regex: `ab(?<x`}}, "Regex", 3, "grouping"},
		{"name of a group", []Criterion{{Name: "c", Regex: `ab(?<1x>c)`}}, "Regex", 6, "group name"},
		{"exchanged counts", []Criterion{{Name: "c", Regex: `ab{3,2}`}}, "Regex", 6, "repeat count"},
		{"count of nothing", []Criterion{{Name: "c", Regex: `a|*b`}}, "Regex", 2, "repetition"},
		{"exchanged range", []Criterion{{Name: "c", Regex: `a[z-b]`}}, "Regex", 4, "reverse order"},
		{"class in a range", []Criterion{{Name: "c", Regex: `a[a-\w]`}}, "Regex", 5, "range"},
		{"subtraction in the middle", []Criterion{{Name: "c", Regex: `[a-z-[b]c]`}}, "Regex", 8, "subtraction"},
		{"backslash at the end", []Criterion{{Name: "c", Regex: `ab\`}}, "Regex", 2, `illegal \`},
		{"unknown escape", []Criterion{{Name: "c", Regex: `ab\y`}}, "Regex", 3, "escape"},
		{"hexadecimal escape", []Criterion{{Name: "c", Regex: `ab\xg1`}}, "Regex", 3, "hexadecimal"},
		{"class not closed", []Criterion{{Name: "c", Regex: `ab\p{Han`}}, "Regex", 3, "incomplete"},
		{"unknown named reference", []Criterion{{Name: "c", Regex: `(?<x>a)\k<y>`}}, "Regex", 11, "undefined group"},
		{"reference not closed", []Criterion{{Name: "c", Regex: `(?<x>a)\k<x`}}, "Regex", 8, "malformed"},
		{"reference without a name", []Criterion{{Name: "c", Regex: `(?<x>a)\k`}}, "Regex", 8, "malformed"},
		{"conditional on no group", []Criterion{{Name: "c", Regex: `(?(2)a|b)`}}, "Regex", 4, "undefined group"},
		{"conditional with three branches", []Criterion{{Name: "c", Regex: `(a)(?(1)a|b|c)`}}, "Regex", 13, "too many |"},
		{"comment not closed", []Criterion{{Name: "c", Regex: `ab(?#c`}}, "Regex", 4, "comment"},
		{"unknown option", []Criterion{{Name: "c", Regex: `ab(?y)c`}}, "Regex", 3, "grouping"},
		{"Python's named reference", []Criterion{{Name: "c", Regex: `(?<x>a)(?P=x)`}}, "Regex", 8, "grouping"},
		{"PCRE's \\K", []Criterion{{Name: "c", Regex: `a\Kb`}}, "Regex", 2, "escape"},
		{"pattern not UTF-8", []Criterion{{Name: "c", Regex: "a\xff"}}, "Regex", 1, "UTF-8"},
		{"search origin", []Criterion{{Name: "c", Regex: `x\Ga`}}, "Regex", 1, "no meaning"},
		{"direction", []Criterion{{Name: "c", Regex: `(?r)ab`}}, "Regex", 1, ""},
		{"empty match", []Criterion{{Name: "c", Regex: `a*`}}, "Regex", -1, "empty string"},
		{"empty match at the end", []Criterion{{Name: "c", Regex: `$`}}, "Regex", -1, "empty string"},
		{"empty match by lookahead", []Criterion{{Name: "c", Regex: `(?!a)`}}, "Regex", -1, "empty string"},
		{"too large", []Criterion{{Name: "c", Regex: strings.Repeat("(?:", 100_000)}}, "Regex", -1, "larger than"},
		{"too large a literal", []Criterion{{Name: "c", Literal: strings.Repeat("a", 1<<13+1)}}, "Literal", -1, "larger than"},
		{"too large a tag", []Criterion{{Name: "c", Literal: "a", Scope: Scope{Open: "a", Close: strings.Repeat("b", 1<<13+1)}}}, "Scope", -1, "larger than"},
		{"endless on nothing", []Criterion{{Name: "c", Regex: `(?:a?|b?){40}(?:a?|b?){40}(?:(?:a|b)?)*\b`, Budget: time.Millisecond}}, "Regex", -1, "longer than the budget"},
		{"no name", []Criterion{{Literal: "a"}}, "Name", -1, "empty"},
		{"same name", []Criterion{{Name: "c", Literal: "a"}, {Name: "c", JSON: true}}, "Name", -1, "two"},
		{"no kind", []Criterion{{Name: "c", Strip: true}}, "Literal", -1, "nothing"},
		{"two kinds", []Criterion{{Name: "c", Literal: "a", JSON: true}}, "JSON", -1, "together with Literal"},
		{"literal not UTF-8", []Criterion{{Name: "c", Literal: "\xff"}}, "Literal", -1, "UTF-8"},
		{"three kinds", []Criterion{{Name: "c", Regex: "a", Repetition: &Repetition{Count: 2}, Bytes: 3}}, "Repetition", -1, "together with Regex"},
		{"the second one is wrong", []Criterion{{Name: "c", Literal: "a"}, {Name: "d", Regex: "(b"}}, "Regex", 0, "missing closing )"},
		{"negative sentences", []Criterion{{Name: "c", Sentences: -1}}, "Sentences", -1, "negative"},
		{"negative bytes", []Criterion{{Name: "c", Bytes: -1}}, "Bytes", -1, "negative"},
		{"negative minimum of tokens", []Criterion{{Name: "c", JSON: true, MinTokens: -1}}, "MinTokens", -1, "negative"},
		{"negative count", []Criterion{{Name: "c", Tokens: -1}}, "Tokens", -1, "negative"},
		{"negative minimum", []Criterion{{Name: "c", JSON: true, MinBytes: -1}}, "MinBytes", -1, "negative"},
		{"negative budget", []Criterion{{Name: "c", Regex: "a", Budget: -1}}, "Budget", -1, "negative"},
		{"group without regex", []Criterion{{Name: "c", Literal: "a", StripGroup: "g"}}, "StripGroup", -1, "only a regex"},
		{"unknown group", []Criterion{{Name: "c", Regex: "(?<h>a)", StripGroup: "g"}}, "StripGroup", -1, `"g"`},
		{"numbered group", []Criterion{{Name: "c", Regex: "(a)", StripGroup: "1"}}, "StripGroup", -1, `"1"`},
		{"strip twice", []Criterion{{Name: "c", Regex: "(?<g>a)", StripGroup: "g", Strip: true}}, "StripGroup", -1, "whole match"},
		{"strip a report", []Criterion{{Name: "c", Literal: "a", Strip: true, Action: Notify}}, "Strip", -1, "reported"},
		{"strip a group of a report", []Criterion{{Name: "c", Regex: "(?<g>a)", StripGroup: "g", Action: Notify}}, "Strip", -1, "reported"},
		{"strip sentences", []Criterion{{Name: "c", Sentences: 3, Strip: true}}, "Strip", -1, "count"},
		{"strip tokens", []Criterion{{Name: "c", Tokens: 3, Strip: true}}, "Strip", -1, "count"},
		{"group of a literal", []Criterion{{Name: "c", JSON: true, StripGroup: "g"}}, "StripGroup", -1, "only a regex"},
		{"strip a count", []Criterion{{Name: "c", Bytes: 3, Strip: true}}, "Strip", -1, "count"},
		{"unknown action", []Criterion{{Name: "c", Literal: "a", Action: "explode"}}, "Action", -1, "explode"},
		{"unknown captures", []Criterion{{Name: "c", Literal: "a", Captures: "last"}}, "Captures", -1, "last"},
		{"one repetition", []Criterion{{Name: "c", Repetition: &Repetition{Count: 1}}}, "Repetition", -1, "less than 2"},
		{"sizes exchanged", []Criterion{{Name: "c", Repetition: &Repetition{Min: 9, Max: 3, Count: 2}}}, "Repetition", -1, "smaller"},
		{"size too large", []Criterion{{Name: "c", Repetition: &Repetition{Max: 1 << 30, Count: 2}}}, "Repetition", -1, "at most"},
		{"negative size", []Criterion{{Name: "c", Repetition: &Repetition{Min: -1, Count: 2}}}, "Repetition", -1, "negative"},
		{"one tag", []Criterion{{Name: "c", Literal: "a", Scope: Scope{Open: "<a>"}}}, "Scope", -1, "only one"},
		{"the other tag", []Criterion{{Name: "c", Literal: "a", Scope: Scope{Close: "</a>"}}}, "Scope", -1, "only one"},
		{"least size too large", []Criterion{{Name: "c", Repetition: &Repetition{Min: 5000, Count: 2}}}, "Repetition", -1, "at most"},
		{"no repetition", []Criterion{{Name: "c", Repetition: &Repetition{}}}, "Repetition", -1, "less than 2"},
		{"inside nothing", []Criterion{{Name: "c", Literal: "a", Scope: Scope{StartsInside: true}}}, "Scope", -1, "StartsInside"},
		{"outside nothing", []Criterion{{Name: "c", Literal: "a", Scope: Scope{Outside: true, After: "x"}}}, "Scope", -1, "Outside"},
		{"tag not UTF-8", []Criterion{{Name: "c", Literal: "a", Scope: Scope{After: "\xff"}}}, "Scope", -1, "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.criteria...)
			var e *CompileError
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Field != tt.field || e.Position != tt.position || !strings.Contains(e.Problem, tt.problem) {
				t.Errorf("field %s, position %d: %v", e.Field, e.Position, err)
			}
			if len(err.Error()) > 500 || e.Hint == "" || e.Criterion == "" || !strings.Contains(err.Error(), e.Criterion) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		regex string
		want  []string // parts of the warnings, in order
	}{
		{`</tool_call>`, nil},
		{`a+b`, nil},
		{`\d+\D`, nil},
		{`(?<=ab)c`, nil},
		{`a{3}`, nil},
		{`Answer: \d+`, []string{"first digit"}},
		{`x(?:ab)+?`, []string{"first digit"}},
		{`a\s*`, []string{"optional part"}},
		{qwq, []string{"end anchor", "optional part"}},
		{`(a\z)`, []string{"end anchor"}},
		{`stop\b`, []string{`"\b"`}},
		{`a(?=b)`, []string{"lookahead"}},
		{`a(?!b)`, []string{"lookahead"}},
		{`ab?|c$|d`, []string{"optional part", "end anchor"}},
		{`(?m)a$`, []string{"end anchor"}},
	} {
		set := compile(t, Criterion{Name: "w", Regex: tt.regex})
		var got []string
		for _, w := range set.Warnings() {
			got = append(got, w.String())
		}
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			ok = ok && strings.Contains(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%q: %q, want %q", tt.regex, got, tt.want)
		}
	}
	set := compile(t, Criterion{Name: "w", Regex: `.*stop`, Strip: true})
	if w := set.Warnings(); len(w) != 1 || !strings.Contains(w[0].Problem, "held back") {
		t.Errorf("%v", w)
	}
}

// TestZeroValues: what is left out is filled in, in the copy.
func TestZeroValues(t *testing.T) {
	d := follow(t, compile(t, Criterion{Name: "r", Repetition: &Repetition{Count: 2}}), []string{"aa"}).fired()
	if d == nil {
		t.Fatal("no stop")
	}
	c := *d.Criterion
	if c.Action != Halt || c.Captures != Leftmost || c.Budget == 0 || !reflect.DeepEqual(c.Repetition, &Repetition{1, 256, 2}) {
		t.Errorf("%+v %+v", c, c.Repetition)
	}
	var zero Set
	if step, err := zero.Matcher().Write("a", 1); err != nil || step.Emit != "a" {
		t.Errorf("%+v %v", step, err)
	}
}
