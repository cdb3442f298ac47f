package cite

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Verdict says what is behind a citation.
type Verdict string

// The verdicts.
const (
	Supported  Verdict = "ok"                       // the evidence stands in the page, word for word
	Unknown    Verdict = "unknown id"               // nothing has the number
	NotInPage  Verdict = "evidence not in the page" // or not all of it
	NoEvidence Verdict = "no evidence"              // there are no words to look for
)

// A Finding is what came of looking for evidence in a page.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Share is how much of the evidence stands in the page, by its characters,
	// from 0 to 1.
	Share float64 `json:"share"`
	// Absent is the first piece of the evidence that does not, as it was looked
	// for.
	Absent string `json:"absent,omitempty"`
}

// Words say how the evidence stands, for people.
func (f Finding) Words() string {
	switch f.Verdict {
	case Supported:
		return "Evidence stands in the page, word for word"
	case NoEvidence:
		return "No evidence was given"
	case NotInPage:
		if f.Share > 0 {
			return fmt.Sprintf("Only %d %% of the evidence stands in the page", int(100*f.Share))
		}
		return "Evidence is not in the page"
	}
	return "There is no such summary"
}

// A Page is a text in which evidence is looked for.
type Page struct{ text string }

// NewPage makes a page of a text. Each text is made plain once, whatever is
// looked for in it.
func NewPage(text string) *Page { return &Page{plain(text)} }

// Look looks for evidence. Its lines are pieces, or what an ellipsis parts where
// the page has none there; each must stand in the page word for word, in any
// order. Pieces and page are compared in plain text:
//
//   - characters in their compatible composition (Unicode's NFKC);
//   - white space of any kind and length as one space, and none beside Chinese
//     and Japanese characters;
//   - typographic quotes as straight ones, dashes and hyphens of any length as
//     one hyphen without spaces around;
//   - without soft hyphens, zero-width spaces, and the numbers of footnotes in
//     brackets;
//   - without Markdown's marks: of headings, quotations, list items, tables,
//     emphasis, code, links and their addresses, and escapes.
//
// Words are compared whole and in their case; the first letter of a piece may
// have another. Quotes and punctuation at the ends of a piece do not count. A
// piece between ellipses has three words at least (or six Chinese or Japanese
// characters): of single words anything can be pieced together. Of more than
// 500 pieces the rest counts as absent.
func (p *Page) Look(evidence string) Finding {
	all, found, looked := 0, 0, 0
	absent := ""
	for line := range strings.SplitSeq(evidence, "\n") {
		text := plain(line)
		pieces := strings.Split(text, "...")
		if whole := strings.Trim(text, edges); len(pieces) > 1 && looked < maxPieces && p.holds(whole) {
			pieces = []string{whole} // the ellipses are the page's
		}
		parted := 0
		for i, piece := range pieces {
			if pieces[i] = strings.Trim(piece, edges); pieces[i] != "" {
				parted++
			}
		}
		for _, piece := range pieces {
			n := letters(piece)
			if n == 0 {
				continue
			}
			all += n
			looked++
			if looked <= maxPieces && (parted == 1 || substantial(piece)) && p.holds(piece) {
				found += n
			} else if absent == "" {
				absent = excerpt(piece)
			}
		}
	}
	switch {
	case all == 0:
		return Finding{Verdict: NoEvidence}
	case found == all:
		return Finding{Verdict: Supported, Share: 1}
	}
	return Finding{Verdict: NotInPage, Share: float64(found) / float64(all), Absent: absent}
}

// edges are what may stand around a piece without being part of it.
const edges = " \"'.,;:!?()-。，；：！？、（）「」『』《》"

const (
	maxPieces = 500
	maxAbsent = 200 // characters of one that is told
)

func excerpt(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxAbsent {
			return s[:i] + "…"
		}
	}
	return s
}

// letters counts the letters and digits of a text.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// substantial reports whether a piece is more than a few words.
func substantial(piece string) bool {
	dense := 0
	for _, r := range piece {
		if solid(r) {
			dense++
		}
	}
	return dense >= 6 || strings.Count(piece, " ") >= 2
}

// holds reports whether a piece stands in the page as whole words.
func (p *Page) holds(piece string) bool {
	first, size := utf8.DecodeRuneInString(piece)
	for _, spelled := range []string{piece, string(unicode.ToUpper(first)) + piece[size:], string(unicode.ToLower(first)) + piece[size:]} {
		for from := 0; ; {
			i := strings.Index(p.text[from:], spelled)
			if i < 0 {
				break
			}
			i += from
			if apart(p.text, i) && apart(p.text, i+len(spelled)) {
				return true
			}
			_, step := utf8.DecodeRuneInString(p.text[i:])
			from = i + step
		}
	}
	return false
}

// apart reports whether no word goes on across a place of a text.
func apart(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	inside := func(r rune) bool {
		return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !solid(r)
	}
	return i == 0 || i == len(text) || !inside(before) || !inside(after)
}

// solid reports whether a character is of a script without spaces between words.
func solid(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
