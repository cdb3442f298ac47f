package stopping

import (
	"errors"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// A regex detects a pattern in one text.
type regex struct {
	*pattern
	live *liveStarts // nil unless the match is stripped
}

func (x *regex) advance(t *text, w *window) (match, bool, error) {
	if x.live != nil {
		x.live.advance(t, w)
	}
	from := 0
	if x.longest != unbounded {
		from = max(0, len(t.runes)-x.longest)
	}
	from, ok := w.next(from)
	if !ok || !x.plausible(t) {
		return match{}, false, nil
	}
	if x.reverse != nil {
		if ok, err := x.reverse.MatchRunes(t.runes); err != nil || !ok {
			return match{}, false, x.failure(err, t)
		}
	}
	search := x.leftmost
	if x.nearest {
		search = x.last
	}
	found, err := search(t, w, from)
	if err != nil || found == nil {
		return match{}, false, x.failure(err, t)
	}
	return x.result(found, t), true, nil
}

// plausible is a cheap necessary condition: the last characters are among
// those that a match can end with.
func (x *regex) plausible(t *text) bool {
	n := len(t.runes)
	if n < len(x.suffix) {
		return false
	}
	for i, set := range x.suffix {
		if !set.has(t.runes[n-1-i]) {
			return false
		}
	}
	return true
}

// leftmost finds the first match among those that start in the window at or
// after from and end with the text.
func (x *regex) leftmost(t *text, w *window, from int) (*regexp2.Match, error) {
	deadline := time.Now().Add(x.budget)
	for {
		found, err := x.forward.FindRunesMatchStartingAt(t.runes, from)
		if err != nil || found == nil {
			return nil, err
		}
		next, ok := w.next(found.RuneIndex)
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

// last finds the match that starts last. It tries the starts from the end
// backwards, so that it reads no more than the match, however often a match
// may have begun before.
func (x *regex) last(t *text, w *window, from int) (*regexp2.Match, error) {
	deadline := time.Now().Add(x.budget)
	for at := len(t.runes); at >= from; at-- {
		if !w.allows(at) || !x.begins(t, at) {
			continue
		}
		found, err := x.here.FindRunesMatchStartingAt(t.runes, at)
		if err != nil || found != nil {
			return found, err
		}
		if time.Now().After(deadline) {
			return nil, ErrTime
		}
	}
	return nil, nil
}

// begins is a cheap necessary condition for a match that starts at this
// character.
func (x *regex) begins(t *text, at int) bool {
	if len(t.runes)-at < len(x.prefix) {
		return false
	}
	for i, set := range x.prefix {
		if !set.has(t.runes[at+i]) {
			return false
		}
	}
	return true
}

// result turns characters into bytes.
func (x *regex) result(found *regexp2.Match, t *text) match {
	m := match{start: t.offset(found.RuneIndex), keep: t.offset(found.RuneIndex)}
	for _, name := range x.groups {
		g := found.GroupByName(name)
		if g == nil || len(g.Captures) == 0 {
			continue
		}
		if m.groups == nil {
			m.groups = map[string]string{}
		}
		m.groups[name] = string(t.bytes[t.offset(g.RuneIndex):t.offset(g.RuneIndex+g.RuneLength)])
	}
	if x.strip != "" {
		m.keep = t.end
		if g := found.GroupByName(x.strip); g != nil && len(g.Captures) > 0 {
			// A group in a lookbehind can start before the match.
			m.keep = max(m.start, t.offset(g.RuneIndex))
		}
	}
	return m
}

// failure hides the library's error: its text contains the whole input.
func (x *regex) failure(err error, t *text) error {
	if err == nil {
		return nil
	}
	cause := ErrTime
	if errors.Is(err, regexp2.ErrBacktrackingStackLimit) {
		cause = ErrStack
	}
	return &BudgetError{Criterion: x.name, Budget: x.budget, Offset: t.end, Err: cause}
}

func (x *regex) held(t *text) int { return x.live.held(t) }
