package main

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// An excerpt is the text around the end of a match, in bytes as they came.
type excerpt struct {
	before    string // before the match
	kept, cut string // the match: what stays of it and what is cut off
	after     string // after the match
}

var lineControls = strings.NewReplacer("\n", "␊", "\t", "␉")

// oneLine makes text printable on one line.
func oneLine(s string) string { return lineControls.Replace(printable(s)) }

// The columns of an excerpt.
const (
	excerptWidth = 76  // where lines have no end
	widest       = 200 // in the widest terminal
)

// lines draw an excerpt on one line and mark the match below it: "~" is kept,
// "-" is cut off, "^" is the last character.
func (e excerpt) lines(s screen, indent int) (text, marks string) {
	width := s.width() - indent
	if s.width() == plain {
		width = excerptWidth
	}
	width = max(min(width, widest), 1)

	parts := [...]string{oneLine(e.before), oneLine(e.kept), oneLine(e.cut)}
	whole := strings.Join(parts[:], "")
	left := runewidth.TruncatePrefix(whole, max(width*2/3, 2), "…")
	lead := ""
	if left != whole {
		lead = "…"
		drop := len(whole) - (len(left) - len(lead))
		for i, p := range parts {
			n := min(drop, len(p))
			parts[i], drop = p[n:], drop-n
		}
	}
	after := runewidth.Truncate(oneLine(e.after), max(width-cells(left), 1), "…")
	before, kept, cut := lead+parts[0], parts[1], parts[2]
	text = before + s.paint(green, kept) + s.paint(red, cut) + s.paint(dim, after)

	_, size := utf8.DecodeLastRuneInString(left)
	last := min(cells(left[:len(left)-size]), max(cells(left)-1, 0)) // a combining mark has no column of its own
	at, keptEnd := cells(before), cells(before+kept)
	tildes := max(min(keptEnd, last)-at, 0)
	dashes := max(last-max(keptEnd, at), 0)
	marks = strings.Repeat(" ", last-tildes-dashes) +
		s.paint(green, strings.Repeat("~", tildes)) + s.paint(red, strings.Repeat("-", dashes)) + s.paint(bold, "^")
	return text, marks
}

// pointAt draws a text on one line, with a mark below the character at a byte.
func pointAt(text string, at int, s screen, indent int) (line, marks string) {
	at = min(max(at, 0), len(text))
	_, size := utf8.DecodeRuneInString(text[at:])
	e := excerpt{before: text[:at], kept: text[at : at+size], after: text[at+size:]}
	if size == 0 { // just past the end
		e.kept = " "
	}
	return e.lines(s, indent)
}
