package stopping

import (
	"sort"
	"unicode/utf8"
)

// A text is what a stream has brought so far: the bytes as received, and the
// characters that are complete. A byte that is not valid UTF-8 is one
// character, U+FFFD; offsets are always those of the bytes.
type text struct {
	bytes  []byte
	runes  []rune
	starts []int // starts[i] is the byte where runes[i] starts
	end    int   // byte after the last complete character
}

// next completes one more character, if the bytes received allow it. A
// sequence that is cut off at the end may still become a character.
func (t *text) next() bool {
	rest := t.bytes[t.end:]
	if len(rest) == 0 || !utf8.FullRune(rest) {
		return false
	}
	r, size := utf8.DecodeRune(rest)
	t.runes = append(t.runes, r)
	t.starts = append(t.starts, t.end)
	t.end += size
	return true
}

// offset is the byte where the character with this index starts; the index
// after the last character gives the end.
func (t *text) offset(index int) int {
	if index == len(t.runes) {
		return t.end
	}
	return t.starts[index]
}

// index is the character that starts at this byte, or -1.
func (t *text) index(offset int) int {
	i := sort.SearchInts(t.starts, offset)
	if i < len(t.starts) && t.starts[i] != offset {
		return -1
	}
	if i == len(t.starts) && offset != t.end {
		return -1
	}
	return i
}

// last is the character that was completed last.
func (t *text) last() rune { return t.runes[len(t.runes)-1] }

// hasSuffix reports whether the complete characters end with s.
func (t *text) hasSuffix(s string) bool {
	from := t.end - len(s)
	return from >= 0 && string(t.bytes[from:t.end]) == s
}
