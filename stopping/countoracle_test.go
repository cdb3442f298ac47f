package stopping

import (
	"strings"
	"unicode"
)

// A countOracle is the definition of the criteria that are no patterns, read
// from the start of the text at every end.
type countOracle struct{ c Criterion }

func (o *countOracle) criterion() *Criterion { return &o.c }
func (o *countOracle) gaveUp() bool          { return false }

func (o *countOracle) at(l *written, end, from int) *Decision {
	if l.offsets[end] < o.c.MinBytes || from > end {
		return nil
	}
	allows := func(i int) bool {
		return i >= from && (o.c.Scope == Scope{} || inScope(o.c.Scope, l.text[:l.offsets[i]]))
	}
	start, found := -1, false
	switch {
	case o.c.Repetition != nil:
		start, found = o.repetition(l, end, allows)
	case o.c.JSON:
		start, found = value(l.runes[:end], allows)
		start = l.offsets[max(start, 0)]
	case o.c.Sentences > 0:
		start, found = o.sentence(l.runes[:end], allows)
		start = l.offsets[max(start, 0)]
	default:
		start, found = l.offsets[end], o.bytes(l, end, allows)
	}
	if !found {
		return nil
	}
	d := &Decision{Reason: Matched, Criterion: &o.c, MatchStart: start, MatchEnd: l.offsets[end], KeepEnd: l.offsets[end]}
	if o.c.Strip {
		d.KeepEnd = start
	}
	return d
}

// repetition finds the shortest part that stands often enough at the end.
func (o *countOracle) repetition(l *written, end int, allows func(int) bool) (int, bool) {
	r := o.c.Repetition
	text := l.text[:l.offsets[end]]
	most := r.Max
	if most == 0 {
		most = max(256, r.Min)
	}
	for n := max(1, r.Min); n <= most && n*r.Count <= len(text); n++ {
		start := len(text) - n*r.Count
		if text[start:] != strings.Repeat(text[start:start+n], r.Count) {
			continue
		}
		for i, offset := range l.offsets {
			if offset == start && allows(i) {
				return start, true
			}
		}
	}
	return 0, false
}

// value finds the balanced object or array that ends with the text.
func value(runes []rune, allows func(int) bool) (int, bool) {
	for i := 0; i < len(runes); i++ {
		if runes[i] != '{' && runes[i] != '[' || !allows(i) {
			continue
		}
		size, balanced := balance(runes[i:])
		if balanced && i+size == len(runes) {
			return i, true
		}
		i += size - 1
	}
	return 0, false
}

// balance is how many characters a value takes, or those up to the bracket that
// does not pair, or all.
func balance(runes []rune) (size int, balanced bool) {
	open := ""
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '"':
			for i++; i < len(runes) && runes[i] != '"'; i++ {
				if runes[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open += string(r)
		case '}', ']':
			pair := open[len(open)-1:] + string(r)
			if pair != "{}" && pair != "[]" {
				return i + 1, false
			}
			if open = open[:len(open)-1]; open == "" {
				return i + 1, true
			}
		}
	}
	return len(runes), false
}

// sentence says whether a sentence ends with the text, and enough with it. A
// run of marks ends one sentence: at its first full-width mark, otherwise at
// white space behind it.
func (o *countOracle) sentence(runes []rune, allows func(int) bool) (start int, found bool) {
	const half, full = ".!?", "。！？"
	have := 0
	for i := 0; i < len(runes); i++ {
		if !strings.ContainsRune(half+full, runes[i]) {
			continue
		}
		at, end := -1, -1
		for ; i < len(runes) && strings.ContainsRune(half+full, runes[i]); i++ {
			if end < 0 && strings.ContainsRune(full, runes[i]) {
				at, end = i, i+1
			}
		}
		if end < 0 && i < len(runes) && unicode.IsSpace(runes[i]) {
			at, end = i-1, i+1
		}
		if end < 0 || !allows(at) {
			continue
		}
		have++
		start, found = at, end == len(runes) && have >= o.c.Sentences
	}
	return start, found
}

func (o *countOracle) bytes(l *written, end int, allows func(int) bool) bool {
	have := 0
	for i := range end {
		if allows(i) {
			have += l.offsets[i+1] - l.offsets[i]
		}
	}
	return have >= o.c.Bytes
}
