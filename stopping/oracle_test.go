package stopping

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// An oracle is the definition, word by word and without any engine: at every
// boundary, from every start, does the pattern match exactly up to there?
type oracle struct {
	re      *regexp2.Regexp
	nearest bool
	scope   Scope
	group   string
	strip   bool
	gaveUp  bool // a match took longer than any engine should be asked for
}

func newOracle(t testing.TB, c Criterion) *oracle {
	t.Helper()
	regex := c.Regex
	if c.Literal != "" {
		regex = regexp2.Escape(c.Literal)
	}
	switch {
	case strings.Contains(regex, "(?x)"):
		regex += "\n"
	case strings.Contains(regex, `\Q`):
		regex += `\E`
	}
	re, err := regexp2.Compile(`\G(?:`+regex+`)\z`, regexp2.Singleline, regexp2.OptionMaxBacktrackingStackSize(-1))
	if err != nil {
		t.Fatalf("%q: %v", regex, err)
	}
	re.MatchTimeout = time.Second
	return &oracle{re: re, nearest: c.Captures == Nearest, scope: c.Scope, group: c.StripGroup, strip: c.Strip || c.StripGroup != ""}
}

// allowed reads the scope from the start of the text for every question.
func (o *oracle) allowed(before string) bool {
	s := o.scope
	if s.After != "" && !strings.Contains(before, s.After) {
		return false
	}
	if s.Open == "" {
		return true
	}
	inside := s.StartsInside
	for rest := before; ; inside = !inside {
		tag := s.Open
		if inside {
			tag = s.Close
		}
		_, after, found := strings.Cut(rest, tag)
		if !found {
			return inside != s.Outside
		}
		rest = after
	}
}

// first is the decision at the smallest end, nil when there is none. from is
// the byte before which no match starts, after is the end to start behind.
func (o *oracle) first(t testing.TB, text string, from, after int) *Decision {
	t.Helper()
	bounds := boundaries(text)
	for i, end := range bounds {
		if end <= after {
			continue
		}
		var best *Decision
		for _, start := range bounds[:i+1] {
			if start < from || !o.allowed(text[:start]) {
				continue
			}
			m, err := o.re.FindStringMatchStartingAt(text[:end], start)
			if err != nil {
				o.gaveUp = true
				return nil
			}
			if m == nil {
				continue
			}
			best = &Decision{Reason: Matched, MatchStart: start, MatchEnd: end, KeepEnd: end}
			if o.strip {
				best.KeepEnd = start
			}
			if g := m.GroupByName(o.group); o.group != "" {
				best.KeepEnd = end
				if len(g.Captures) > 0 {
					at, _ := g.ByteRange()
					best.KeepEnd = max(at, start)
				}
			}
			if !o.nearest {
				break
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// same compares the offsets of two decisions.
func same(got, want *Decision) error {
	switch {
	case got == nil && want == nil:
		return nil
	case got == nil || want == nil:
		return fmt.Errorf("got %+v, want %+v", got, want)
	case got.MatchStart != want.MatchStart || got.MatchEnd != want.MatchEnd || got.KeepEnd != want.KeepEnd:
		return fmt.Errorf("got start %d end %d keep %d, want start %d end %d keep %d",
			got.MatchStart, got.MatchEnd, got.KeepEnd, want.MatchStart, want.MatchEnd, want.KeepEnd)
	}
	return nil
}

// scopes are the parts of a text that the tests look at.
var scopes = []Scope{
	{},
	{Open: "<a>", Close: "</a>"},
	{Open: "<a>", Close: "</a>", Outside: true},
	{Open: "<a>", Close: "</a>", StartsInside: true},
	{Open: "<a>", Close: "</a>", Outside: true, StartsInside: true},
	{After: "b"},
	{Open: "'", Close: "'"},
	{Open: "ab", Close: "b1", Outside: true},
	{Open: "aa", Close: "aa"},
	{Open: "<a>", Close: "</a>", After: "好"},
}

// TestOracle compares every pattern with the definition, kept, stripped, with
// both choices of captures, and in every scope.
func TestOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	pairs, fired := 0, 0
	for _, p := range patterns {
		for round := range rounds {
			c := Criterion{Name: "p", Regex: p, Strip: r.IntN(2) == 0, Captures: []Captures{Leftmost, Nearest}[r.IntN(2)]}
			if round%3 == 0 {
				c.Scope = scopes[r.IntN(len(scopes))]
			}
			set, err := Compile(c)
			if err != nil {
				t.Fatal(err)
			}
			text := randomText(r, 16)
			got := follow(t, set, []string{text})
			want := newOracle(t, c).first(t, text, 0, 0)
			if err := same(got.fired(), want); err != nil {
				t.Errorf("%q (%s, scope %+v) in %q: %v", p, c.Captures, c.Scope, text, err)
			}
			pairs++
			if want != nil {
				fired++
			}
		}
	}
	if fired < pairs/8 || fired > pairs*7/8 {
		t.Errorf("only %d of %d pairs tell anything", fired, pairs)
	}
	t.Logf("%d patterns, %d pairs, %d fired", len(patterns), pairs, fired)
}

// TestOracleRandomPatterns does the same with patterns that nobody thought of.
func TestOracleRandomPatterns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14))
	rounds := 6000
	if testing.Short() {
		rounds = 2000
	}
	valid, fired, reversed := 0, 0, 0
	for range rounds {
		c := Criterion{Name: "p", Regex: randomPattern(r, 2+r.IntN(3)), Strip: r.IntN(2) == 0, Captures: []Captures{Leftmost, Nearest}[r.IntN(2)]}
		set, err := Compile(c)
		if err != nil {
			continue
		}
		text := randomText(r, 10)
		o := newOracle(t, c)
		want := o.first(t, text, 0, 0)
		if o.gaveUp {
			continue
		}
		if _, err := set.Matcher().Write(text, 1); err != nil {
			continue // beyond its budget, as TestBudget shows
		}
		if err := same(follow(t, set, []string{text}).fired(), want); err != nil {
			t.Errorf("%q (%s) in %q: %v", c.Regex, c.Captures, text, err)
		}
		valid++
		if want != nil {
			fired++
		}
		if set.criteria[0].pattern.reverse != nil {
			reversed++
		}
	}
	if valid < rounds/4 || fired < valid/8 || reversed < valid/4 || reversed == valid {
		t.Errorf("%d patterns, %d valid, %d fired, %d matched backwards", rounds, valid, fired, reversed)
	}
	t.Logf("%d patterns, %d valid, %d fired, %d matched backwards", rounds, valid, fired, reversed)
}

// TestOracleNotify compares all reports of a criterion that goes on.
func TestOracleNotify(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range patterns {
		for range 12 {
			c := Criterion{Name: "p", Regex: p, Action: Notify, Scope: scopes[r.IntN(len(scopes))]}
			set, err := Compile(c)
			if err != nil {
				t.Fatal(err)
			}
			text := randomText(r, 12)
			got := follow(t, set, []string{text})
			o := newOracle(t, c)
			from := 0
			for i := 0; ; i++ {
				want := o.first(t, text, from, from)
				if i == len(got.notified) || want == nil {
					if i < len(got.notified) || want != nil {
						t.Errorf("%q in %q: report %d of %d: want %+v", p, text, i, len(got.notified), want)
					}
					break
				}
				if err := same(&got.notified[i], want); err != nil {
					t.Errorf("%q in %q: report %d: %v", p, text, i, err)
				}
				from = want.MatchEnd
			}
		}
	}
}

// TestOracleLiteral compares literals with the same text as a regex.
func TestOracleLiteral(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 800 {
		c := Criterion{Name: "l", Literal: pieces[r.IntN(30)] + pieces[r.IntN(30)], Strip: r.IntN(2) == 0, Scope: scopes[r.IntN(len(scopes))]}
		set, err := Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		text := randomText(r, 20)
		if r.IntN(2) == 0 {
			text += c.Literal + "x"
		}
		if err := same(follow(t, set, []string{text}).fired(), newOracle(t, c).first(t, text, 0, 0)); err != nil {
			t.Errorf("%q (scope %+v) in %q: %v", c.Literal, c.Scope, text, err)
		}
	}
}

// TestOracleEarliest compares several criteria at once: the earliest end wins,
// ties go to the order of declaration.
func TestOracleEarliest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 800 {
		var list []Criterion
		for i := range 3 {
			list = append(list, Criterion{Name: fmt.Sprint(i), Regex: patterns[r.IntN(len(patterns))], Strip: r.IntN(2) == 0, Budget: time.Minute})
		}
		set, err := Compile(list...)
		if err != nil {
			t.Fatal(err)
		}
		text := randomText(r, 12)
		var want *Decision
		winner := ""
		for _, c := range list {
			if d := newOracle(t, c).first(t, text, 0, 0); d != nil && (want == nil || d.MatchEnd < want.MatchEnd) {
				want, winner = d, c.Name
			}
		}
		got := follow(t, set, []string{text}).fired()
		if err := same(got, want); err != nil {
			t.Errorf("%+v in %q: %v", list, text, err)
		}
		if got != nil && got.Criterion.Name != winner {
			t.Errorf("%+v in %q: %s fired, want %s", list, text, got.Criterion.Name, winner)
		}
	}
}
