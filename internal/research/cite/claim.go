package cite

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const maxClaim = 1000 // bytes before a mark

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["'”’)]*\s+|[。！？]|\n\s*\n|\n\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s+|\|`)
	figure      = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	thousands   = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$`)
)

// Claim is what the mark at marks[i] stands behind: the text of its sentence
// since the mark before, or the whole sentence where it stands after its end.
func Claim(text string, marks []Mark, i int) string {
	end := marks[i].Start
	from := max(0, end-maxClaim)
	for from < end && !utf8.RuneStart(text[from]) {
		from++
	}
	if i > 0 {
		from = max(from, marks[i-1].End)
	}
	said := strings.TrimSpace(text[from:end])
	at := 0
	for _, end := range sentenceEnd.FindAllStringIndex(said, -1) {
		if end[1] < len(said) {
			at = end[1]
		}
	}
	return strings.TrimLeft(said[at:], " \t\n.,;:!?)-#*")
}

// Figures gives the numbers of a claim that are in none of the texts, each
// once, as the claim spells them. It is a hint and no proof: a text may spell
// out what a claim counts in digits.
func Figures(claim string, texts ...string) []string {
	there := map[string]bool{}
	for _, text := range texts {
		for _, f := range figure.FindAllString(norm.NFKC.String(text), -1) {
			there[spelled(f)] = true
		}
	}
	var out []string
	for _, f := range figure.FindAllString(norm.NFKC.String(claim), -1) {
		if !there[spelled(f)] && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// spelled is a figure without what parts its thousands, and without the zeros
// before it.
func spelled(f string) string {
	if thousands.MatchString(f) {
		f = strings.ReplaceAll(f, ",", "")
	}
	if short := strings.TrimLeft(f, "0"); short != "" && short[0] != '.' && short[0] != ',' {
		return short
	}
	return f
}
