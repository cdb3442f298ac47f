package stopping

import (
	"sort"
	"unicode/utf8"
)

// complete is the byte after the last complete character. A sequence that is
// cut off at the end may still become a character. A byte that is not valid
// UTF-8 is a character of its own.
func complete(text string) int {
	n := len(text)
	for i := n - 1; i >= 0 && n-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRuneInString(text[i:]) {
				return n
			}
			return i
		}
	}
	return n
}

// isBoundary reports whether a character starts at byte at, or the text ends.
func isBoundary(text string, at int) bool {
	if at == len(text) || utf8.RuneStart(text[at]) {
		return true
	}
	for i := at - 1; i >= 0 && at-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			_, size := utf8.DecodeRuneInString(text[i:])
			return i+size <= at
		}
	}
	return true
}

// before is the start of the character that ends at byte at, or 0.
func before(text string, at int) int {
	for i := at - 1; i > 0; i-- {
		if isBoundary(text, i) {
			return i
		}
	}
	return 0
}

// A runeText is what regexp2 reads: characters, and the bytes where they start.
type runeText struct {
	runes  []rune
	starts []int
	end    int // byte after the last character
}

// extend decodes the text up to byte to.
func (d *runeText) extend(text string, to int) {
	for d.end < to {
		r, size := utf8.DecodeRuneInString(text[d.end:])
		d.runes = append(d.runes, r)
		d.starts = append(d.starts, d.end)
		d.end += size
	}
}

// offset is the byte where the character with this index starts; the index
// after the last character gives the end.
func (d *runeText) offset(index int) int {
	if index == len(d.runes) {
		return d.end
	}
	return d.starts[index]
}

// index is the character that starts at this byte.
func (d *runeText) index(offset int) int { return sort.SearchInts(d.starts, offset) }
