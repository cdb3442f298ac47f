// Package cite reads the citations that models write, and checks whether the
// evidence behind one stands in the page that it is said to come from.
//
// It knows neither a bank nor a report: it is given texts.
package cite

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Mark is a place in a text that cites.
type Mark struct {
	Start, End int // bytes of the text
	// Numbers are what is cited, in their order and each once. A mark with
	// neither Numbers nor Bad is a tag that stands alone, as </cite> without a
	// beginning: it says nothing.
	Numbers []int
	Bad     []string // what stands where numbers belong
}

// Spell writes a citation the one way that models are asked for.
func Spell(numbers ...int) string {
	if len(numbers) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<cite> ")
	for i, n := range numbers {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "<id>%d</id>", n)
	}
	b.WriteString(" </cite>")
	return b.String()
}

// The bounds of a citation.
const (
	maxInside = 1 << 13 // bytes between <cite> and </cite>
	maxRange  = 50      // numbers that 1-50 stands for
	// MaxNumbers is how many numbers one mark has at most.
	MaxNumbers = 200
	maxBad     = 80 // bytes of what is no number
	maxCode    = 1 << 16
)

// The spellings. A number in brackets has three digits at most, so that a year
// in brackets is none.
var (
	citeTag   = regexp.MustCompile(`(?i)^<cite((?:\s+[a-z]+\s*=\s*(?:"[^"<>]{0,200}"|'[^'<>]{0,200}'|[^\s"'<>/]{1,200}))*)\s*(/?)>`)
	endTag    = regexp.MustCompile(`(?i)^</cite\s*>`)
	eitherTag = regexp.MustCompile(`(?i)</?cite`)
	idTags    = regexp.MustCompile(`(?i)^(?:\s*[,;、，]?\s*(?:<id>[^<>\n]{0,80}</id>|<id[\s_=:]*"?\d{1,9}"?\s*/?>))+`)
	bareID    = regexp.MustCompile(`(?i)<id[\s_=:]*"?(\d{1,9})"?\s*/?>`)
	anyTag    = regexp.MustCompile(`(?i)</?(?:id|cite)\s*>`)
	quoted    = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"'=]+(?:\s|$)`)
	brackets  = regexp.MustCompile(`(?i)^\[\^?\s*(?:(?:id|summary|source|ref)s?[\W_]?\s*)?\d{1,3}(?:\s*[,;、，–-]\s*\d{1,3})*\s*\]`)
	lenses    = regexp.MustCompile(`^【\s*\d{1,3}(?:\s*[,;、，–-]\s*\d{1,3})*\s*(?:[†:][^】\n]{0,80})?】`)
	between   = regexp.MustCompile(`^[ \t]*[,;、，]?[ \t]*$`)
	number    = regexp.MustCompile(`(?i)^(?:(?:id|summary|source|ref)s?[\W_]?|#|\^)?0*(\d{1,9})(?:\s*[–-]\s*0*(\d{1,9}))?$`)
	parting   = regexp.MustCompile(`[,;、，\s]+|\band\b`)
	spaced    = regexp.MustCompile(`\s*[–-]\s*|(?i:\s+to\s+)`)
	labels    = regexp.MustCompile(`(?i)\b(id|summary|source|ref)s?[\W_]?\s+(\d)`)
)

// Find gives the citations of a text, in their order. Beside the spelling of
// Spell it reads <cite>1, 2</cite>, <cite id="1"/>, <id>1</id> and <id_1> alone,
// [1], [1, 2], [1][2], [^1] and 【1†…】. What stands in Markdown's code, behind a
// backslash, and [1](…) and [1]: …, which are links, cites nothing.
func Find(text string) []Mark {
	var out []Mark
	for i := 0; i < len(text); {
		if n := code(text, i); n > 0 {
			i += n
			continue
		}
		if text[i] == '\\' && i+1 < len(text) && text[i+1] < utf8.RuneSelf {
			i += 2
			continue
		}
		m, ok := at(text, i)
		if !ok {
			i++
			continue
		}
		i = m.End
		if last := len(out) - 1; last >= 0 && joins(out[last], m, text) {
			out[last].End, out[last].Bad = m.End, append(out[last].Bad, m.Bad...)
			for _, n := range m.Numbers {
				out[last].add(n)
			}
			continue
		}
		out = append(out, m)
	}
	return out
}

// joins reports whether two marks are one, as [1], [2] is.
func joins(a, b Mark, text string) bool {
	said := func(m Mark) bool { return len(m.Numbers)+len(m.Bad) > 0 }
	return said(a) && said(b) && b.Start-a.End <= 4 && between.MatchString(text[a.End:b.Start])
}

// code is how many bytes at i are code: a fenced block, or what stands between
// backticks. A run of backticks without its other half is no code.
func code(text string, i int) int {
	c := text[i]
	if c != '`' && c != '~' {
		return 0
	}
	run := 1
	for i+run < len(text) && text[i+run] == c {
		run++
	}
	if run >= 3 {
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		if len(line) <= 12 && strings.Trim(line, " \t>-*+") == "" {
			return fence(text, i, run)
		}
	}
	if c == '~' {
		return run
	}
	rest := text[i+run : min(i+run+maxCode, len(text))]
	if end := strings.Index(rest, "\n\n"); end >= 0 {
		rest = rest[:end]
	}
	for j := 0; j < len(rest); {
		if rest[j] != '`' {
			j++
			continue
		}
		n := 1
		for j+n < len(rest) && rest[j+n] == '`' {
			n++
		}
		if j += n; n == run {
			return run + j
		}
	}
	return run
}

// fence is the length of a fenced block that begins at i, to the end of the
// text where it has no end.
func fence(text string, i, run int) int {
	mark := text[i : i+run]
	for j := i; ; {
		next := strings.IndexByte(text[j:], '\n')
		if next < 0 {
			return len(text) - i
		}
		j += next + 1
		line, _, _ := strings.Cut(text[j:], "\n")
		if line = strings.TrimSpace(strings.TrimLeft(line, " \t>")); strings.HasPrefix(line, mark) && strings.Trim(line, mark[:1]) == "" {
			return j + len(line) - i
		}
	}
}

// at reads the mark that begins at i.
func at(text string, i int) (Mark, bool) {
	rest := text[i:]
	switch {
	case rest[0] == '<':
		return tag(rest, i)
	case rest[0] == '[':
		n := len(brackets.FindString(rest))
		if n == 0 || strings.HasPrefix(rest[n:], "(") || strings.HasPrefix(rest[n:], ":") && strings.TrimSpace(text[strings.LastIndexByte(text[:i], '\n')+1:i]) == "" {
			return Mark{}, false
		}
		return read(rest[1:n-1], i, i+n), true
	case strings.HasPrefix(rest, "【"):
		n := len(lenses.FindString(rest))
		if n == 0 {
			return Mark{}, false
		}
		inside := strings.TrimSuffix(rest[len("【"):n], "】")
		if j := strings.IndexAny(inside, "†:"); j >= 0 {
			inside = inside[:j]
		}
		return read(inside, i, i+n), true
	}
	return Mark{}, false
}

// tag reads <cite>, <id> and </cite>.
func tag(rest string, i int) (Mark, bool) {
	if n := len(endTag.FindString(rest)); n > 0 {
		return Mark{Start: i, End: i + n}, true
	}
	if n := len(idTags.FindString(rest)); n > 0 {
		return read(rest[:n], i, i+n), true
	}
	m := citeTag.FindStringSubmatch(rest)
	if m == nil {
		return Mark{}, false
	}
	n := len(m[0])
	var values []string
	for _, v := range quoted.FindAllString(m[1], -1) {
		values = append(values, strings.Trim(v, `"' `))
	}
	// What an attribute tells is told; then the text between the tags is the
	// model's words.
	if attributes := read(strings.Join(values, ","), i, i+n); len(attributes.Numbers) > 0 {
		attributes.Bad = nil
		return attributes, true
	}
	if m[2] != "" {
		return Mark{Start: i, End: i + n}, true
	}
	inside := rest[n:min(n+maxInside, len(rest))]
	if next := eitherTag.FindStringIndex(inside); next != nil {
		if close := len(endTag.FindString(inside[next[0]:])); close > 0 {
			return read(inside[:next[0]], i, i+n+next[0]+close), true
		}
	}
	ids := len(idTags.FindString(inside)) // no end: what is surely meant
	return read(inside[:ids], i, i+n+ids), true
}

// read reads the numbers between a beginning and an end.
func read(inside string, start, end int) Mark {
	m := Mark{Start: start, End: end}
	inside = anyTag.ReplaceAllString(bareID.ReplaceAllString(inside, " $1 "), " ")
	inside = strings.NewReplacer("[", " ", "]", " ", "(", " ", ")", " ").Replace(inside)
	inside = labels.ReplaceAllString(spaced.ReplaceAllString(inside, "-"), "$2")
	for _, word := range parting.Split(inside, -1) {
		if word == "" {
			continue
		}
		n := number.FindStringSubmatch(word)
		if n == nil {
			m.bad(word)
			continue
		}
		from, _ := strconv.Atoi(n[1])
		to := from
		if n[2] != "" {
			to, _ = strconv.Atoi(n[2])
		}
		if to < from || to-from >= maxRange {
			m.bad(word)
			continue
		}
		for ; from <= to; from++ {
			m.add(from)
		}
	}
	return m
}

func (m *Mark) add(n int) {
	if len(m.Numbers) < MaxNumbers && !slices.Contains(m.Numbers, n) {
		m.Numbers = append(m.Numbers, n)
	}
}

// bad notes a word; all of a mark's are one text.
func (m *Mark) bad(word string) {
	if len(m.Bad) == 0 {
		m.Bad = []string{word}
	} else if len(m.Bad[0]) < maxBad {
		m.Bad[0] += " " + word
	}
	if len(m.Bad[0]) > maxBad {
		m.Bad[0] = strings.ToValidUTF8(m.Bad[0][:maxBad], "") + "…"
	}
}

// Strip gives a text without its citations, and without the space before each.
func Strip(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range Find(text) {
		b.WriteString(strings.TrimRight(text[at:m.Start], " \t"))
		at = m.End
	}
	b.WriteString(text[at:])
	return b.String()
}
