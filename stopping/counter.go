package stopping

import (
	"unicode"
	"unicode/utf8"
)

// A byteCount detects that enough bytes stand inside the window.
type byteCount struct{ want, have, pos int }

func (c *byteCount) next(text string, to int, w *window) (match, bool) {
	everywhere := w.scope == (Scope{})
	if everywhere && c.have+to-c.pos < c.want {
		c.have += to - c.pos
		c.pos = to
	}
	for c.pos < to {
		_, size := utf8.DecodeRuneInString(text[c.pos:])
		if everywhere || w.allows(c.pos) {
			c.have += size
		}
		c.pos += size
		if c.have >= c.want {
			return match{start: c.pos, end: c.pos}, true
		}
	}
	return match{}, false
}

// A tokenCount detects that enough tokens are complete. A token that ends
// inside a character counts when the character is complete.
type tokenCount struct {
	want              int
	received, earlier int // tokens with and without those of the last chunk
	pos               int
	asked             bool // the end of the last chunk has been looked at
}

func (c *tokenCount) receive(tokens int) {
	c.earlier, c.asked = c.received, false
	c.received += tokens
}

func (c *tokenCount) next(text string, to int, _ *window) (match, bool) {
	if c.earlier < c.want {
		c.pos = to
	}
	for c.pos < to {
		_, size := utf8.DecodeRuneInString(text[c.pos:])
		c.pos += size
		if c.pos < len(text) {
			return match{start: c.pos, end: c.pos}, true
		}
	}
	if to < len(text) || c.asked || c.received < c.want {
		return match{}, false
	}
	c.asked = true
	return match{start: to, end: to}, true
}

// A sentenceCount detects that enough sentences are complete.
type sentenceCount struct {
	want, have, pos int
	previous        rune
	counted         bool // the marks before this character have ended their sentence
}

func (c *sentenceCount) next(text string, to int, w *window) (match, bool) {
	for c.pos < to {
		at, start := c.pos, c.pos
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		c.pos += size
		previous, counted := c.previous, c.counted
		c.previous = r
		c.counted = fullStop(r) || counted && halfStop(r)
		switch {
		case counted:
			continue
		case fullStop(r):
		case halfStop(previous) && unicode.IsSpace(r):
			start--
		default:
			continue
		}
		if !w.allows(start) {
			continue
		}
		if c.have++; c.have >= c.want {
			return match{start: start, end: c.pos}, true
		}
	}
	return match{}, false
}

// halfStop reports whether r ends a sentence before white space.
func halfStop(r rune) bool { return r == '.' || r == '!' || r == '?' }

// fullStop reports whether r ends a sentence whatever follows.
func fullStop(r rune) bool { return r == '。' || r == '！' || r == '？' }
