package stopping

import "slices"

// A program is what an automaton runs: instructions for the patterns and
// literals of several criteria. It is immutable.
type program struct {
	alphabet *alphabet
	ops      []op
	looks    []entry // lookbehinds, inner ones before outer ones
	entries  []entry // criteria
	scopes   []*scope
	context  context // what the assertions ask about the character before
}

// An entry is where a pattern begins.
type entry struct {
	start int32
	scope int // place in the program's scopes, -1 for anywhere
	// tracked keeps apart the matches by their start. youngest says that of two
	// starts the later one counts, otherwise the earlier one does.
	tracked, youngest bool
	holds             bool // text from the oldest start on is held back
	reach             int  // bytes that a match has at most, 0 when not known
}

type opcode uint8

const (
	opChar   opcode = iota // takes a character of set, goes to x
	opSplit                // goes to x and y
	opAssert               // goes to x if assertion holds
	opLook                 // goes to x if the lookbehind with this number holds
	opAccept               // the pattern has matched
)

type op struct {
	code   opcode
	assert assertion
	negate bool  // of opLook
	set    int32 // number of the rune set or of the lookbehind
	x, y   int32
}

type assertion uint8

const (
	atStart assertion = iota
	atLineStart
	atEnd
	atFinalNewline // at the end, or before a newline that ends the text
	atLineEnd
	atBoundary
	atNonBoundary
)

// A context is what is known about the character before.
type context uint8

const (
	first     context = 1 << iota // there is none
	afterLine                     // it is "\n"
	afterWord                     // it is a word character
)

// asks is the part of the context that an assertion depends on.
func (a assertion) asks() context {
	switch a {
	case atStart:
		return first
	case atLineStart:
		return first | afterLine
	case atBoundary, atNonBoundary:
		return afterWord
	}
	return 0
}

// A symbol is what comes next: a character of a class, or the end of the text.
type symbol struct {
	*class // nil at the end
}

func (s symbol) end() bool     { return s.class == nil }
func (s symbol) isWord() bool  { return s.class != nil && s.word }
func (s symbol) isBreak() bool { return s.class != nil && s.newline }

// holds reports whether an assertion is true between a context and a symbol.
// final says that the next character has to be the last one.
func (a assertion) holds(before context, next symbol) (ok, final bool) {
	switch a {
	case atStart:
		return before&first != 0, false
	case atLineStart:
		return before&(first|afterLine) != 0, false
	case atEnd:
		return next.end(), false
	case atFinalNewline:
		return next.end() || next.isBreak(), !next.end()
	case atLineEnd:
		return next.end() || next.isBreak(), false
	case atBoundary:
		return (before&afterWord != 0) != next.isWord(), false
	default:
		return (before&afterWord != 0) == next.isWord(), false
	}
}

// An item is an instruction that is reached before the next character. Its last
// bit says that the text has to end here.
func itemOf(pc int32, final bool) int32 { return pc<<1 | int32(bit(final)) }

// emit appends an instruction and gives its place.
func (p *program) emit(o op) int32 {
	p.ops = append(p.ops, o)
	return int32(len(p.ops) - 1)
}

// literal appends the instructions for a fixed text.
func (p *program) literal(text string) int32 {
	next := p.emit(op{code: opAccept})
	runes := []rune(text)
	for i := len(runes) - 1; i >= 0; i-- {
		next = p.emit(op{code: opChar, set: p.alphabet.add(runeSet{char: runes[i], literal: true}), x: next})
	}
	return next
}

// scope adds a scope and gives its place.
func (p *program) scope(s Scope) int {
	if s == (Scope{}) {
		return -1
	}
	for i, old := range p.scopes {
		if old.Scope == s {
			return i
		}
	}
	p.scopes = append(p.scopes, newScope(s, p.alphabet))
	return len(p.scopes) - 1
}

// begins says which characters a match from an instruction on can begin with,
// if it has any.
func (p *program) begins(start int32) func(r rune) bool {
	var sets []int32
	seen := map[int32]bool{}
	var visit func(pc int32)
	visit = func(pc int32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch o := &p.ops[pc]; o.code {
		case opChar:
			sets = append(sets, o.set)
		case opSplit:
			visit(o.x)
			visit(o.y)
		case opAccept:
		default:
			visit(o.x)
		}
	}
	visit(start)
	return func(r rune) bool {
		return slices.ContainsFunc(sets, func(n int32) bool { return p.alphabet.sets[n].has(r) })
	}
}
