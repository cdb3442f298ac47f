package stopping

// A match is where a criterion fired: the match starts at byte start, the
// output ends at byte keep when the criterion strips, and the match ends with
// the text.
type match struct {
	start  int
	keep   int
	groups map[string]string
}

// A detector finds the matches of one criterion in one text.
type detector interface {
	// advance looks at the text after one more character and reports a match
	// that starts in the window and ends with the text.
	advance(t *text, w *window) (match, bool, error)
}

// A holder is a detector that knows how much of the text a later match can
// still reach back to.
type holder interface {
	// held is the byte from which on the text may belong to a later match.
	held(t *text) int
}

// A tokenCounter is a detector that counts tokens.
type tokenCounter interface {
	receive(tokens int)
	settle(earlier, all bool)
}

// A watch is one criterion at work on one text.
type watch struct {
	criterion *Criterion
	window    *window
	detector  detector
	done      bool // a count that was reported
}

func (w *watch) advance(t *text) (match, bool, error) {
	if len(t.runes) > 0 {
		w.window.advance(t)
	}
	return w.detector.advance(t, w.window)
}

// reported keeps a later match from overlapping one that was reported.
func (w *watch) reported(t *text) {
	w.window.from = len(t.runes)
	c := w.criterion
	w.done = c.Sentences+c.Tokens+c.Bytes > 0
}

func (w *watch) strips() bool { return w.criterion.Strip || w.criterion.StripGroup != "" }

func (w *watch) decide(t *text, found match) Decision {
	d := Decision{
		Reason:     Matched,
		Criterion:  w.criterion,
		MatchStart: found.start,
		MatchEnd:   t.end,
		KeepEnd:    t.end,
		Groups:     found.groups,
	}
	if w.strips() {
		d.KeepEnd = found.keep
	}
	return d
}

// held is the byte up to which this criterion lets the text go out.
func (w *watch) held(t *text) int {
	if h, ok := w.detector.(holder); ok && w.strips() {
		return h.held(t)
	}
	return t.end
}

func (w *watch) receive(tokens int) {
	if c, ok := w.detector.(tokenCounter); ok && w.window.open {
		c.receive(max(tokens, 0))
	}
}

func (w *watch) settle(earlier, all bool) {
	if c, ok := w.detector.(tokenCounter); ok {
		c.settle(earlier, all)
	}
}
