package stopping

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
	Reason    string // one sentence without a full stop
}

// Plan says how each criterion is checked, in the order of declaration.
func (s *Set) Plan() []Plan {
	var out []Plan
	for i := range s.criteria {
		c := &s.criteria[i]
		p := Plan{Criterion: c.Name, Engine: Counter, Reason: "constant work for each character"}
		if c.pattern != nil {
			p.Engine, p.Reason = Rescan, "the pattern is matched again at every character"
		}
		out = append(out, p)
	}
	return out
}
