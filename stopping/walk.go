package stopping

import (
	"sync/atomic"
	"unicode/utf8"
)

// A walk is one text on its way through an automaton.
type walk struct {
	dfa     *dfa
	next    []int32 // of a table of the dfa, not always the newest
	ascii   *[256]uint16
	place   int32  // of the row of the state; meaningless while off is set
	off     *state // a state that has no row, else nil
	pos     int    // bytes taken
	starts  []int  // registers: the bytes where the matches started that are possible
	holds   []hold // of the state
	spare   []int
	builder *builder // computes states that have no row
	lost    int      // characters for which it did
	own     state    // the last one that was computed here
}

func newWalk(d *dfa) *walk {
	w := &walk{dfa: d}
	w.enter(d.table.Load().state(0))
	return w
}

// quick reports whether the next bytes need nothing but the table, if nothing is
// held back.
func (w *walk) quick() bool { return w != nil && w.off == nil }

// run takes the characters up to byte to, where a character ends. It returns
// true behind a character where a match ends.
func (w *walk) run(text string, to int) bool {
	for w.pos < to {
		if w.off == nil {
			w.pos, w.place = w.skip(text[:to], w.pos, w.place)
		}
		if w.pos < to && w.step(text) {
			return true
		}
	}
	return false
}

// skip looks how far the text goes on behind byte n, where the state is at place,
// without a match that begins or ends, and where in the table that leads.
func (w *walk) skip(text string, n int, place int32) (int, int32) {
	next, ascii := w.next, w.ascii
	for n < len(text) {
		size := 1
		v := atomic.LoadInt32(&next[uint32(place)+uint32(ascii[text[n]])])
		if v < 0 && text[n] >= utf8.RuneSelf {
			var column uint32
			if column, size = w.dfa.program.alphabet.columnOf(text[n:]); size > 0 {
				v = atomic.LoadInt32(&next[uint32(place)+column])
			}
		}
		if v < 0 {
			break
		}
		place = v
		n += size
	}
	return n, place
}

// step takes the next character in whatever way is needed. It returns true when
// a match ends behind it.
func (w *walk) step(text string) bool {
	c, size := w.dfa.program.alphabet.next(text[w.pos:])
	var s *state
	if w.off != nil {
		s = w.stepOff(c)
	} else {
		t := w.dfa.table.Load()
		v := unknown
		if c.column < 1<<t.shift {
			v = atomic.LoadInt32(&t.next[int(w.place)+c.column])
		}
		switch {
		case v >= 0:
			// A row that another text has added may be in the newer table only.
			w.next, w.place = t.next, v
			w.pos += size
			return false
		case v != unknown:
			s = t.state(-2 - v)
		default:
			s = w.dfa.next(t.state(w.place), c)
		}
	}
	if s.moves != nil {
		w.move(s.moves)
	}
	w.pos += size
	w.enter(s)
	return len(s.accepts) > 0
}

// stepOff computes the next state without the table, and comes back to it when
// the state is known.
func (w *walk) stepOff(c *class) *state {
	if w.builder == nil {
		w.builder = newBuilder(w.dfa.program)
	}
	w.builder.step(w.off, c)
	w.lost++
	if w.lost%16 == 0 { // a long key takes time
		if s := w.dfa.find(w.builder.key); s != nil {
			return s
		}
	}
	return w.builder.state(&w.own, w.off, c)
}

// enter makes a state the present one.
func (w *walk) enter(s *state) {
	w.holds = s.holds
	w.off = nil
	if s.row < 0 {
		w.off = s
		return
	}
	t := w.dfa.table.Load()
	w.next, w.ascii, w.place = t.next, t.ascii, s.row<<t.shift
}

// move fills the registers from those of the state before.
func (w *walk) move(moves []int32) {
	w.spare = w.spare[:0]
	for _, m := range moves {
		start := w.pos
		if m != fresh {
			start = w.starts[m]
		}
		w.spare = append(w.spare, start)
	}
	w.starts, w.spare = w.spare, w.starts
}

// state is the present state.
func (w *walk) state() *state {
	if w.off != nil {
		return w.off
	}
	return w.dfa.table.Load().state(w.place)
}

// start is where a match that ends here began.
func (w *walk) start(a accept) int {
	if a.register == fresh {
		return w.pos
	}
	return w.starts[a.register]
}

// held is the first byte that a later match may still remove.
func (w *walk) held() int {
	held := w.pos
	for _, h := range w.holds {
		start := w.starts[h.register]
		if h.reach > 0 {
			start = max(start, w.pos-h.reach)
		}
		held = min(held, start)
	}
	return held
}

// forget drops what has begun of an entry, so that its next match does not
// overlap the one before.
func (w *walk) forget(entry int) {
	s := w.state()
	if first, n := s.registersOf(w.dfa.program, entry); n > 0 {
		w.starts = append(w.starts[:first], w.starts[first+n:]...)
	}
	w.enter(w.dfa.without(s, entry))
}

// registersOf gives the first register of an entry and how many it has.
func (s *state) registersOf(p *program, entry int) (first, n int) {
	items := s.items
	for range p.looks {
		for items[0] != endEntry {
			items = items[1:]
		}
		items = items[1:]
	}
	for i := range entry + 1 {
		first, n = first+n, 0
		for ; items[0] != endEntry; items = items[1:] {
			if items[0] == endGroup && p.entries[i].tracked {
				n++
			}
		}
		items = items[1:]
	}
	return first, n
}
