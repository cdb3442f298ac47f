package stopping

import (
	"slices"
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

// A runeText is what regexp2 reads: the characters of a part of the text, and
// the bytes where they start.
type runeText struct {
	runes  []rune
	starts []int
	from   int // byte of the first character
	end    int // byte after the last character
}

// cover makes it reach from byte from, or from an earlier one, to byte to. What
// has been decoded before is kept if it can be.
func (d *runeText) cover(text string, from, to int) {
	if from < d.from || from > d.end {
		d.runes, d.starts = d.runes[:0], d.starts[:0]
		d.from, d.end = from, from
	}
	if missing := to - d.end; cap(d.runes)-len(d.runes) < missing {
		d.runes = slices.Grow(d.runes, max(missing, len(d.runes)))
		d.starts = slices.Grow(d.starts, max(missing, len(d.starts)))
	}
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
