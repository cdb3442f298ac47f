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
	found, err := x.search(t, w, from)
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

// search finds the leftmost match, or the one that starts last, among those
// that start in the window at or after from and end with the text.
func (x *regex) search(t *text, w *window, from int) (best *regexp2.Match, err error) {
	deadline := time.Now().Add(x.budget)
	for from <= len(t.runes) {
		found, err := x.forward.FindRunesMatchStartingAt(t.runes, from)
		if err != nil || found == nil {
			return best, err
		}
		next, ok := w.next(found.RuneIndex)
		if ok && next == found.RuneIndex {
			best = found
			if !x.nearest {
				return best, nil
			}
			next, ok = w.next(found.RuneIndex + 1)
		}
		if !ok {
			return best, nil
		}
		if time.Now().After(deadline) {
			return nil, ErrTime
		}
		from = next
	}
	return best, nil
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
