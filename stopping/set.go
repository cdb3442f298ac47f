package stopping

import (
	"sync"
	"time"
	"unicode/utf8"
)

// A Set is a list of compiled criteria. It is immutable and may be shared; the
// zero Set never stops a text.
type Set struct {
	criteria  []compiled
	warnings  []Warning
	automaton *dfa  // of all patterns and literals, nil without
	followed  []int // the criteria in the automaton
	strips    bool
}

// A compiled criterion.
type compiled struct {
	Criterion
	place   int
	pattern *pattern // nil unless Regex is set
	// starts gives the automaton that finds where a match began, made for the
	// first one that fires. It is nil when the automaton of the set keeps the
	// starts, because text may have to be held back from there on, or because
	// the pattern has to be run from there on.
	starts func() *dfa
	begins func(r rune) bool // whether a match can begin with the character
}

// exact says that the automaton knows all of the criterion.
func (c *compiled) exact() bool { return c.pattern == nil || len(c.pattern.missing) == 0 }

// Compile checks and compiles criteria. The order counts: when several fire at
// the same byte, the first one wins. Errors are of type [*CompileError]. The
// criteria in decisions are copies in which zero values are filled in.
func Compile(criteria ...Criterion) (*Set, error) {
	s := &Set{}
	seen := map[string]bool{}
	for i, c := range criteria {
		if err := validate(&c, i, seen); err != nil {
			return nil, err
		}
		fill(&c)
		k := compiled{Criterion: c, place: i}
		if c.Regex != "" {
			p, err := newPattern(&c)
			if err != nil {
				return nil, err
			}
			if err := p.checkStripGroup(&c); err != nil {
				return nil, err
			}
			k.pattern = p
		}
		s.strips = s.strips || c.strips()
		s.criteria = append(s.criteria, k)
	}
	if err := s.build(); err != nil {
		return nil, err
	}
	return s, nil
}

// build makes the automata and what else the criteria need.
func (s *Set) build() error {
	a := newAlphabet()
	union := &program{alphabet: a}
	starts := map[int]*program{}
	for i := range s.criteria {
		c := &s.criteria[i]
		if c.pattern == nil && c.Literal == "" {
			continue
		}
		c.addTo(union, c.strips())
		s.followed = append(s.followed, i)
		if c.exact() && !c.strips() {
			starts[i] = &program{alphabet: a}
			c.addTo(starts[i], true)
		}
		if c.pattern != nil {
			if err := c.pattern.build(&c.Criterion); err != nil {
				return err
			}
		}
	}
	if len(s.followed) == 0 {
		return nil
	}
	a.freeze()
	s.automaton = newDFA(union)
	for i, p := range starts {
		s.criteria[i].starts = sync.OnceValue(func() *dfa { return newDFA(p) })
	}
	for e, i := range s.followed {
		c := &s.criteria[i]
		c.begins = union.begins(union.entries[e].start)
		if c.pattern != nil {
			s.warnings = append(s.warnings, lint(c)...)
			if engine, reason := s.plan(c); engine == Rescan {
				s.warnings = append(s.warnings, Warning{Criterion: c.Name, Problem: "each check reads all of the text: " + reason,
					Hint: "say how long a match can be, for example with {0,200} for *; for text that repeats itself use a repetition"})
			}
		}
	}
	return nil
}

// addTo adds the criterion to a program. A pattern that the automaton does not
// know in full has to be run from the earliest start that is possible.
func (c *compiled) addTo(p *program, tracked bool) {
	e := entry{holds: c.strips(), scope: p.scope(c.Scope)}
	if c.pattern == nil {
		e.start = p.literal(c.Literal)
	} else {
		e.start, c.pattern.missing = p.pattern(c.pattern.root, c.pattern.atomic)
	}
	e.tracked = tracked || !c.exact()
	e.youngest = c.exact() && c.Captures == Nearest
	if !c.exact() && c.pattern.longest != unbounded {
		e.reach = c.pattern.longest * utf8.UTFMax
	}
	p.entries = append(p.entries, e)
}

// Warnings lists what may surprise, in the order of declaration.
func (s *Set) Warnings() []Warning { return append([]Warning(nil), s.warnings...) }

// Matcher begins a new text.
func (s *Set) Matcher() *Matcher {
	m := &Matcher{strips: s.strips}
	for i := range s.criteria {
		if w := newWatch(i, &s.criteria[i].Criterion); w != nil {
			m.watches = append(m.watches, w)
		}
	}
	if s.automaton != nil {
		m.walk = newWalk(s.automaton)
		for _, i := range s.followed {
			m.patterns = append(m.patterns, newFollower(&s.criteria[i]))
		}
	}
	return m
}

// fill fills in zero values and unties the copy from the caller's.
func fill(c *Criterion) {
	if c.Action == "" {
		c.Action = Halt
	}
	if c.Captures == "" {
		c.Captures = Leftmost
	}
	if c.Budget == 0 {
		c.Budget = time.Second
	}
	if c.Repetition != nil {
		r := *c.Repetition
		if r.Min == 0 {
			r.Min = 1
		}
		if r.Max == 0 {
			r.Max = max(256, r.Min)
		}
		c.Repetition = &r
	}
}
