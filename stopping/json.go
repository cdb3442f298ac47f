package stopping

// A jsonValue detects the end of a balanced object or array. Brackets that do
// not pair give up the value, and the search goes on behind them.
type jsonValue struct {
	start   int // character of the outermost bracket
	closers []rune
	quoted  bool // inside a string
	escaped bool // after a backslash inside a string
}

func (j *jsonValue) advance(t *text, w *window) (match, bool, error) {
	r := t.last()
	switch {
	case j.escaped:
		j.escaped = false
	case j.quoted:
		j.escaped = r == '\\'
		j.quoted = r != '"'
	case len(j.closers) > 0 && r == '"':
		j.quoted = true
	case r == '{', r == '[':
		j.open(r, len(t.runes)-1, w)
	case len(j.closers) > 0 && (r == '}' || r == ']'):
		depth := len(j.closers) - 1
		paired := j.closers[depth] == r
		j.closers = j.closers[:depth]
		if !paired {
			j.closers = nil
		} else if depth == 0 {
			at := t.offset(j.start)
			return match{start: at, keep: at}, true, nil
		}
	}
	return match{}, false, nil
}

func (j *jsonValue) open(r rune, index int, w *window) {
	if len(j.closers) == 0 {
		if !w.allows(index) {
			return
		}
		j.start = index
	}
	closer := '}'
	if r == '[' {
		closer = ']'
	}
	j.closers = append(j.closers, closer)
}

func (j *jsonValue) held(t *text) int {
	if len(j.closers) > 0 {
		return t.offset(j.start)
	}
	return t.end
}
