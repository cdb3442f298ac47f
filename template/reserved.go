package template

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Mark is what Escape puts into a reserved string: U+00B7, the middle dot. It
// is visible, so that a reader of the prompt sees what was done, and it is one
// token or part of one in the vocabularies of today.
const Mark = '·'

const mark = string(Mark)

// Reserved are the strings that text from users and tools must not bring into
// a prompt. The zero value reserves nothing. It is immutable.
type Reserved struct {
	// Strings are reserved wherever they stand: control tokens and tags.
	Strings []string `yaml:"strings"`
	// Lines are reserved at the start of a line, and at the very start of a
	// text, because nobody knows what it will be appended to.
	Lines []string `yaml:"lines"`
}

// With gives r with more reserved strings, for example a model's control
// tokens. Empty strings and those that are there already are left out.
func (r Reserved) With(more ...string) Reserved {
	return Reserved{Strings: union(r.Strings, more), Lines: r.Lines}
}

// union appends what is new and not empty, without changing list.
func union(list, more []string) []string {
	list = slices.Clip(list)
	for _, s := range more {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// escapable reports whether a mark inside a reserved string breaks it.
func escapable(s string) bool {
	return utf8.RuneCountInString(s) > 1 && utf8.ValidString(s) && !strings.Contains(s, mark)
}

// A Match is a reserved string in a text; offsets are bytes.
type Match struct {
	Start, End int
}

// Find gives every reserved string in the text, in order of its start, the
// longest where several start at one place. Matches may overlap.
func (r Reserved) Find(text string) []Match {
	var found []Match
	x := r.index()
	for i := range len(text) {
		if n := x.match(text, i); n > 0 {
			found = append(found, Match{i, i + n})
		}
	}
	return found
}

// index has the reserved strings by their first byte.
type index struct {
	strings, lines [256][]string
}

func (r Reserved) index() *index {
	x := new(index)
	for _, s := range r.Strings {
		if s != "" {
			x.strings[s[0]] = append(x.strings[s[0]], s)
		}
	}
	for _, s := range r.Lines {
		if s != "" {
			x.lines[s[0]] = append(x.lines[s[0]], s)
		}
	}
	return x
}

// match gives the length of the longest reserved string at text[i:], or zero.
func (x *index) match(text string, i int) int {
	longest := 0
	for _, s := range x.strings[text[i]] {
		if len(s) > longest && strings.HasPrefix(text[i:], s) {
			longest = len(s)
		}
	}
	if i > 0 && text[i-1] != '\n' {
		return longest
	}
	for _, s := range x.lines[text[i]] {
		if len(s) > longest && strings.HasPrefix(text[i:], s) {
			longest = len(s)
		}
	}
	return longest
}

// Escape puts one Mark after the first character of each reserved string, so
// that none is left. A reserved string that has marks already gets one more,
// which makes Escape reversible: Unescape gives back every text exactly.
//
// A reserved string of one character, or with a Mark in it, cannot be escaped;
// Find still reports it. A format has none, but a vocabulary may.
func Escape(text string, reserved Reserved) string { return remark(text, reserved, +1) }

// Unescape undoes Escape. In a text that Escape did not make, for example what
// a model copied, it takes one Mark out of each reserved string that has some
// after its first character.
func Unescape(text string, reserved Reserved) string { return remark(text, reserved, -1) }

// remark looks at the text without its marks. There a reserved string stands
// in the same places before and after escaping, however many marks it has and
// wherever they are; that is why Escape and Unescape are inverse.
func remark(text string, reserved Reserved, change int) string {
	bare := strings.ReplaceAll(text, mark, "")
	x := reserved.index()
	after := map[int]bool{} // offsets in bare where a first character ends
	for i := range len(bare) {
		if x.match(bare, i) > 0 {
			_, size := utf8.DecodeRuneInString(bare[i:])
			after[i+size] = true
		}
	}
	if len(after) == 0 {
		return text
	}
	var b strings.Builder
	at := 0 // in bare
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], mark) {
			if change < 0 && after[at] {
				delete(after, at) // one mark is taken out
			} else {
				b.WriteString(mark)
			}
			i += len(mark)
			continue
		}
		b.WriteByte(text[i])
		i, at = i+1, at+1
		if change > 0 && after[at] {
			b.WriteString(mark)
		}
	}
	return b.String()
}
