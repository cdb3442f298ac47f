package stopping

import "unicode"

// A byteCount detects that enough bytes stand inside the window.
type byteCount struct{ want, have int }

func (c *byteCount) advance(t *text, w *window) (match, bool, error) {
	last := len(t.runes) - 1
	if w.allows(last) {
		c.have += t.end - t.starts[last]
	}
	return match{start: t.end, keep: t.end}, c.have >= c.want, nil
}

// A tokenCount detects that enough tokens are complete. A token that ends
// inside a character counts when the character is complete.
type tokenCount struct{ want, received, earlier, have int }

func (c *tokenCount) receive(tokens int) {
	c.earlier = c.received
	c.received += tokens
}

func (c *tokenCount) settle(earlier, all bool) {
	switch {
	case all:
		c.have = c.received
	case earlier:
		c.have = c.earlier
	}
}

func (c *tokenCount) advance(t *text, _ *window) (match, bool, error) {
	return match{start: t.end, keep: t.end}, c.have >= c.want, nil
}

// A sentenceCount detects that enough sentences are complete.
type sentenceCount struct {
	want, have int
	previous   rune
	counted    bool // the marks before this character have ended their sentence
}

func (c *sentenceCount) advance(t *text, w *window) (match, bool, error) {
	r, previous, counted := t.last(), c.previous, c.counted
	c.previous = r
	c.counted = fullStop(r) || counted && halfStop(r)
	start := len(t.runes) - 1
	switch {
	case counted:
		return match{}, false, nil
	case fullStop(r):
	case unicode.IsSpace(r) && halfStop(previous):
		start--
	default:
		return match{}, false, nil
	}
	if !w.allows(start) {
		return match{}, false, nil
	}
	c.have++
	at := t.offset(start)
	return match{start: at, keep: at}, c.have >= c.want, nil
}

// halfStop reports whether r ends a sentence before white space.
func halfStop(r rune) bool { return r == '.' || r == '!' || r == '?' }

// fullStop reports whether r ends a sentence whatever follows.
func fullStop(r rune) bool { return r == '。' || r == '！' || r == '？' }
