package stopping

import (
	"sort"
	"strings"
)

// A window is the set of bytes where a match of one criterion may start.
// Whether a byte belongs to it is known when the text before it is known, and
// never changes after that.
type window struct {
	scope  Scope
	begun  bool  // After has been seen
	flips  []int // bytes at which the scope opens and closes, in turn
	open   bool  // the scope is open after the last flip
	inside bool  // between the tags
	tagged int   // byte after the last tag: tags do not overlap
	pos    int   // bytes looked at
	from   int   // no match starts before this byte
}

func newWindow(s Scope) *window {
	w := &window{scope: s, begun: s.After == "", inside: s.StartsInside}
	w.update(0)
	return w
}

// advance takes note of the tags and markers up to byte to.
func (w *window) advance(text string, to int) {
	s := &w.scope
	if *s == (Scope{}) {
		return
	}
	for w.pos < to {
		w.pos++
		if !w.begun && strings.HasSuffix(text[:w.pos], s.After) {
			w.begun = true
		}
		if s.Open != "" {
			tag := s.Open
			if w.inside {
				tag = s.Close
			}
			if w.pos-len(tag) >= w.tagged && strings.HasSuffix(text[:w.pos], tag) {
				w.inside, w.tagged = !w.inside, w.pos
			}
		}
		w.update(w.pos)
	}
}

func (w *window) update(at int) {
	open := w.begun && (w.scope.Open == "" || w.inside != w.scope.Outside)
	if open != w.open {
		w.open = open
		w.flips = append(w.flips, at)
	}
}

// next is the first byte at or after this one where a match may start. When
// the window is closed from there to the end of the text there is none.
func (w *window) next(at int) (int, bool) {
	at = max(at, w.from)
	i := sort.SearchInts(w.flips, at+1) // flips at or before this byte
	if i%2 == 1 {
		return at, true
	}
	if i < len(w.flips) {
		return w.flips[i], true
	}
	return 0, false
}

// allows reports whether a match may start at this byte.
func (w *window) allows(at int) bool {
	n, ok := w.next(at)
	return ok && n == at
}
