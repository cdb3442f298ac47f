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
	kept := l.starts[:0]
	for _, s := range l.starts {
		at := last - s // place of the new character in the match
		if at < len(l.prefix) && !l.prefix[at].has(t.runes[last]) {
			continue
		}
		if l.longest != unbounded && at+1 >= l.longest {
			continue
		}
		kept = append(kept, s)
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
