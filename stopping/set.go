package stopping

import "time"

// A Set is a list of compiled criteria. It is immutable and may be shared; the
// zero Set never stops a text.
type Set struct {
	criteria []compiled
	warnings []Warning
}

type compiled struct {
	Criterion
	pattern *pattern // nil unless Regex is set
}

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
		complete(&c)
		k := compiled{Criterion: c}
		if c.Regex != "" {
			p, tree, err := newPattern(&c)
			if err != nil {
				return nil, err
			}
			if err := p.checkStripGroup(&c); err != nil {
				return nil, err
			}
			k.pattern = p
			s.warnings = append(s.warnings, lint(&c, p, tree)...)
		}
		s.criteria = append(s.criteria, k)
	}
	return s, nil
}

// Warnings lists what may surprise, in the order of declaration.
func (s *Set) Warnings() []Warning { return append([]Warning(nil), s.warnings...) }

// Matcher begins a new text.
func (s *Set) Matcher() *Matcher {
	m := &Matcher{}
	for i := range s.criteria {
		c := &s.criteria[i]
		m.watches = append(m.watches, &watch{
			criterion: &c.Criterion,
			window:    newWindow(c.Scope),
			detector:  c.detector(),
		})
	}
	return m
}

// complete fills in zero values and unties the copy from the caller's.
func complete(c *Criterion) {
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

func (c *compiled) detector() detector {
	strips := c.Strip || c.StripGroup != ""
	switch {
	case c.pattern != nil:
		x := &regex{pattern: c.pattern}
		if strips {
			x.live = &liveStarts{prefix: c.pattern.prefix, longest: c.pattern.longest}
		}
		return x
	case c.Literal != "":
		l := &literal{want: c.Literal}
		if strips {
			sets := literalSets(c.Literal)
			l.live = &liveStarts{prefix: sets, longest: len(sets)}
		}
		return l
	case c.Repetition != nil:
		return newRepetition(*c.Repetition)
	case c.JSON:
		return &jsonValue{}
	case c.Sentences > 0:
		return &sentenceCount{want: c.Sentences}
	case c.Tokens > 0:
		return &tokenCount{want: c.Tokens}
	default:
		return &byteCount{want: c.Bytes}
	}
}
