package stopping

import (
	"math"
	"slices"
	"unicode"

	"github.com/dlclark/regexp2/v2/syntax"
)

// This file and lint.go know the shape of regexp2's parsed tree. All answers are
// safe bounds; an unknown node makes them wider, never wrong.
//
// Two trees are read. Bounds come from the tree of the pattern tied to the end
// of the text, which is the one that is run: without that end the parser cuts
// lazy loops off. What was written comes from the plain pattern parsed with
// RightToLeft: left to right the parser makes loops atomic on its own, and then
// atomic groups of the user cannot be told apart. That tree gives no bounds,
// because inside an atomic group the parser cuts lazy loops off at the wrong side.

const (
	unbounded = math.MaxInt32
	// edgeLimit is how many characters at the edge of a pattern are looked at.
	edgeLimit = 32
)

// A runeSet is a set of characters: those that one of the nodes matches. A nil
// node matches every character.
type runeSet []*syntax.RegexNode

func (s runeSet) has(r rune) bool {
	for _, n := range s {
		switch {
		case n == nil:
			return true
		case n.IsSetFamily():
			if n.Set.Contains(r) {
				return true
			}
		case n.IsNotoneFamily() != sameRune(n, r):
			return true
		}
	}
	return false
}

// sameRune reports whether r is the node's character, in any case if the node
// ignores case.
func sameRune(n *syntax.RegexNode, r rune) bool {
	if n.Ch == r {
		return true
	}
	if n.Options&syntax.IgnoreCase == 0 {
		return false
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f == n.Ch {
			return true
		}
	}
	return false
}

// literalSets are the characters of a fixed string.
func literalSets(s string) []runeSet {
	var sets []runeSet
	for _, r := range s {
		sets = append(sets, runeSet{{T: syntax.NtOne, Ch: r}})
	}
	return sets
}

// children are the children of a node in the order of the text.
func children(n *syntax.RegexNode) []*syntax.RegexNode {
	if n.T != syntax.NtConcatenate || n.Options&syntax.RightToLeft == 0 {
		return n.Children
	}
	out := make([]*syntax.RegexNode, len(n.Children))
	for i, c := range n.Children {
		out[len(out)-1-i] = c
	}
	return out
}

func isCharLoop(n *syntax.RegexNode) bool {
	return n.IsSetloopFamily() || n.IsOneloopFamily() || n.IsNotoneloopFamily()
}

func isChar(n *syntax.RegexNode) bool {
	return n.T == syntax.NtOne || n.T == syntax.NtNotone || n.T == syntax.NtSet
}

// isWrapper reports whether a node matches exactly what its child matches.
func isWrapper(n *syntax.RegexNode) bool {
	return n.T == syntax.NtCapture || n.T == syntax.NtGroup || n.T == syntax.NtAtomic
}

func isZeroWidth(n *syntax.RegexNode) bool {
	switch n.T {
	case syntax.NtEmpty, syntax.NtBeginning, syntax.NtBol, syntax.NtEol, syntax.NtEndZ, syntax.NtEnd,
		syntax.NtBoundary, syntax.NtNonboundary, syntax.NtPosLook, syntax.NtNegLook,
		syntax.NtUpdateBumpalong, syntax.NtResetCapture, syntax.NtStart:
		return true
	}
	return false
}

// longest is the most characters that a match can have, or unbounded.
func longest(n *syntax.RegexNode) int {
	switch {
	case isZeroWidth(n), n.T == syntax.NtNothing:
		return 0
	case isChar(n):
		return 1
	case n.T == syntax.NtMulti:
		return len(n.Str)
	case isCharLoop(n):
		return n.N
	case n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
		inner := longest(n.Children[0])
		if inner == 0 {
			return 0
		}
		if n.N > unbounded/inner {
			return unbounded
		}
		return n.N * inner
	case isWrapper(n):
		return longest(n.Children[0])
	case n.T == syntax.NtConcatenate:
		sum := 0
		for _, c := range n.Children {
			sum += longest(c)
			if sum >= unbounded {
				return unbounded
			}
		}
		return sum
	case n.T == syntax.NtAlternate:
		most := 0
		for _, c := range n.Children {
			most = max(most, longest(c))
		}
		return most
	}
	return unbounded
}

// edge is what the outermost characters of every match are, counted from the
// left or from the right edge. whole says that a match has exactly as many.
func edge(n *syntax.RegexNode, right bool) (sets []runeSet, whole bool) {
	switch {
	case isZeroWidth(n):
		return nil, true
	case isChar(n):
		return []runeSet{{n}}, true
	case n.T == syntax.NtMulti:
		return multiEdge(n, right)
	case isCharLoop(n):
		return repeatEdge([]runeSet{{n}}, true, n)
	case n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
		sets, whole = edge(n.Children[0], right)
		return repeatEdge(sets, whole, n)
	case isWrapper(n):
		return edge(n.Children[0], right)
	case n.T == syntax.NtConcatenate:
		return concatEdge(children(n), right)
	case n.T == syntax.NtAlternate:
		return alternateEdge(n.Children, right)
	}
	return nil, false
}

func multiEdge(n *syntax.RegexNode, right bool) (sets []runeSet, whole bool) {
	for i := range n.Str {
		if i == edgeLimit {
			return sets, false
		}
		r := n.Str[i]
		if right {
			r = n.Str[len(n.Str)-1-i]
		}
		sets = append(sets, runeSet{{T: syntax.NtOne, Ch: r, Options: n.Options}})
	}
	return sets, true
}

func repeatEdge(once []runeSet, whole bool, n *syntax.RegexNode) ([]runeSet, bool) {
	var sets []runeSet
	for i := 0; i < n.M; i++ {
		sets = append(sets, once...)
		if !whole || len(sets) > edgeLimit {
			return sets, false
		}
		if len(once) == 0 {
			break
		}
	}
	return sets, whole && (n.M == n.N || len(once) == 0)
}

func concatEdge(parts []*syntax.RegexNode, right bool) (sets []runeSet, whole bool) {
	for i := range parts {
		c := parts[i]
		if right {
			c = parts[len(parts)-1-i]
		}
		more, all := edge(c, right)
		sets = append(sets, more...)
		if !all || len(sets) > edgeLimit {
			return sets, false
		}
	}
	return sets, true
}

func alternateEdge(branches []*syntax.RegexNode, right bool) ([]runeSet, bool) {
	var union []runeSet
	whole := true
	for i, c := range branches {
		sets, all := edge(c, right)
		whole = whole && all
		if i == 0 {
			union = append(union, sets...)
			continue
		}
		whole = whole && len(sets) == len(union)
		union = union[:min(len(union), len(sets))]
		for j := range union {
			union[j] = append(append(runeSet{}, union[j]...), sets[j]...)
		}
	}
	return union, whole
}

// outermost is what the first or last character of a match can be; empty says
// that a match may have none.
func outermost(n *syntax.RegexNode, right bool) (set runeSet, empty bool) {
	switch {
	case isZeroWidth(n):
		return nil, true
	case n.T == syntax.NtNothing:
		return nil, false
	case isChar(n), n.T == syntax.NtMulti:
		sets, _ := edge(n, right)
		return sets[0], false
	case isCharLoop(n):
		return runeSet{n}, n.M == 0
	case n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
		set, empty = outermost(n.Children[0], right)
		return set, empty || n.M == 0
	case isWrapper(n):
		return outermost(n.Children[0], right)
	case n.T == syntax.NtConcatenate:
		parts := children(n)
		for i := range parts {
			c := parts[i]
			if right {
				c = parts[len(parts)-1-i]
			}
			more, skip := outermost(c, right)
			set = append(append(runeSet{}, set...), more...)
			if !skip {
				return set, false
			}
		}
		return set, true
	case n.T == syntax.NtAlternate:
		for _, c := range n.Children {
			more, skip := outermost(c, right)
			set = append(append(runeSet{}, set...), more...)
			empty = empty || skip
		}
		return set, empty
	}
	return runeSet{nil}, true
}

// gate is what the characters at an edge of every match are; it may be empty.
func gate(n *syntax.RegexNode, right bool) []runeSet {
	if sets, _ := edge(n, right); len(sets) > 0 {
		return sets
	}
	if set, empty := outermost(n, right); !empty {
		return []runeSet{set}
	}
	return nil
}

// withoutTail is the pattern without the loops at its end that may be empty,
// such as "\s*$". Where a match ends with characters of such a loop, a shorter
// match with the same start ended before them and has fired already. That holds
// unless a part of the pattern looks at the text behind it.
func withoutTail(n *syntax.RegexNode) *syntax.RegexNode {
	body := n
	for isWrapper(body) {
		body = body.Children[0]
	}
	if body.T != syntax.NtConcatenate {
		return n
	}
	parts := children(body)
	end := len(parts)
	for end > 0 && (isEnd(parts[end-1]) || isCharLoop(parts[end-1]) && parts[end-1].M == 0) {
		end--
	}
	if slices.ContainsFunc(parts[:end], looksAhead) {
		return n
	}
	core := *body
	core.Children, core.Options = parts[:end], body.Options&^syntax.RightToLeft
	return &core
}

func isEnd(n *syntax.RegexNode) bool {
	return n.T == syntax.NtEnd || n.T == syntax.NtEndZ || n.T == syntax.NtEol
}

// looksAhead reports whether an assertion in n can depend on the text behind it.
func looksAhead(n *syntax.RegexNode) bool {
	switch n.T {
	case syntax.NtBeginning, syntax.NtBol, syntax.NtEmpty, syntax.NtUpdateBumpalong, syntax.NtResetCapture:
		return false
	}
	return isZeroWidth(n) || slices.ContainsFunc(n.Children, looksAhead)
}

// reversible reports whether a match ending at a place exists exactly when one
// is found by matching backwards from there. Nodes whose outcome depends on
// what was matched before them are not.
func reversible(n *syntax.RegexNode) bool {
	switch n.T {
	case syntax.NtCapture:
		if n.N != -1 { // a balancing group
			return false
		}
	case syntax.NtGroup, syntax.NtConcatenate, syntax.NtAlternate, syntax.NtLoop, syntax.NtLazyloop,
		syntax.NtPosLook, syntax.NtNegLook, syntax.NtMulti, syntax.NtNothing, syntax.NtEmpty,
		syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop,
		syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOne, syntax.NtNotone, syntax.NtSet,
		syntax.NtBol, syntax.NtEol, syntax.NtBoundary, syntax.NtNonboundary,
		syntax.NtBeginning, syntax.NtEndZ, syntax.NtEnd:
	default:
		return false
	}
	for _, c := range n.Children {
		if !reversible(c) {
			return false
		}
	}
	return true
}

// contains reports whether a node of this type is in the tree.
func contains(n *syntax.RegexNode, t syntax.NodeType) bool {
	if n.T == t {
		return true
	}
	for _, c := range n.Children {
		if contains(c, t) {
			return true
		}
	}
	return false
}
