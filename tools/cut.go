package tools

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// emptyWords stand in for an output without a visible character: a prompt with
// an empty response looks to a model like one that it has to fill in.
const emptyWords = "The tool returned nothing."

// clean makes text valid UTF-8 and never empty.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return emptyWords
	}
	return text
}

// EstimateTokens counts the tokens of a text from above without a vocabulary:
// one for every three bytes of ASCII and one for every other character. The
// byte-pair vocabularies of today's models need fewer for prose in English and
// Chinese and for code; long runs of digits and rare scripts come near it.
func EstimateTokens(text string) int {
	ascii, other := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			ascii++
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		other++
		i += size
	}
	return (ascii+2)/3 + other
}

// Cut shortens a text to its head and tail, so many tokens by count and a
// notice between them, and gives how many tokens it left out. It is for a
// prompt with less room than Options.MaxTokens.
func Cut(text string, tokens int, count func(string) int) (string, int) {
	return cutter{max: max(tokens, 0), count: count}.cut(text)
}

// A cutter shortens what is too long for a prompt.
type cutter struct {
	max   int // tokens; negative for no cap
	count func(string) int
}

// cut keeps the head and the tail of a text that has more than max tokens, and
// says in words between them how many were left out. text must be valid UTF-8.
func (c cutter) cut(text string) (string, int) {
	// A token is at least a byte, so short texts need not be counted.
	if c.max < 0 || len(text) <= c.max {
		return text, 0
	}
	total := c.count(text)
	if total <= c.max {
		return text, 0
	}
	head, tail := c.ends(text)
	out := max(1, total-c.count(head)-c.count(tail))
	var b strings.Builder
	b.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(notice(out))
	if tail != "" && !strings.HasPrefix(tail, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(tail)
	return b.String(), out
}

// ends gives the head and the tail that are kept. The tail gets a third of the
// tokens: summaries and errors stand at the end.
func (c cutter) ends(text string) (head, tail string) {
	tailTokens := c.max / 3
	head = text[:c.headEnd(text, c.max-tailTokens)]
	return head, text[c.tailStart(text, len(head), tailTokens):]
}

// notice stands in for what was cut.
func notice(tokens int) string {
	if tokens == 1 {
		return "[… 1 token left out …]"
	}
	return fmt.Sprintf("[… %d tokens left out …]", tokens)
}

// headEnd is the end of the longest head that has at most the given tokens,
// moved back to the end of a line where that loses at most a quarter.
func (c cutter) headEnd(text string, tokens int) int {
	n := c.fit(len(text), tokens, func(n int) string { return text[:floor(text, n)] })
	n = floor(text, n)
	if nl := strings.LastIndexByte(text[:n], '\n') + 1; nl > 0 && nl >= n-n/4 {
		return nl
	}
	return n
}

// tailStart is the start of the longest tail that has at most the given
// tokens and does not reach into the head, moved like headEnd.
func (c cutter) tailStart(text string, from, tokens int) int {
	room := len(text) - from
	n := c.fit(room, tokens, func(n int) string { return text[ceil(text, len(text)-n):] })
	start := ceil(text, len(text)-n)
	if nl := strings.IndexByte(text[start:], '\n'); nl >= 0 && nl < (len(text)-start)/4 {
		return start + nl + 1
	}
	return start
}

// fit finds the largest n up to limit whose piece has at most the given
// tokens. The window is doubled first, so that a long text is not counted
// over and over.
func (c cutter) fit(limit, tokens int, piece func(int) string) int {
	if tokens <= 0 {
		return 0
	}
	low, high := 0, 4*tokens
	for high < limit && c.count(piece(high)) <= tokens {
		low, high = high, 2*high
	}
	high = min(high, limit)
	n := low + sort.Search(high-low, func(i int) bool { return c.count(piece(low+i+1)) > tokens })
	// Token counts do not grow quite evenly with the bytes; hold the cap exactly.
	for n > 0 && c.count(piece(n)) > tokens {
		n -= 1 + n/64
	}
	return n
}

// floor moves a byte offset back to the start of a character.
func floor(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// ceil moves a byte offset on to the start of a character.
func ceil(text string, n int) int {
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}
