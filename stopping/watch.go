package stopping

// A match is where a criterion fired: from byte start to byte end, and the
// output ends at byte keep when the criterion strips.
type match struct {
	start, end, keep int
	groups           map[string]string
}

// A detector finds the matches of a criterion that is no pattern.
type detector interface {
	// next gives the next match that starts in the window and ends at a
	// character's end up to byte to. It goes on where it was.
	next(text string, to int, w *window) (match, bool)
}

// A holder is a detector that knows how much of the text a later match can
// still reach back to.
type holder interface {
	// held is the byte from which on the text up to byte to may belong to a later match.
	held(to int) int
}

// A watch is a detector at work on one text.
type watch struct {
	place     int // in the set
	criterion *Criterion
	window    *window
	detector  detector
	done      bool // a count that was reported
}

// newWatch returns nil for a criterion that an automaton takes care of.
func newWatch(place int, c *Criterion) *watch {
	w := &watch{place: place, criterion: c, window: newWindow(c.Scope)}
	switch {
	case c.Repetition != nil:
		w.detector = newRepetition(*c.Repetition)
	case c.JSON:
		w.detector = &jsonValue{}
	case c.Sentences > 0:
		w.detector = &sentenceCount{want: c.Sentences}
	case c.Tokens > 0:
		w.detector = &tokenCount{want: c.Tokens}
	case c.Bytes > 0:
		w.detector = &byteCount{want: c.Bytes}
	default:
		return nil
	}
	return w
}

// receive counts the tokens of the next chunk.
func (w *watch) receive(tokens int) {
	if c, ok := w.detector.(*tokenCount); ok {
		if !w.window.open {
			tokens = 0
		}
		c.receive(tokens)
	}
}

// look adds the matches up to byte to. tokens is how many have been received.
func (w *watch) look(f *findings, text string, to, tokens int) {
	w.window.advance(text, to)
	c := w.criterion
	for !w.done {
		m, ok := w.detector.next(text, to, w.window)
		if !ok {
			return
		}
		if m.end < c.MinBytes || tokens < c.MinTokens {
			continue
		}
		m.keep = m.start
		if f.add(w.place, c, m) {
			return
		}
		w.window.from = m.end
		w.done = c.Sentences+c.Tokens+c.Bytes > 0
	}
}

// held is the byte up to which this criterion lets the text go out.
func (w *watch) held(to int) int {
	if h, ok := w.detector.(holder); ok && w.criterion.strips() {
		return h.held(to)
	}
	return to
}

func (c *Criterion) strips() bool { return c.Strip || c.StripGroup != "" }

// A finding is a match, or a pattern that gave up.
type finding struct {
	place    int // of the criterion in the set
	decision Decision
	err      error
}

// before reports whether a finding comes first: the earlier end wins, ties go
// to the order of declaration.
func (f *finding) before(other *finding) bool {
	if f.decision.MatchEnd != other.decision.MatchEnd {
		return f.decision.MatchEnd < other.decision.MatchEnd
	}
	return f.place < other.place
}

// findings are what one write leads to.
type findings struct {
	notified []finding
	last     *finding // the one that ends the text
}

// add takes a match and reports whether it ends the text.
func (f *findings) add(place int, c *Criterion, m match) bool {
	d := Decision{Reason: Matched, Criterion: c, MatchStart: m.start, MatchEnd: m.end, KeepEnd: m.end, Groups: m.groups}
	if c.strips() {
		d.KeepEnd = m.keep
	}
	found := finding{place: place, decision: d}
	if c.Action == Notify {
		f.notified = append(f.notified, found)
		return false
	}
	f.end(found)
	return true
}

// end takes a finding that ends the text, unless an earlier one does.
func (f *findings) end(found finding) {
	if f.last == nil || found.before(f.last) {
		f.last = &found
	}
}
