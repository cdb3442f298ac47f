package stopping

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// What takes longer is left undecided: regexp2 cannot say what the definition
// means there.
const (
	oracleLimit = 200 * time.Millisecond // for one match
	judgeLimit  = 100 * time.Millisecond // for one text, looked at between matches
)

// An oracle is the definition of a literal or regex criterion without any
// engine: at every boundary, from every start, does regexp2 match exactly up to
// there?
type oracle struct {
	c      Criterion
	search *regexp2.Regexp // the pattern ending at the end of the text
	here   *regexp2.Regexp // the same, from the start of the search on
	names  []string        // groups with a name

	exact     bool // ask at every start, without a search that could skip one
	undecided bool // a match took too long
}

// A definer is the definition of one criterion.
type definer interface {
	criterion() *Criterion
	// at is the decision when the criterion fires at the end of the first
	// characters, nil otherwise. No match starts before the character from.
	at(l *written, end, from int) *Decision
	// gaveUp reports whether the last answer took too long to find.
	gaveUp() bool
}

// newDefiner fails for what regexp2 does not accept.
func newDefiner(c Criterion) (definer, error) {
	if c.Literal == "" && c.Regex == "" {
		return &countOracle{c}, nil
	}
	o, err := newOracle(c)
	return o, err
}

func (o *oracle) criterion() *Criterion { return &o.c }
func (o *oracle) gaveUp() bool          { return o.undecided }

// newOracle fails for what regexp2 does not accept.
func newOracle(c Criterion) (*oracle, error) {
	regex := c.Regex
	if c.Literal != "" {
		regex = regexp2.Escape(c.Literal)
	}
	_, err := regexp2.Compile(regex, regexp2.Singleline)
	if err != nil {
		return nil, err
	}
	// A comment or quotation at the end would swallow the bracket.
	for _, ending := range []string{"", "\n", `\E`} {
		o := &oracle{c: c}
		unlimited := regexp2.OptionMaxBacktrackingStackSize(1 << 24)
		if o.search, err = regexp2.Compile("(?:"+regex+ending+`)\z`, regexp2.Singleline, unlimited); err != nil {
			continue
		}
		if o.here, err = regexp2.Compile(`\G(?:`+regex+ending+`)\z`, regexp2.Singleline, unlimited); err != nil {
			return nil, err
		}
		o.search.MatchTimeout, o.here.MatchTimeout = oracleLimit, oracleLimit
		for _, name := range o.here.GetGroupNames() {
			if strings.Trim(name, "0123456789") != "" {
				o.names = append(o.names, name)
			}
		}
		return o, nil
	}
	return nil, err
}

// A written is the characters of a text, as far as they are complete.
type written struct {
	text    string
	runes   []rune
	offsets []int // offsets[i] is the byte where runes[i] starts; one more for the end
}

func write(text string) *written {
	l := &written{text: text, offsets: []int{0}}
	for i := 0; i < len(text) && utf8.FullRuneInString(text[i:]); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		l.runes = append(l.runes, r)
		l.offsets = append(l.offsets, i)
	}
	return l
}

// inScope reads the text before a start from its beginning.
func inScope(s Scope, before string) bool {
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

func (o *oracle) at(l *written, end, from int) *Decision {
	if o.undecided = false; l.offsets[end] < o.c.MinBytes {
		return nil
	}
	if !strings.HasSuffix(l.text[:l.offsets[end]], o.c.Literal) {
		return nil // a literal is compared as bytes: no invalid one is U+FFFD
	}
	runes := l.runes[:end]
	if !o.exact {
		found, err := o.search.FindRunesMatchStartingAt(runes, min(from, end))
		o.undecided = err != nil
		if found == nil {
			return nil
		}
	}
	var best *Decision
	for start := from; start <= end; start++ {
		if o.c.Scope != (Scope{}) && !inScope(o.c.Scope, l.text[:l.offsets[start]]) {
			continue
		}
		m, err := o.here.FindRunesMatchStartingAt(runes, start)
		if err != nil {
			o.undecided = true
			return nil
		}
		if m == nil {
			continue
		}
		best = o.decide(l, m, end)
		if o.c.Captures != Nearest {
			break
		}
	}
	return best
}

// contradicts reports whether the library's search misses, in some beginning of
// the text, a match that it finds when it is told the start. regexp2 v2.12
// does so where it joins classes for the search: (?:\P{Han}|\Da?) does not find
// 你, and neither does [\P{Han}\D]. Then there is no telling what is meant.
func (o *oracle) contradicts(text string) bool {
	l := write(text)
	for end := range len(l.runes) + 1 {
		found, err := o.search.FindRunesMatch(l.runes[:end])
		if err != nil {
			return false
		}
		for start := 0; start <= end; start++ {
			m, err := o.here.FindRunesMatchStartingAt(l.runes[:end], start)
			switch {
			case err != nil:
				return false
			case m == nil && (found == nil || found.RuneIndex != start):
				continue
			case m == nil || found == nil || found.RuneIndex != start:
				return true
			}
			break
		}
	}
	return false
}

func (o *oracle) decide(l *written, m *regexp2.Match, end int) *Decision {
	start := l.offsets[m.RuneIndex]
	d := &Decision{Reason: Matched, Criterion: &o.c, MatchStart: start, MatchEnd: l.offsets[end], KeepEnd: l.offsets[end]}
	if o.c.Strip {
		d.KeepEnd = start
	}
	for _, name := range o.names {
		g := m.GroupByName(name)
		if len(g.Captures) == 0 {
			continue
		}
		from, to := l.offsets[g.RuneIndex], l.offsets[g.RuneIndex+g.RuneLength]
		if name == o.c.StripGroup {
			// A group in a lookbehind may start before the match.
			d.KeepEnd = max(from, start)
		}
		if d.Groups == nil {
			d.Groups = map[string]string{}
		}
		d.Groups[name] = l.text[from:to]
	}
	return d
}

// A verdict is what the definition says about a text.
type verdict struct {
	notified  []Decision
	stop      *Decision // nil when nothing fires
	undecided bool
}

// judge follows a text through several criteria: at every boundary in the order
// of declaration.
func judge(oracles []definer, text string) verdict { return judgeWithin(oracles, text, judgeLimit) }

func judgeWithin(oracles []definer, text string, limit time.Duration) verdict {
	l := write(text)
	deadline := time.Now().Add(limit)
	from := make([]int, len(oracles))
	var v verdict
	for end := 1; end <= len(l.runes); end++ {
		for i, o := range oracles {
			d := o.at(l, end, from[i])
			if o.gaveUp() || time.Now().After(deadline) {
				return verdict{undecided: true}
			}
			switch c := o.criterion(); {
			case d == nil:
			case c.Action == Notify:
				v.notified = append(v.notified, *d)
				from[i] = end
				if c.Sentences+c.Bytes > 0 {
					from[i] = len(l.runes) + 1 // counts are reported once
				}
			default:
				v.stop = d
				return v
			}
		}
	}
	return v
}

// same compares two decisions, but for the bytes past the match.
func same(got, want *Decision) error {
	switch {
	case got == nil && want == nil:
		return nil
	case got == nil:
		return fmt.Errorf("no stop, want %s", spell(want))
	case want == nil:
		return fmt.Errorf("got %s, want none", spell(got))
	case got.MatchStart != want.MatchStart || got.MatchEnd != want.MatchEnd || got.KeepEnd != want.KeepEnd,
		got.Criterion.Name != want.Criterion.Name, !maps.Equal(got.Groups, want.Groups):
		return fmt.Errorf("got %s, want %s", spell(got), spell(want))
	}
	return nil
}

func spell(d *Decision) string {
	s := fmt.Sprintf("%s [%d,%d) keep %d", d.Criterion.Name, d.MatchStart, d.MatchEnd, d.KeepEnd)
	if len(d.Groups) > 0 {
		s += fmt.Sprintf(" groups %q", d.Groups)
	}
	return s
}

// agrees compares a stream with the definition.
func (v verdict) agrees(o outcome) error {
	for i := range max(len(v.notified), len(o.notified)) {
		var got, want *Decision
		if i < len(o.notified) {
			got = &o.notified[i]
		}
		if i < len(v.notified) {
			want = &v.notified[i]
		}
		if err := same(got, want); err != nil {
			return fmt.Errorf("report %d: %w", i, err)
		}
	}
	return same(o.fired(), v.stop)
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
	{Open: "aab", Close: "1a"},
	{Open: "<", Close: "<<", Outside: true},
	{Open: "\ufffd", Close: "<a>", Outside: true},
	{After: "aab"},
}

// patience is for criteria and texts that are known to take no time: a slow
// machine is no reason to give up.
const patience = time.Hour

// patiently takes the limits of time off.
func patiently(oracles []definer) {
	for _, d := range oracles {
		if o, ok := d.(*oracle); ok {
			o.search.MatchTimeout, o.here.MatchTimeout = patience, patience
		}
	}
}

// define is newOracle for criteria that are known to be valid, and quick, word by
// word.
func define(t testing.TB, list ...Criterion) []definer {
	t.Helper()
	var out []definer
	for _, c := range list {
		o, err := newDefiner(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		out = append(out, o)
	}
	exactly(out)
	patiently(out)
	return out
}

// decided is what the definition says about such criteria.
func decided(t testing.TB, text string, list ...Criterion) verdict {
	t.Helper()
	return judgeWithin(define(t, list...), text, patience)
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
			c := Criterion{Name: "p", Regex: p, Strip: r.IntN(2) == 0, Captures: []Captures{Leftmost, Nearest}[r.IntN(2)], Budget: patience}
			if round%3 == 0 {
				c.Scope = scopes[r.IntN(len(scopes))]
			}
			text := randomText(r, 16)
			want := decided(t, text, c)
			if err := want.agrees(follow(t, compile(t, c), []string{text})); err != nil {
				t.Errorf("%q (%s, scope %+v) in %q: %v", p, c.Captures, c.Scope, text, err)
			}
			pairs++
			if want.stop != nil {
				fired++
			}
		}
	}
	if fired < pairs/8 || fired > pairs*7/8 {
		t.Errorf("only %d of %d pairs tell anything", fired, pairs)
	}
	t.Logf("%d patterns, %d pairs, %d fired", len(patterns), pairs, fired)
}

// TestOracleNotify compares all reports of a criterion that goes on.
func TestOracleNotify(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range patterns {
		for range 12 {
			c := Criterion{Name: "p", Regex: p, Action: Notify, Scope: scopes[r.IntN(len(scopes))], Budget: patience}
			text := randomText(r, 12)
			if err := decided(t, text, c).agrees(follow(t, compile(t, c), []string{text})); err != nil {
				t.Errorf("%q (scope %+v) in %q: %v", p, c.Scope, text, err)
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
		text := randomText(r, 20)
		if r.IntN(2) == 0 {
			text += c.Literal + "x"
		}
		if err := decided(t, text, c).agrees(follow(t, compile(t, c), []string{text})); err != nil {
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
			list = append(list, Criterion{Name: fmt.Sprint(i), Regex: patterns[r.IntN(len(patterns))], Strip: r.IntN(2) == 0, Budget: patience})
		}
		text := randomText(r, 12)
		if err := decided(t, text, list...).agrees(follow(t, compile(t, list...), []string{text})); err != nil {
			t.Errorf("%+v in %q: %v", list, text, err)
		}
	}
}
