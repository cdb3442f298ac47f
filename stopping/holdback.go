package stopping

// liveStarts keeps the characters at which a match that is not complete yet may
// have started. A start is given up when the characters after it contradict
// the beginning of the pattern, or when they are more than a match can have.
type liveStarts struct {
	prefix  []runeSet // what the first characters of a match can be
	longest int       // characters of the longest match, or unbounded
	starts  []int     // in ascending order
}

func (l *liveStarts) advance(t *text, w *window) {
	last := len(t.runes) - 1
	if w.allows(last) && !l.settled(last) {
		l.starts = append(l.starts, last)
	}
	for l.longest != unbounded && len(l.starts) > 0 && last+1-l.starts[0] >= l.longest {
		l.starts = l.starts[1:]
	}
	// Only the youngest starts are still inside the prefix.
	young := len(l.starts)
	for young > 0 && last-l.starts[young-1] < len(l.prefix) {
		young--
	}
	kept := l.starts[:young]
	for _, s := range l.starts[young:] {
		if l.prefix[last-s].has(t.last()) {
			kept = append(kept, s)
		}
	}
	l.starts = kept
}

// settled reports whether the oldest start can never be given up, so that
// younger ones do not matter.
func (l *liveStarts) settled(last int) bool {
	return l.longest == unbounded && len(l.starts) > 0 && last-l.starts[0] >= len(l.prefix)
}

func (l *liveStarts) held(t *text) int {
	if len(l.starts) > 0 {
		return t.offset(l.starts[0])
	}
	return t.end
}
