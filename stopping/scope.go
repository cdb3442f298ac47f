package stopping

import "sort"

// A window is the set of characters where a match of one criterion may start.
// Whether a character belongs to it is known when the text before it is known,
// and never changes after that.
type window struct {
	scope  Scope
	begun  bool  // After has been seen
	flips  []int // characters at which the scope opens and closes, in turn
	open   bool  // the scope is open after the last flip
	inside bool  // between the tags
	tagged int   // byte after the last tag: tags do not overlap
	from   int   // no match starts before this character
}

func newWindow(s Scope) *window {
	w := &window{scope: s, begun: s.After == "", inside: s.StartsInside}
	w.update(0)
	return w
}

// advance takes note of a tag or marker that ends with the text.
func (w *window) advance(t *text) {
	s := &w.scope
	if !w.begun && t.hasSuffix(s.After) {
		w.begun = true
	}
	if s.Open != "" {
		tag := s.Open
		if w.inside {
			tag = s.Close
		}
		if t.end-len(tag) >= w.tagged && t.hasSuffix(tag) {
			w.inside, w.tagged = !w.inside, t.end
		}
	}
	w.update(len(t.runes))
}

func (w *window) update(index int) {
	open := w.begun && (w.scope.Open == "" || w.inside != w.scope.Outside)
	if open != w.open {
		w.open = open
		w.flips = append(w.flips, index)
	}
}

// next is the first character at or after index where a match may start. When
// the window is closed from index to the end of the text there is none.
func (w *window) next(index int) (int, bool) {
	index = max(index, w.from)
	i := sort.SearchInts(w.flips, index+1) // flips at or before index
	if i%2 == 1 {
		return index, true
	}
	if i < len(w.flips) {
		return w.flips[i], true
	}
	return 0, false
}

// allows reports whether a match may start at this character.
func (w *window) allows(index int) bool {
	n, ok := w.next(index)
	return ok && n == index
}
