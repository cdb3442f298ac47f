package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// printable makes text of a model, a tool, a server or a file safe for a
// terminal: what could move the cursor, change colours, ring, reorder the line
// or hide something is shown as a visible character. Newlines and tabs stay.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return dangerous(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // also a bare C1 byte
			b.WriteRune(utf8.RuneError)
		case r < 0x20 && dangerous(r):
			b.WriteRune('␀' + r) // the control pictures
		case r == 0x7f:
			b.WriteRune('␡')
		case dangerous(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// dangerous reports whether a terminal may act on a character instead of
// showing it: C0 without newline and tab, DEL, C1, the line and paragraph
// separators, and the marks, embeddings, overrides and isolates that change
// the direction of text (Unicode TR 36, UAX 9).
func dangerous(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}
