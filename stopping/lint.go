package stopping

import "github.com/dlclark/regexp2/v2/syntax"

// lint looks at the right edge of a pattern for what cannot take effect there,
// because the text always ends where it is tested, and at what it must hold back.
func lint(c *compiled) []Warning {
	l := &linter{name: c.Name}
	l.tail(c.pattern.written)
	if c.strips() && c.pattern.longest == unbounded && c.begins('e') && c.begins(' ') && c.begins('\n') {
		l.warn("a match may start anywhere, so all text is held back until the stop", "begin the pattern with a fixed character")
	}
	return l.warnings
}

type linter struct {
	name     string
	warnings []Warning
}

func (l *linter) warn(problem, hint string) {
	w := Warning{Criterion: l.name, Problem: problem, Hint: hint}
	for _, old := range l.warnings {
		if old == w {
			return
		}
	}
	l.warnings = append(l.warnings, w)
}

// tail reports whether the node may be empty at the end of a match, so that
// what stands before it is at the end too.
func (l *linter) tail(n *syntax.RegexNode) bool {
	switch {
	case n.T == syntax.NtEnd, n.T == syntax.NtEndZ, n.T == syntax.NtEol:
		l.warn(`an end anchor ("$", "\Z", "\z") at the end has no effect: every byte is tested as the end of the text`, "leave it out")
		return true
	case n.T == syntax.NtBoundary:
		l.warn(`"\b" at the end is true after every word character, also inside a longer word`, `ask for the next character instead, for example "\W"`)
		return true
	case (n.T == syntax.NtPosLook || n.T == syntax.NtNegLook) && n.Options&syntax.RightToLeft == 0:
		l.warn("a lookahead at the end sees no text after the match", "make the following characters part of the match and strip them as a group")
		return true
	case isZeroWidth(n):
		return true
	case isCharLoop(n), n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
		return l.loop(n)
	case isWrapper(n):
		return l.tail(n.Children[0])
	case n.T == syntax.NtConcatenate:
		parts := children(n)
		for i := len(parts) - 1; i >= 0; i-- {
			if !l.tail(parts[i]) {
				return false
			}
		}
		return true
	case n.T == syntax.NtAlternate:
		empty := false
		for _, c := range n.Children {
			if l.tail(c) {
				empty = true
			}
		}
		return empty
	}
	return false
}

func (l *linter) loop(n *syntax.RegexNode) bool {
	switch {
	case n.M == n.N:
		return false
	case n.M == 0:
		l.warn("an optional part at the end is redundant: the stop comes before it", "leave it out")
		return true
	}
	l.warn("an open repetition at the end stops as early as it can, for example at the first digit of a number",
		`add a terminator, for example "\d+\D"`)
	return false
}
