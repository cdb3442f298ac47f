package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxTermBytes cuts endless words, such as encoded data.
const maxTermBytes = 64

// A term is what is looked up. Documents and queries are cut into terms by the
// same function, so the index never sees a query's syntax.
type term struct {
	text string
	at   int // byte offset in the text where it begins; near it where folding changed lengths
	// prefix marks a single Chinese, Japanese or Korean character of a query,
	// which stands for every term that begins with it.
	prefix bool
}

// matches reports whether a document's term is what a query's term looks for.
func (t term) matches(document string) bool {
	return document == t.text || t.prefix && strings.HasPrefix(document, t.text)
}

// eachTerm cuts text into terms: runs of letters, digits and marks, without
// case and without accents. Chinese, Japanese and Korean, which need no spaces,
// become overlapping pairs of characters. A document's run also gives its last
// character alone, so that every character begins a term.
func eachTerm(text string, query bool, yield func(term)) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !inWord(r) {
			i += size
			continue
		}
		start, wide := i, isWide(r)
		for i += size; i < len(text); i += size {
			r, size = utf8.DecodeRuneInString(text[i:])
			if !unicode.IsMark(r) && (!inWord(r) || isWide(r) != wide) {
				break
			}
		}
		if wide {
			pairs(text[start:i], start, query, yield)
		} else if word := fold(text[start:i]); word != "" {
			yield(term{text: word[:floor(word, maxTermBytes)], at: start})
		}
	}
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isWide reports whether a letter is of a script that is written without
// spaces and cut into pairs. The prolonged sound mark and the half-width voice
// marks are of no script, but belong to Katakana.
func isWide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	switch r {
	case 'ー', 'ｰ', 'ﾞ', 'ﾟ':
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// pairs cuts a run of characters without spaces into pairs.
func pairs(run string, at int, query bool, yield func(term)) {
	folded := []rune(fold(run))
	pos := 0
	for i := range folded {
		switch {
		case i+1 < len(folded):
			yield(term{text: string(folded[i : i+2]), at: at + pos})
		case len(folded) == 1 || !query:
			yield(term{text: string(folded[i]), at: at + pos, prefix: query})
		}
		_, size := utf8.DecodeRuneInString(run[pos:])
		pos += size
	}
}

// fold takes case, accents and width off a word. Only the accents of the Latin,
// Greek and Cyrillic scripts go: elsewhere marks tell words apart.
func fold(word string) string {
	ascii := true
	for i := 0; i < len(word); i++ {
		ascii = ascii && word[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(word)
	}
	word = strings.Map(func(r rune) rune {
		if 0x300 <= r && r <= 0x36f {
			return -1
		}
		return r
	}, norm.NFKD.String(word))
	return cases.Fold().String(norm.NFKC.String(word))
}

// floor moves a byte offset back to the start of a character, and into s.
func floor(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// Bounds of a query. It was written by a model, or by a page the model read.
const (
	maxQueryBytes = 10 << 10
	maxQueryTerms = 64
)

// queryTerms gives the distinct terms of a query, in its order.
func queryTerms(query string) []term {
	query = query[:floor(query, maxQueryBytes)]
	seen := make(map[string]bool)
	var list []term
	eachTerm(query, true, func(t term) {
		if !seen[t.text] && len(list) < maxQueryTerms {
			seen[t.text] = true
			list = append(list, t)
		}
	})
	return list
}
