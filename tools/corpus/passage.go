package corpus

import (
	"strings"
	"unicode/utf8"
)

const (
	// passageRunes is how many characters of a document are searched as one.
	passageRunes = 1500
	// leadRunes is about how many of the passage before are searched with it:
	// what one sentence names, the next one speaks of.
	leadRunes = 200
)

// A span is a piece of a text, in bytes.
type span struct{ start, end int }

// A passage is a piece of a text, and where the piece begins that is searched
// with it: the last sentences of the passage before, or a part of one.
type passage struct {
	span
	lead int
}

// overlapping gives the passages of a text, with their leads.
func overlapping(text string) []passage {
	var list []passage
	for i, s := range passages(text, passageRunes) {
		p := passage{s, s.start}
		if i > 0 {
			p.lead = lead(text, list[i-1].start, s.start)
		}
		list = append(list, p)
	}
	return list
}

// lead is where the lead of a passage begins that begins at end, after one that
// begins at start.
func lead(text string, start, end int) int {
	from := end
	for n := 0; n < leadRunes && from > start; n++ {
		_, size := utf8.DecodeLastRuneInString(text[start:from])
		from -= size
	}
	if list := sentences(text[from:end]); len(list) > 1 {
		return from + list[1].start // the first one may be cut
	}
	if i := strings.IndexAny(text[from:end], " \n\t"); i >= 0 {
		return from + i + 1
	}
	return from
}

// passages cuts a text into pieces of at most size characters that cover all
// of it. A piece ends before a heading where one stands in its last three
// quarters; else, in its last half, at the end of a paragraph, a sentence or a
// word; else anywhere.
func passages(text string, size int) []span {
	var list []span
	start := 0
	for {
		window := text[start:]
		end := runes(window, size)
		if end == len(window) {
			return append(list, span{start, len(text)})
		}
		n := passageEnd(window[:end])
		list = append(list, span{start, start + n})
		start += n
	}
}

// runes is the byte length of the first n characters of a text.
func runes(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

func passageEnd(window string) int {
	half := len(window) / 2
	if i := strings.LastIndex(window, "\n#") + 1; i > half/2 {
		return i
	}
	if i := strings.LastIndex(window, "\n\n") + 2; i > half {
		return i
	}
	if list := sentences(window); len(list) > 1 && list[len(list)-1].start > half {
		return list[len(list)-1].start
	}
	if i := strings.LastIndexAny(window, " \n\t") + 1; i > half {
		return i
	}
	return len(window)
}

// sentences cuts a text into sentences that cover all of it, white space
// behind a sentence included. Headings, list items and paragraphs end one too.
func sentences(text string) []span {
	var list []span
	start := 0
	cut := func(at int) {
		if at > start {
			list = append(list, span{start, at})
			start = at
		}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch r {
		case '.', '!', '?':
			j := i
			for j < len(text) && strings.IndexByte(`.!?"')]*_`, text[j]) >= 0 {
				j++
			}
			if j == len(text) || strings.IndexByte(" \n\t", text[j]) >= 0 {
				i = j + leadingSpace(text[j:])
				cut(i)
			}
		case '。', '！', '？':
			for i < len(text) {
				r, size := utf8.DecodeRuneInString(text[i:])
				if !strings.ContainsRune("。！？”’」』）", r) {
					break
				}
				i += size
			}
			i += leadingSpace(text[i:])
			cut(i)
		case '\n':
			if text[start] == '#' || beginsBlock(text[i:]) {
				i += leadingSpace(text[i:])
				cut(i)
			}
		}
	}
	cut(len(text))
	return list
}

func leadingSpace(text string) int {
	return len(text) - len(strings.TrimLeft(text, " \n\t"))
}

// beginsBlock reports whether the line that begins here does not carry on the
// sentence of the line before.
func beginsBlock(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(line)
	if line == "" {
		return true
	}
	switch line[0] {
	case '#', '|', '>':
		return true
	case '-', '*', '+':
		return len(line) > 1 && line[1] == ' '
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	return digits > 0 && strings.HasPrefix(line[digits:], ". ")
}
