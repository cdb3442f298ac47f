package stopping

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hangLimit is far more than anything here takes. It tells work that grows with
// the text from work that doubles with each character.
const hangLimit = 10 * time.Minute

// finish runs f and fails the test when it hangs.
func finish(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(hangLimit):
		t.Fatalf("not done after %v", hangLimit)
	}
}

// earliest is the definition by the standard library, which takes linear time:
// the smallest end of a match, and the leftmost start of a match with that end.
// It is -1 when there is none. Pattern and text are ASCII, where both libraries
// mean the same.
func earliest(t *testing.T, pattern, text string) (start, end int) {
	t.Helper()
	search := regexp.MustCompile(`(?s)(?:` + pattern + `)\z`)
	for end := 1; end <= len(text); end++ {
		if at := search.FindStringIndex(text[:end]); at != nil {
			return at[0], end
		}
	}
	return -1, -1
}

// TestRegularPatternsNeverBlowUp: where a matcher that backtracks takes longer
// than the age of the world, an automaton gives the definition's result.
func TestRegularPatternsNeverBlowUp(t *testing.T) {
	words := func(n int) string { return strings.Repeat("words and more ", n/15+1)[:n] }
	tests := []struct {
		pattern, text string
		stops         bool
	}{
		{`(\w+\s?)+$`, words(200), true}, {`(\w+\s?)+$`, words(2000), true},
		{`(\w+\s?)+\.`, words(200) + "!", false}, {`(\w+\s?)+\.`, words(2000) + ".", true}, {`^(\w+\s?)+=$`, words(2000) + "-=", false},
		{`(x+x+)+y`, strings.Repeat("x", 2000), false}, {`(x+x+)+y`, strings.Repeat("x", 2000) + "y", true},
		{`(a|a)*b`, strings.Repeat("a", 2000), false}, {`(a|a)*b`, strings.Repeat("a", 2000) + "b", true}, {`(a|aa)+c`, strings.Repeat("a", 2000) + "bc", false},
		{`(a*)*b`, strings.Repeat("a", 500) + "b", true}, {`(a+)+b`, strings.Repeat("a", 500), false}, {`((a+)+)+b`, strings.Repeat("a", 500), false}, {`(?:(?:a?){9}){9}b`, strings.Repeat("a", 200), false},
		{`(.*a){20}`, strings.Repeat("ab", 200), true}, {`(.*a){20}c`, strings.Repeat("ab", 200), false}, {`(.*,){12}P`, strings.Repeat("1,", 100) + "Q", false},
		{`(?:a?){30}a{30}`, strings.Repeat("a", 29), false}, {`(?:a?){30}a{30}`, strings.Repeat("a", 30), true},
		{`^(([a-z])+.)+[A-Z]([a-z])+$`, strings.Repeat("a", 500), false}, {`(?:\s*\w+\s*,)*\s*;`, strings.Repeat("a ,", 200) + "x", false}, {`"(?:[^"\\]|\\.)*"`, `"` + strings.Repeat(`\\a`, 500), false},
		{`(?:a|b|ab)*c`, strings.Repeat("ab", 500) + "c", true}, {`(?i)(?:s|S|[a-z])+!`, strings.Repeat("sS", 500) + "!", true}, {`<(?:[^<>]|<[^<>]*>)*>;`, strings.Repeat("<a>", 300), false},
		{`(?:\b\w+\b\s*)+[.]`, words(500), false}, {`^(?:.?.?.?.?.?)*[#]`, words(500), false}, {`(?m)^(?:\s*\w*\s*)*$[\n]x`, strings.Repeat("a \n", 200), false}, {`(?:a{0,10}){0,10}b`, strings.Repeat("a", 300) + "b", true},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, " ", tt.pattern), func(t *testing.T) {
			t.Parallel()
			start, end := earliest(t, tt.pattern, tt.text)
			if (end >= 0) != tt.stops {
				t.Fatalf("the definition stops at %d", end)
			}
			for _, c := range []Criterion{{Name: "p", Regex: tt.pattern}, {Name: "p", Regex: tt.pattern, Strip: true}} {
				set := compile(t, c)
				finish(t, func() {
					got, err := stream(set, c.Strip, []string{tt.text})
					if err != nil {
						t.Error(err)
						return
					}
					switch d := got.fired(); {
					case d == nil && end >= 0, d != nil && (d.MatchStart != start || d.MatchEnd != end):
						t.Errorf("got %+v, want [%d,%d)", d, start, end)
					}
				})
				if plan := set.Plan()[0]; plan.Engine != DFA && plan.Engine != NFA {
					t.Errorf("%+v", plan)
				}
			}
		})
	}
}

// TestRegularLookbehindsNeverBlowUp: a lookbehind can be part of the automaton.
func TestRegularLookbehindsNeverBlowUp(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, tt := range []struct {
		pattern, text string
		end           int // -1 for none
	}{
		{`(?<=(?:x+x+)+y)z`, long + "z", -1}, {`(?<=(?:x+x+)+y)z`, long + "yz", 2002},
		{`(?<=^(?:.*x)+y.*)z`, long + "z", -1}, {`(?<=^(?:.*x)+y.*)z`, long + "y z", 2003},
		{`(?<!(?:x|x)*y)z`, long + "z", 2001}, {`(?<!(?:x|x)*y)z`, long + "yz", -1},
		{`(?<=(?<!(?:.*a){10})b)c`, strings.Repeat("a", 500) + "bc", -1},
	} {
		set := compile(t, Criterion{Name: "p", Regex: tt.pattern})
		finish(t, func() {
			got, err := stream(set, false, []string{tt.text})
			if err != nil {
				t.Errorf("%q: %v", tt.pattern, err)
				return
			}
			if d := got.stop; (d.Reason == Matched) != (tt.end >= 0) || tt.end >= 0 && d.MatchEnd != tt.end {
				t.Errorf("%q: %+v, want the end %d", tt.pattern, d, tt.end)
			}
		})
		if p := set.Plan()[0]; p.Engine != DFA {
			t.Errorf("%q: %s, %s", tt.pattern, p.Engine, p.Reason)
		}
	}
}

// TestBudgetErrors: what needs backtracking and does not come to an end is an
// error, never "no match", and the error says nothing of the text.
func TestBudgetErrors(t *testing.T) {
	// No two pieces in a row are equal, so a reference never holds.
	const words = "the_SECRETabdfghijklmnopquvwxyzABDFGHIJKLMNOPQUVWXYZ0123456789="
	tests := []struct {
		name, pattern, text string
		cause               error
	}{
		{"reference", `^(\w+\s?)+\1=$`, words, ErrTime},
		{"reference that may start anywhere", `(?:^|;)(\w+\s?)+\1=`, words, ErrTime},
		{"named reference", `^(?<w>\w+)+\k<w>=`, words, ErrTime},
		{"reference in any case", `^(?i:(\w+))+\1=`, words, ErrTime},
		{"lookahead", `(?=(?:\w+\s?)+[=;][;,])[\w ]+=`, words, ErrTime},
		{"negative lookahead", `(?!(?:\w+\s?)+[=;][;,])[\w ]+=`, words, ErrTime},
		{"conditional", `(?(?=(?:\w+\s?)+[=;][;,])x|[\w ]+=)`, words, ErrTime},
		{"atomic group", `(?>(?:\w+\s?)+[c-e]|\w)+=`, words, ErrTime},
		{"balancing group", `(?:(?<o>\w+\s?)+)+(?<-o>,)?(?(o)(?!))=`, words, ErrTime},
		{"lookbehind with a reference", `(?<=[;,]\1(\w+\s?)+)=`, words, ErrTime},
		{"too deep", `<x>(?=a)(?:a|SECRET)*d`, "<x>a" + strings.Repeat("SECRET", 1<<20) + "d", ErrStack},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			budget := 150 * time.Millisecond
			if tt.cause == ErrStack {
				budget = hangLimit
			}
			m := compile(t, Criterion{Name: "slow", Regex: tt.pattern, Budget: budget, Strip: true}).Matcher()
			finish(t, func() {
				began := time.Now()
				step, err := m.Write(tt.text, 1)
				took := time.Since(began)
				over, ok := errors.AsType[*BudgetError](err)
				if !ok || !errors.Is(err, tt.cause) || errors.Is(err, ErrTime) == errors.Is(err, ErrStack) {
					t.Errorf("%v, %+v", err, step.Stop)
					return
				}
				if over.Criterion != "slow" || over.Budget != budget || over.Offset != len(tt.text) {
					t.Errorf("%s, %v, %d", over.Criterion, over.Budget, over.Offset)
				}
				for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
					for _, e := range []any{err, *over, over.Err} {
						if said := fmt.Sprintf(format, e); strings.Contains(said, "SECRET") || len(said) > 400 {
							t.Errorf("%s tells the text: %.200s", format, said)
						}
					}
				}
				last := m.Close()
				if step.Emit+last.Emit != tt.text || last.Stop.Reason != Closed {
					t.Errorf("%d and %d bytes of %d given out, %+v", len(step.Emit), len(last.Emit), len(tt.text), last.Stop)
				}
				t.Logf("budget %v, took %v", budget, took.Round(time.Millisecond))
			})
		})
	}
}
