package corpus

import (
	"strings"
	"unicode/utf8"
)

// snippetRunes is about how many characters of a hit are shown.
const snippetRunes = 300

// snippet gives the sentences of a passage that say most about a query, on one
// line: the best one, then as many after it and before it as there is room for.
// Where none has a term, it is the first one from own on, the byte where the
// passage's own text begins behind its lead.
func snippet(text string, own int, query []term) string {
	list := sentences(text)
	best, at, most := 0, 0, 0
	for best < len(list)-1 && list[best].start < own {
		best++
	}
	at = list[best].start
	for i, s := range list {
		if weight, first := rate(text[s.start:s.end], query); weight > most {
			best, at, most = i, s.start+first, weight
		}
	}
	length := func(s span) int { return utf8.RuneCountInString(flatten(text[s.start:s.end])) }
	chosen := list[best]
	if length(chosen) > snippetRunes {
		return excerpt(text, chosen, at)
	}
	for next := best + 1; next < len(list) && length(span{chosen.start, list[next].end}) <= snippetRunes; next++ {
		chosen.end = list[next].end
	}
	for prev := best - 1; prev >= 0 && length(span{list[prev].start, chosen.end}) <= snippetRunes; prev-- {
		chosen.start = list[prev].start
	}
	return flatten(text[chosen.start:chosen.end])
}

// rate weighs a sentence by the distinct terms of the query in it. Long terms
// weigh more: they are rarer than short ones, and a pair of Chinese characters
// is about a word.
func rate(sentence string, query []term) (weight, first int) {
	found := make([]bool, len(query))
	first = -1
	eachTerm(sentence, false, func(t term) {
		for i, q := range query {
			if found[i] || !q.matches(t.text) {
				continue
			}
			found[i] = true
			weight += len(q.text)
			if first < 0 {
				first = t.at
			}
		}
	})
	return weight, max(first, 0)
}

// excerpt gives a part of a sentence that is too long, around its first match,
// with dots where something is missing. It looks at no more than it needs.
func excerpt(text string, s span, at int) string {
	from := s.start
	if lead := utf8.RuneCountInString(text[s.start:at]); lead > snippetRunes/3 {
		from = s.start + runes(text[s.start:], lead-snippetRunes/3)
		if i := strings.IndexAny(text[from:at], " \n\t"); i >= 0 {
			from += i + 1
		}
	}
	end := from + runes(text[from:s.end], snippetRunes)
	if end < s.end {
		if i := strings.LastIndexAny(text[from:end], " \n\t"); from+i > at {
			end = from + i
		}
	}
	out := flatten(text[from:end])
	if from > s.start {
		out = "… " + out
	}
	if end < s.end {
		out += " …"
	}
	return out
}

// flatten makes one line of a piece of a document and takes the marks off its
// headings.
func flatten(text string) string {
	if strings.Contains(text, "#") {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if bare := strings.TrimLeft(line, "#"); bare != line && strings.HasPrefix(bare, " ") {
				lines[i] = bare
			}
		}
		text = strings.Join(lines, "\n")
	}
	return squeeze(text)
}
