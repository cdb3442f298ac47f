package automaton

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitPieces cuts text into pieces that are not in taken and differ from one
// another, each as few words long as that allows, and adds them to taken.
// Their concatenation is text. A piece that one of the atoms spells stays
// whole. It reports false, and leaves taken alone, when there is no such cut.
//
// Equal pieces would be one token, and an automaton whose state is the last
// token could not tell what follows the first from what follows the second.
func splitPieces(text string, atoms []string, taken map[string]bool) ([]string, bool) {
	var pieces []string
	words := splitWords(text, atoms)
	for at := 0; at < len(words); {
		n, ok := shortestNew(words[at:], taken)
		piece := strings.Join(words[at:at+n], "")
		for !ok {
			// The rest of the text was said before, all of it: it goes to
			// the piece before it, as often as it takes.
			last := len(pieces) - 1
			if last < 0 {
				return nil, false
			}
			piece = pieces[last] + piece
			delete(taken, pieces[last])
			pieces = pieces[:last]
			ok = !taken[piece]
		}
		taken[piece] = true
		pieces = append(pieces, piece)
		at += n
	}
	return pieces, true
}

// shortestNew counts the words that the shortest piece has which begins words
// and is not taken. Without one it gives all words and false.
func shortestNew(words []string, taken map[string]bool) (int, bool) {
	var piece strings.Builder
	for i, w := range words {
		piece.WriteString(w)
		if !taken[piece.String()] {
			return i + 1, true
		}
	}
	return len(words), false
}

// splitWords cuts text into atoms, words with the space before them, and
// single characters of everything else, about as real vocabularies do.
func splitWords(text string, atoms []string) []string {
	var words []string
	for text != "" {
		n := wordLen(text, atoms)
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

// wordLen is the length in bytes of the word that text begins with.
func wordLen(text string, atoms []string) int {
	for _, a := range atoms {
		if strings.HasPrefix(text, a) {
			return len(a)
		}
	}
	n := 0
	if text[0] == ' ' && len(text) > 1 {
		n = 1
	}
	r, size := utf8.DecodeRuneInString(text[n:])
	if !inWord(r) {
		if n == 1 {
			return 1
		}
		return size
	}
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !inWord(r) {
			break
		}
		n += size
	}
	return n
}

// inWord reports whether r continues a word. Scripts without spaces between
// words give one word a character.
func inWord(r rune) bool {
	if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
