package stopping

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2/syntax"
)

// This file and lint.go know the shape of regexp2's parsed tree. What they do
// not know makes an automaton accept more, never less.
//
// Two trees are read. Instructions come from the tree of the pattern tied to
// the end of the text, which is the one that regexp2 runs: without that end the
// parser cuts lazy loops off. What was written comes from the plain pattern
// parsed with RightToLeft: left to right the parser makes loops atomic on its
// own, and then atomic groups of the user cannot be told apart.

const (
	unbounded = math.MaxInt32
	// maxOps is how many instructions a pattern may have.
	maxOps = 1 << 14
	// maxNodes is how many nodes may be read for them. Counted repetitions of
	// what takes no character multiply nodes, but not instructions.
	maxNodes = 4 * maxOps
	// maxCount is up to where repetitions are counted. Overlapping matches of a
	// longer one would each need a state of their own.
	maxCount = 128
	// maxDepth is how deep references to groups are followed.
	maxDepth = 8
)

// A compiler turns a tree into instructions.
type compiler struct {
	*program
	groups   map[int][]*syntax.RegexNode // by number; nil when their content is not what stands in them
	most     int                         // larger counts are not kept
	atomic   bool                        // atomic groups were written by the user
	bare     bool                        // assertions are left out
	depth    int
	limit    int // instructions
	nodes    int // read
	overflow bool
	missing  []string // what the automaton does not know of the pattern
}

// miss notes what the automaton does not know.
func (c *compiler) miss(what string) {
	if !slices.Contains(c.missing, what) {
		c.missing = append(c.missing, what)
	}
}

// pattern appends the instructions of a pattern and says what they do not
// know. Without such things they accept exactly what the pattern matches.
func (p *program) pattern(root *syntax.RegexNode, atomic bool) (start int32, missing []string) {
	ops, looks := len(p.ops), len(p.looks)
	for _, most := range []int{maxCount, maxCount / 8, 2, 1, 0} {
		c := &compiler{program: p, groups: groupsOf(root), most: most, limit: ops + maxOps, atomic: atomic}
		start = c.compile(root, p.emit(op{code: opAccept}))
		if !c.overflow {
			return start, c.missing
		}
		p.ops, p.looks = p.ops[:ops], p.looks[:looks]
	}
	c := &compiler{program: p, limit: math.MaxInt}
	return c.anything(p.emit(op{code: opAccept})), []string{"its size"}
}

// compile appends the instructions of a node, which go to next, and gives the
// first of them.
func (c *compiler) compile(n *syntax.RegexNode, next int32) int32 {
	c.nodes++
	if len(c.ops) > c.limit || c.nodes > maxNodes {
		c.overflow = true
		return next
	}
	switch n.T {
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet:
		return c.emit(op{code: opChar, set: c.alphabet.add(setOf(n)), x: next})
	case syntax.NtMulti:
		for i := len(n.Str) - 1; i >= 0; i-- {
			next = c.emit(op{code: opChar, set: c.alphabet.add(runeSet{char: n.Str[i]}), x: next})
		}
		return next
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop, syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		c.checkAtomic(n)
		set := c.alphabet.add(setOf(n))
		return c.loop(n, next, func(next int32) int32 { return c.emit(op{code: opChar, set: set, x: next}) })
	case syntax.NtLoop, syntax.NtLazyloop:
		return c.loop(n, next, func(next int32) int32 { return c.compile(n.Children[0], next) })
	case syntax.NtConcatenate:
		parts := children(n)
		for i := len(parts) - 1; i >= 0; i-- {
			next = c.compile(parts[i], next)
		}
		return next
	case syntax.NtAlternate:
		return c.alternate(n.Children, next)
	case syntax.NtGroup:
		return c.compile(n.Children[0], next)
	case syntax.NtAtomic:
		c.checkAtomic(n)
		return c.compile(n.Children[0], next)
	case syntax.NtCapture:
		if n.N != -1 {
			c.miss("a balancing group")
		}
		return c.compile(n.Children[0], next)
	case syntax.NtEmpty, syntax.NtUpdateBumpalong, syntax.NtResetCapture:
		return next
	case syntax.NtNothing:
		return c.emit(op{code: opChar, set: c.alphabet.add(runeSet{set: syntax.NoneClass()}), x: next})
	}
	if a, ok := assertionOf(n.T); ok {
		return c.assert(a, next)
	}
	return c.irregular(n, next)
}

func setOf(n *syntax.RegexNode) runeSet {
	if n.Set != nil {
		return runeSet{set: n.Set}
	}
	return runeSet{char: n.Ch, not: n.IsNotoneFamily()}
}

func assertionOf(t syntax.NodeType) (assertion, bool) {
	switch t {
	case syntax.NtBeginning:
		return atStart, true
	case syntax.NtBol:
		return atLineStart, true
	case syntax.NtEnd:
		return atEnd, true
	case syntax.NtEndZ:
		return atFinalNewline, true
	case syntax.NtEol:
		return atLineEnd, true
	case syntax.NtBoundary:
		return atBoundary, true
	case syntax.NtNonboundary:
		return atNonBoundary, true
	}
	return 0, false
}

func (c *compiler) assert(a assertion, next int32) int32 {
	if c.bare {
		return next
	}
	c.context |= a.asks()
	c.alphabet.words = c.alphabet.words || a == atBoundary || a == atNonBoundary
	c.alphabet.lines = c.alphabet.lines || a == atLineStart || a == atLineEnd || a == atFinalNewline
	return c.emit(op{code: opAssert, assert: a, x: next})
}

// checkAtomic notes an atomic group. One that the parser made itself changes
// nothing; where the user wrote one, all count as his.
func (c *compiler) checkAtomic(n *syntax.RegexNode) {
	if c.atomic && (n.T == syntax.NtAtomic || n.IsAtomicloopFamily()) {
		c.miss("an atomic group")
	}
}

func (c *compiler) loop(n *syntax.RegexNode, next int32, body func(int32) int32) int32 {
	least, most := n.M, n.N
	if most < unbounded && most > c.most {
		c.miss(c.largeCount())
		least, most = min(least, c.most), unbounded
	} else if least > c.most {
		c.miss(c.largeCount())
		least = c.most
	}
	start := next
	if most == unbounded {
		start = c.emit(op{code: opSplit, y: next})
		again := body(start)
		c.ops[start].x = again
	} else {
		for i := least; i < most && !c.overflow; i++ {
			start = c.emit(op{code: opSplit, x: body(start), y: next})
		}
	}
	for i := 0; i < least && !c.overflow; i++ {
		start = body(start)
	}
	return start
}

func (c *compiler) largeCount() string { return fmt.Sprintf("a count above %d", c.most) }

func (c *compiler) alternate(branches []*syntax.RegexNode, next int32) int32 {
	start := c.compile(branches[len(branches)-1], next)
	for i := len(branches) - 2; i >= 0; i-- {
		start = c.emit(op{code: opSplit, x: c.compile(branches[i], next), y: start})
	}
	return start
}

// irregular appends something that accepts at least what the node matches.
func (c *compiler) irregular(n *syntax.RegexNode, next int32) int32 {
	switch n.T {
	case syntax.NtPosLook, syntax.NtNegLook:
		return c.look(n, next)
	case syntax.NtRef:
		c.miss("a backreference")
		return c.reference(n, next)
	case syntax.NtBackRefCond:
		c.miss("a conditional")
		if len(n.Children) == 1 {
			return c.emit(op{code: opSplit, x: c.compile(n.Children[0], next), y: next})
		}
		return c.alternate(n.Children, next)
	case syntax.NtExprCond:
		c.miss("a conditional")
		if len(n.Children) == 2 {
			return c.emit(op{code: opSplit, x: c.compile(n.Children[1], next), y: next})
		}
		return c.alternate(n.Children[1:], next)
	case syntax.NtGrapheme:
		c.miss(`\X`)
		return c.something(next)
	case syntax.NtECMABoundary, syntax.NtNonECMABoundary:
		c.miss("an unknown boundary")
		return next
	}
	c.miss("an unknown construct")
	return c.anything(next)
}

// something accepts one character or more.
func (c *compiler) something(next int32) int32 {
	set := c.alphabet.add(runeSet{set: syntax.AnyClass()})
	again := c.emit(op{code: opSplit, y: next})
	start := c.emit(op{code: opChar, set: set, x: again})
	c.ops[again].x = start
	return start
}

// anything accepts every text.
func (c *compiler) anything(next int32) int32 {
	return c.emit(op{code: opSplit, x: c.something(next), y: next})
}

// reference accepts what the group can have taken, wherever it stood.
func (c *compiler) reference(n *syntax.RegexNode, next int32) int32 {
	bodies := c.groups[n.M]
	if len(bodies) == 0 || n.Options&syntax.IgnoreCase != 0 || c.depth == maxDepth {
		return c.anything(next)
	}
	bare := c.bare
	c.bare = true
	c.depth++
	start := c.alternate(bodies, next)
	c.depth--
	c.bare = bare
	return start
}

// look makes a lookbehind part of the automaton if it is regular itself. All
// other assertions about the text around are taken to hold.
func (c *compiler) look(n *syntax.RegexNode, next int32) int32 {
	if c.bare {
		return next
	}
	if n.Options&syntax.RightToLeft == 0 {
		c.miss("a lookahead")
		return next
	}
	sub := *c
	sub.missing = nil
	ops, looks := len(c.ops), len(c.looks)
	start := sub.compile(n.Children[0], c.emit(op{code: opAccept}))
	c.overflow, c.nodes = sub.overflow, sub.nodes
	if len(sub.missing) > 0 || endsText(n.Children[0]) {
		c.ops, c.looks = c.ops[:ops], c.looks[:looks]
		c.miss("a lookbehind that is not regular")
		return next
	}
	c.looks = append(c.looks, entry{start: start, scope: -1})
	return c.emit(op{code: opLook, set: int32(len(c.looks) - 1), negate: n.T == syntax.NtNegLook, x: next})
}

// endsText reports whether a part of n asks for the end of the text: then a
// lookbehind depends on what comes after it.
func endsText(n *syntax.RegexNode) bool {
	return n.T == syntax.NtEnd || n.T == syntax.NtEndZ || slices.ContainsFunc(n.Children, endsText)
}

// groupsOf collects what stands in the groups by number. A balancing group can
// bring back a text that stood elsewhere: then nothing is known.
func groupsOf(root *syntax.RegexNode) map[int][]*syntax.RegexNode {
	groups := map[int][]*syntax.RegexNode{}
	var visit func(n *syntax.RegexNode) bool
	visit = func(n *syntax.RegexNode) bool {
		if n.T == syntax.NtCapture {
			if n.N != -1 {
				return false
			}
			groups[n.M] = append(groups[n.M], n.Children[0])
		}
		for _, child := range n.Children {
			if !visit(child) {
				return false
			}
		}
		return true
	}
	if !visit(root) {
		return nil
	}
	return groups
}

func hasAtomic(n *syntax.RegexNode) bool {
	return n.T == syntax.NtAtomic || n.IsAtomicloopFamily() || slices.ContainsFunc(n.Children, hasAtomic)
}

// mayBeAtomic reports whether a pattern can have atomic groups of the user's. In
// a lookbehind the parser makes some itself, also from right to left; they
// change nothing.
func mayBeAtomic(regex string) bool {
	regex = strings.Join(strings.Fields(regex), "") // what (?x) leaves out
	return slices.ContainsFunc([]string{"(?>", "++", "*+", "?+", "}+", `\R`, "#"}, func(s string) bool { return strings.Contains(regex, s) })
}

// children are the children of a node in the order of the text.
func children(n *syntax.RegexNode) []*syntax.RegexNode {
	if n.T != syntax.NtConcatenate || n.Options&syntax.RightToLeft == 0 {
		return n.Children
	}
	out := slices.Clone(n.Children)
	slices.Reverse(out)
	return out
}

func isCharLoop(n *syntax.RegexNode) bool {
	return n.IsSetloopFamily() || n.IsOneloopFamily() || n.IsNotoneloopFamily()
}

// isWrapper reports whether a node matches exactly what its child matches.
func isWrapper(n *syntax.RegexNode) bool {
	return n.T == syntax.NtCapture || n.T == syntax.NtGroup || n.T == syntax.NtAtomic
}

func isZeroWidth(n *syntax.RegexNode) bool {
	if _, ok := assertionOf(n.T); ok {
		return true
	}
	switch n.T {
	case syntax.NtEmpty, syntax.NtPosLook, syntax.NtNegLook, syntax.NtUpdateBumpalong, syntax.NtResetCapture, syntax.NtStart:
		return true
	}
	return false
}

// longest is the most characters that a match can have, or unbounded.
func longest(n *syntax.RegexNode) int {
	switch {
	case isZeroWidth(n), n.T == syntax.NtNothing:
		return 0
	case n.T == syntax.NtOne, n.T == syntax.NtNotone, n.T == syntax.NtSet:
		return 1
	case n.T == syntax.NtMulti:
		return len(n.Str)
	case isCharLoop(n):
		return n.N
	case n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
		inner := longest(n.Children[0])
		if inner > 0 && n.N > unbounded/inner {
			return unbounded
		}
		return n.N * inner
	case isWrapper(n):
		return longest(n.Children[0])
	case n.T == syntax.NtConcatenate:
		sum := 0
		for _, c := range n.Children {
			sum = min(unbounded, sum+longest(c))
		}
		return sum
	case n.T == syntax.NtAlternate, n.T == syntax.NtBackRefCond, n.T == syntax.NtExprCond:
		most := 0
		for _, c := range n.Children {
			most = max(most, longest(c))
		}
		return most
	}
	return unbounded
}

// reversible reports whether a match ending at a place exists exactly when one
// is found by matching backwards from there. Nodes whose outcome depends on
// what was matched before them are not.
func reversible(n *syntax.RegexNode) bool {
	if _, ok := assertionOf(n.T); ok {
		return true
	}
	switch n.T {
	case syntax.NtCapture:
		if n.N != -1 { // a balancing group
			return false
		}
	case syntax.NtGroup, syntax.NtConcatenate, syntax.NtAlternate, syntax.NtLoop, syntax.NtLazyloop,
		syntax.NtPosLook, syntax.NtNegLook, syntax.NtMulti, syntax.NtNothing, syntax.NtEmpty,
		syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop,
		syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOne, syntax.NtNotone, syntax.NtSet:
	default:
		return false
	}
	return !slices.ContainsFunc(n.Children, func(c *syntax.RegexNode) bool { return !reversible(c) })
}

// looksFar reports whether a lookahead reads text of any length. From the end
// backwards it would read the rest of the text at every character.
func looksFar(n *syntax.RegexNode) bool {
	ahead := (n.T == syntax.NtPosLook || n.T == syntax.NtNegLook) && n.Options&syntax.RightToLeft == 0
	return ahead && longest(n.Children[0]) == unbounded || slices.ContainsFunc(n.Children, looksFar)
}

// contains reports whether a node of this type is in the tree.
func contains(n *syntax.RegexNode, t syntax.NodeType) bool {
	return n.T == t || slices.ContainsFunc(n.Children, func(c *syntax.RegexNode) bool { return contains(c, t) })
}
