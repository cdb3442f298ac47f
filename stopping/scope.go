package stopping

// A scope follows the tags and the marker of a Scope through a text, one
// character at a time.
type scope struct {
	Scope
	after, opening, closing *needle // nil when empty
}

// A scopeState is how far a scope has come.
type scopeState struct {
	begun  bool // the marker has been seen
	inside bool // between the tags
	after  int32
	tag    int32 // characters seen of the tag that comes next
}

func newScope(s Scope, a *alphabet) *scope {
	return &scope{Scope: s, after: newNeedle(s.After, a), opening: newNeedle(s.Open, a), closing: newNeedle(s.Close, a)}
}

func (s *scope) begin() scopeState {
	return scopeState{begun: s.After == "", inside: s.StartsInside}
}

// step takes the next character. A tag that is complete starts the search for
// the other one behind it: tags do not overlap.
func (s *scope) step(st scopeState, c *class) scopeState {
	if !st.begun {
		if st.after = s.after.step(st.after, c); int(st.after) == len(s.after.sets) {
			st.begun, st.after = true, 0
		}
	}
	tag := s.opening
	if st.inside {
		tag = s.closing
	}
	if tag != nil {
		if st.tag = tag.step(st.tag, c); int(st.tag) == len(tag.sets) {
			st.inside, st.tag = !st.inside, 0
		}
	}
	return st
}

// allows reports whether a match may start here.
func (s *scope) allows(st scopeState) bool {
	return st.begun && (s.opening == nil || st.inside != s.Outside)
}

// A needle is a fixed text to be found, by the method of Knuth, Morris and Pratt.
type needle struct {
	sets []int32 // a rune set for each character
	back []int32 // characters still matched when the one at this place does not
}

func newNeedle(text string, a *alphabet) *needle {
	if text == "" {
		return nil
	}
	n := &needle{}
	runes := []rune(text)
	for _, r := range runes {
		n.sets = append(n.sets, a.add(runeSet{char: r, literal: true}))
	}
	n.back = make([]int32, len(runes))
	for i := 1; i < len(runes); i++ {
		k := n.back[i-1]
		for k > 0 && runes[k] != runes[i] {
			k = n.back[k-1]
		}
		if runes[k] == runes[i] {
			k++
		}
		n.back[i] = k
	}
	return n
}

// step gives how many characters are matched after the next one.
func (n *needle) step(matched int32, c *class) int32 {
	for matched > 0 && !c.members.has(n.sets[matched]) {
		matched = n.back[matched-1]
	}
	if c.members.has(n.sets[matched]) {
		matched++
	}
	return matched
}
