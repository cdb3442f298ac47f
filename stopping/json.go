package stopping

// A jsonValue detects the end of a balanced object or array. Brackets that do
// not pair give up the value, and the search goes on behind them. Only ASCII
// bytes count, so it reads bytes.
type jsonValue struct {
	pos     int
	start   int // of the outermost bracket
	closers []byte
	quoted  bool // inside a string
	escaped bool // after a backslash inside a string
}

func (j *jsonValue) next(text string, to int, w *window) (match, bool) {
	for j.pos < to {
		b := text[j.pos]
		j.pos++
		switch {
		case j.escaped:
			j.escaped = false
		case j.quoted:
			j.escaped = b == '\\'
			j.quoted = b != '"'
		case len(j.closers) > 0 && b == '"':
			j.quoted = true
		case b == '{', b == '[':
			j.open(b, w)
		case len(j.closers) > 0 && (b == '}' || b == ']'):
			if j.close(b) {
				return match{start: j.start, end: j.pos}, true
			}
		}
	}
	return match{}, false
}

func (j *jsonValue) open(b byte, w *window) {
	if len(j.closers) == 0 {
		if !w.allows(j.pos - 1) {
			return
		}
		j.start = j.pos - 1
	}
	closer := byte('}')
	if b == '[' {
		closer = ']'
	}
	j.closers = append(j.closers, closer)
}

// close reports whether the bracket ends the value.
func (j *jsonValue) close(b byte) bool {
	depth := len(j.closers) - 1
	if j.closers[depth] != b {
		j.closers = j.closers[:0]
		return false
	}
	j.closers = j.closers[:depth]
	return depth == 0
}

func (j *jsonValue) held(to int) int {
	if len(j.closers) > 0 {
		return j.start
	}
	return to
}
