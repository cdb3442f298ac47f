// Package pystr does to texts what Python's str does, where Go's own functions
// differ: the reference scripts of evaluations are written in Python, and a
// verdict must not depend on the language.
package pystr

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Lower is str.lower(): the final sigma and the dotted capital I have lower
// cases that no single character tells.
func Lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// Fields is str.split().
func Fields(s string) []string { return strings.FieldsFunc(s, IsSpace) }

// Strip is str.strip().
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// IsSpace is str.isspace(): Python also counts the four separators of ASCII.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// IsWord reports whether \w of the module re matches: letters, numbers and the
// underscore, but no combining marks.
func IsWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
