package stopping

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A marker is found where it first stands, also when a part of it stands before
// it and overlaps it.
func TestMarkersThatOverlapThemselves(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	letters := func(size int) string {
		var b strings.Builder
		for range size {
			b.WriteByte("aaab"[r.IntN(4)])
		}
		return b.String()
	}
	fired := 0
	for range 3000 {
		marker, text := letters(2+r.IntN(7)), letters(60)
		c := Criterion{Name: "c", Regex: ".", Scope: Scope{After: marker}}
		if r.IntN(2) == 0 {
			c.Scope = Scope{Open: marker, Close: "never"}
		}
		end := 0
		if at := strings.Index(text, marker); at >= 0 && at+len(marker) < len(text) {
			end = at + len(marker) + 1
			fired++
		}
		if d := follow(t, compile(t, c), []string{text}).fired(); (d == nil) != (end == 0) || d != nil && d.MatchEnd != end {
			t.Fatalf("%+v in %q: %+v, want the end %d", c.Scope, text, d, end)
		}
	}
	if fired < 500 {
		t.Errorf("%d fired", fired)
	}
}

// Only what may be stripped is held back, whatever else may be matched.
func TestOnlyWhatIsStrippedIsHeldBack(t *testing.T) {
	for _, kept := range []Criterion{
		{Regex: `a(?!x).*b`}, {Regex: `a.*b`}, {Regex: `(?<g>a.*)b`, Captures: Nearest}, {Regex: `a{200}b`},
		{Literal: "aaaaaaaab"}, {Repetition: &Repetition{Count: 99}}, {JSON: true},
	} {
		kept.Name = "kept"
		m := compile(t, kept, Criterion{Name: "stripped", Literal: "zz", Strip: true}).Matcher()
		for i, chunk := range []string{"[a", "aaa", "aaz"} {
			unstopped(t, m, chunk)
			if held := m.Tally().Held; held != max(0, i-1) {
				t.Errorf("%+v: %d bytes held after %q", kept, held, chunk)
			}
		}
	}
}

// A lookbehind that is too large for the automaton is left to regexp2 as a whole.
func TestLargeLookbehind(t *testing.T) {
	set := compile(t, Criterion{Name: "c", Regex: `(?<=^(?:(?:ab|cd|ef|gh|ij|kl|mn|op|qr|st){1,100}!){1,100})z`})
	if plan := set.Plan(); plan[0].Engine == DFA {
		t.Fatalf("%+v", plan)
	}
	for text, fires := range map[string]bool{"ab!z": true, "abcd!st!z": true, "abz": false, "ax!z": false, "!z": false} {
		if d := follow(t, set, []string{text}).fired(); (d != nil) != fires {
			t.Errorf("%q: %+v", text, d)
		}
	}
}

// A character of a class that no row has room for has no column.
func TestColumnsAreInTheRow(t *testing.T) {
	list, members := manyClasses()
	set := compile(t, list...)
	follow(t, set, []string{string(members)})
	a, inside, outside := set.automaton.program.alphabet, 0, 0
	for _, r := range members {
		switch column, size := a.columnOf(string(r)); {
		case size == 0:
			outside++
		case size != 4 || column == 0 || column >= 1<<a.shift:
			t.Errorf("%x: column %d of %d, size %d", r, column, 1<<a.shift, size)
		default:
			inside++
		}
	}
	if inside == 0 || outside == 0 {
		t.Errorf("%d characters in the row, %d outside", inside, outside)
	}
}

// A count that is refused because of a minimum is asked again behind the next
// character or token, not at the same place.
func TestCountsWithMinimums(t *testing.T) {
	for _, tt := range []struct {
		c   Criterion
		end int
	}{
		{Criterion{Tokens: 2, MinBytes: 10}, 10}, {Criterion{Tokens: 3, MinBytes: 1}, 9}, {Criterion{Tokens: 1, MinTokens: 3}, 7},
		{Criterion{Bytes: 2, MinBytes: 10}, 10}, {Criterion{Bytes: 2, MinTokens: 3}, 7}, {Criterion{Sentences: 1, MinBytes: 7}, 9},
	} {
		tt.c.Name = "c"
		if d := follow(t, compile(t, tt.c), slices.Repeat([]string{"a. "}, 9)).fired(); d == nil || d.MatchEnd != tt.end {
			t.Errorf("%+v: %+v, want the end %d", tt.c, d, tt.end)
		}
	}
}

// A repetition that may not fire yet holds back what it would remove if it
// fired now, not the whole run.
func TestHeldRepetition(t *testing.T) {
	for _, tt := range []struct{ max, count, held int }{{3, 4, 12}, {1, 9, 9}, {8, 2, 16}} {
		m := compile(t, Criterion{Name: "c", Repetition: &Repetition{Max: tt.max, Count: tt.count}, Strip: true, MinBytes: 1 << 20}).Matcher()
		unstopped(t, m, strings.Repeat("a", 1000))
		if n := m.Tally(); n.Held != tt.held {
			t.Errorf("%+v: %d held", tt, n.Held)
		}
	}
}

// Where many starts lead nowhere, the pattern is refuted from its end.
func TestManyStartsAreRefutedFromTheEnd(t *testing.T) {
	set := compile(t, Criterion{Name: "c", Regex: `<a>(?:(?!<z>).)*</a>`})
	text := strings.Repeat("<a>", 100_000) + "<z></a>"
	o, err := stream(set, false, []string{text})
	if err != nil {
		t.Fatal(err)
	}
	if d := o.fired(); d != nil {
		t.Errorf("%+v", d)
	}
}

// What has a fixed length at the end of a pattern is no reason to warn.
func TestFixedEndsAreNoReasonToWarn(t *testing.T) {
	for _, regex := range []string{`a{3}`, `(?:ab){2}`, `[a-z]{4}`, `x\d{2}`, `stop`} {
		if w := compile(t, Criterion{Name: "c", Regex: regex}).Warnings(); len(w) != 0 {
			t.Errorf("%s: %v", regex, w)
		}
	}
}

// A start that the scope allows and the pattern does not is no reason to take
// one that the pattern allows and the scope does not.
func TestStartsThatOnlyThePatternAllows(t *testing.T) {
	for _, captures := range []Captures{Leftmost, Nearest} {
		set := compile(t, Criterion{Name: "c", Regex: `a(?!x)[^b]*b`, Captures: captures,
			Scope: Scope{Open: "<t>", Close: "</t>", Outside: true}})
		for text, start := range map[string]int{"ax <t>a</t> b": -1, "ax <t>a</t> a b": 12, "ay <t>a</t> b": 0} {
			d := follow(t, set, []string{text}).fired()
			if (d != nil) != (start >= 0) || d != nil && d.MatchStart != start {
				t.Errorf("%s, %q: %+v", captures, text, d)
			}
		}
	}
}
