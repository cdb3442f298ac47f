package stopping

import (
	"errors"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// A follower is a pattern or literal at work on one text. The automaton says
// where it may end; the follower says whether it does, and where it began.
type follower struct {
	*compiled
	tracker *walk    // finds the start; nil until needed
	window  *window  // nil when the automaton is exact
	text    runeText // what regexp2 reads
}

func newFollower(c *compiled) *follower {
	f := &follower{compiled: c}
	if !c.exact() {
		f.window = newWindow(c.Scope)
	}
	return f
}

// confirm gives the match that ends where the automaton stands. An automaton
// that does not know all of the pattern may be wrong.
func (x *follower) confirm(text string, w *walk, a accept) (match, bool, error) {
	if !x.exact() {
		return x.verify(text, w.pos, w.start(a))
	}
	start := w.start(a)
	if x.starts != nil {
		start = x.track(text, w.pos)
	}
	m := match{start: start, end: w.pos, keep: start}
	if x.pattern == nil || len(x.pattern.groups) == 0 {
		return m, true, nil
	}
	return x.capture(text, m)
}

// track finds the start of the match that ends at byte end.
func (x *follower) track(text string, end int) int {
	if x.tracker == nil {
		x.tracker = newWalk(x.starts())
	}
	for x.tracker.pos < end {
		x.tracker.run(text, end)
	}
	return x.tracker.start(x.tracker.state().accepts[0])
}

// reported keeps a later match from overlapping the one that ended here. The
// automaton itself is told by the matcher.
func (x *follower) reported() {
	if x.tracker != nil {
		x.tracker.forget(0)
	}
}

// capture fills in the groups of a match. The pattern looks back at most one
// character, or else everywhere.
func (x *follower) capture(text string, m match) (match, bool, error) {
	part := &x.text
	part.cover(text, x.context(text, m.start), m.end)
	found, err := x.pattern.here.FindRunesMatchStartingAt(part.runes, part.index(m.start))
	if err != nil {
		return match{}, false, x.failure(err, m.end)
	}
	if found != nil {
		x.result(found, part, text, &m)
	}
	return m, true, nil
}

// verify runs the pattern itself. No match starts before byte from.
func (x *follower) verify(text string, end, from int) (match, bool, error) {
	p := x.pattern
	x.window.advance(text, end)
	x.text.cover(text, x.context(text, from), end)
	first := x.text.index(from)
	if p.longest != unbounded {
		first = max(first, len(x.text.runes)-p.longest)
	}
	first, ok := x.next(first)
	if !ok {
		return match{}, false, nil
	}
	if p.reverse != nil {
		runes := x.text.runes
		if !p.looksBack { // one character of context; what is before it takes time
			runes = runes[max(0, first-1):]
		}
		if ok, err := p.reverse.MatchRunes(runes); err != nil || !ok {
			return match{}, false, x.failure(err, end)
		}
	}
	search := x.leftmost
	if x.Captures == Nearest {
		search = x.nearest
	}
	found, err := search(first)
	if err != nil || found == nil {
		return match{}, false, x.failure(err, end)
	}
	start := x.text.offset(found.RuneIndex)
	m := match{start: start, end: end, keep: start}
	x.result(found, &x.text, text, &m)
	return m, true, nil
}

// context is the byte from which on a match that starts at byte start can look
// at the text.
func (x *follower) context(text string, start int) int {
	if x.pattern.looksBack {
		return 0
	}
	return before(text, start)
}

// next is the first character at or after this one where a match may start.
func (x *follower) next(index int) (int, bool) {
	at, ok := x.window.next(x.text.offset(index))
	return x.text.index(at), ok
}

// leftmost finds the first match among those that start in the window at or
// after this character and end with the text.
func (x *follower) leftmost(from int) (*regexp2.Match, error) {
	deadline := time.Now().Add(x.Budget)
	for {
		found, err := x.pattern.forward.FindRunesMatchStartingAt(x.text.runes, from)
		if err != nil || found == nil {
			return nil, err
		}
		next, ok := x.next(found.RuneIndex)
		switch {
		case !ok:
			return nil, nil
		case next == found.RuneIndex:
			return found, nil
		case time.Now().After(deadline):
			return nil, ErrTime
		}
		from = next
	}
}

// nearest finds the match that starts last. It tries the starts from the end
// backwards, so that it reads no more than the match, however often a match
// may have begun before.
func (x *follower) nearest(from int) (*regexp2.Match, error) {
	deadline := time.Now().Add(x.Budget)
	runes := x.text.runes
	for at := len(runes); at >= from; at-- {
		if at < len(runes) && !x.begins(runes[at]) || !x.window.allows(x.text.offset(at)) {
			continue
		}
		found, err := x.pattern.here.FindRunesMatchStartingAt(runes, at)
		if err != nil || found != nil {
			return found, err
		}
		if time.Now().After(deadline) {
			return nil, ErrTime
		}
	}
	return nil, nil
}

// result reads the groups of what regexp2 has found.
func (x *follower) result(found *regexp2.Match, d *runeText, text string, m *match) {
	for _, name := range x.pattern.groups {
		g := found.GroupByName(name)
		if g == nil || len(g.Captures) == 0 {
			continue
		}
		if m.groups == nil {
			m.groups = map[string]string{}
		}
		m.groups[name] = text[d.offset(g.RuneIndex):d.offset(g.RuneIndex+g.RuneLength)]
	}
	if x.StripGroup != "" {
		m.keep = m.end
		if g := found.GroupByName(x.StripGroup); g != nil && len(g.Captures) > 0 {
			// A group in a lookbehind can start before the match.
			m.keep = max(m.start, d.offset(g.RuneIndex))
		}
	}
}

// failure hides the library's error: its text contains the whole input.
func (x *follower) failure(err error, at int) error {
	if err == nil {
		return nil
	}
	cause := ErrTime
	if errors.Is(err, regexp2.ErrBacktrackingStackLimit) {
		cause = ErrStack
	}
	return &BudgetError{Criterion: x.Name, Budget: x.Budget, Offset: at, Err: cause}
}
