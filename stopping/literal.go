package stopping

// A literal detects a fixed string.
type literal struct {
	want string
	live *liveStarts // nil unless the match is stripped
}

func (l *literal) advance(t *text, w *window) (match, bool, error) {
	if l.live != nil {
		l.live.advance(t, w)
	}
	if !t.hasSuffix(l.want) {
		return match{}, false, nil
	}
	start := t.end - len(l.want)
	if i := t.index(start); i < 0 || !w.allows(i) {
		return match{}, false, nil
	}
	return match{start: start, keep: start}, true, nil
}

func (l *literal) held(t *text) int { return l.live.held(t) }
