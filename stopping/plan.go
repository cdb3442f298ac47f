package stopping

import (
	"fmt"
	"slices"
	"strings"
)

// An Engine is how a criterion is checked.
type Engine string

// The engines, from the cheapest to the dearest.
const (
	// Counter keeps a count or a nesting depth: constant work for each character.
	Counter Engine = "counter"
	// DFA takes one table look-up for each character, together with all other
	// criteria of the set that have it. It is exact.
	DFA Engine = "dfa"
	// NFA is the same automaton without the table, which would be too large.
	NFA Engine = "nfa"
	// Gated runs the pattern itself, but only where an automaton that knows a
	// little less of the pattern finds that it may match.
	Gated Engine = "gated"
	// Windowed is Gated over the last few characters: a match has a limited length.
	Windowed Engine = "windowed"
	// Rescan runs the pattern at every character.
	Rescan Engine = "rescan"
)

// A Plan says how a criterion is checked, and why.
type Plan struct {
	Criterion string // name of the criterion
	Engine    Engine
	Reason    string // without a full stop
}

// Plan says how each criterion is checked, in the order of declaration. It can
// change from DFA to NFA while texts are followed.
func (s *Set) Plan() []Plan {
	var out []Plan
	for i := range s.criteria {
		p := Plan{Criterion: s.criteria[i].Name}
		p.Engine, p.Reason = s.plan(&s.criteria[i])
		out = append(out, p)
	}
	return out
}

func (s *Set) plan(c *compiled) (Engine, string) {
	switch {
	case c.pattern == nil && c.Literal == "":
		return Counter, "the same work for each character"
	case c.exact() && s.automaton.isFull():
		return NFA, fmt.Sprintf("the table has reached %d MiB; what is missing is worked out at each character", maxTable>>20)
	case c.exact():
		return DFA, "one step in a table for each character" + s.company()
	}
	because := "beyond an automaton: " + list(c.pattern.missing, "and")
	switch {
	case c.pattern.longest != unbounded:
		return Windowed, fmt.Sprintf("%s; where the rest may match, the pattern runs over the last %s", because, count(c.pattern.longest, "character"))
	case s.acceptsAll(c):
		return Rescan, because + ", and the rest may match at every character"
	}
	return Gated, because + "; where the rest may match, the pattern runs from the first possible start"
}

// company says how many criteria share the table.
func (s *Set) company() string {
	if n := len(s.followed) - 1; n > 0 {
		return ", shared with " + count(n, "criterion")
	}
	return ""
}

// acceptsAll reports whether the automaton soon finds a match of the criterion
// behind every character, whatever the text consists of.
func (s *Set) acceptsAll(c *compiled) bool {
	const soon = 32 // characters
	d := s.automaton
	for _, k := range (*d.program.alphabet.classes.Load())[1:] {
		at := d.table.Load().state(0)
		for i := 0; i < soon && at.row >= 0; i++ {
			at = d.next(at, k)
		}
		if !slices.ContainsFunc(at.accepts, func(a accept) bool { return s.followed[a.entry] == c.place }) {
			return false
		}
	}
	return true
}

func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "criterion":
		return fmt.Sprint(n, " criteria")
	}
	return fmt.Sprint(n, " ", noun, "s")
}

func list(items []string, last string) string {
	if n := len(items) - 1; n > 0 {
		return strings.Join(items[:n], ", ") + " " + last + " " + items[n]
	}
	return items[0]
}
