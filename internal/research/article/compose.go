package article

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"stopgap/internal/research/cite"
)

// A place stands in composed Markdown where a citation is: its number among the
// marks of the text, between two characters that no text has otherwise. It
// begins with punctuation, as all does that goldmark looks for inside of lines.
const (
	placeOpen  = "^\uE000"
	placeClose = "\uE001"
)

// unplaced takes the characters of places out of a text.
var unplaced = strings.NewReplacer("\uE000", "\uFFFD", placeClose, "\uFFFD")

var (
	place      = regexp.MustCompile(`\` + placeOpen + `(\d+)` + placeClose)
	atxHeading = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+|$)`)
	underline  = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
	blockStart = regexp.MustCompile(`^(?: {4}|\t|\s*(?:[>#|]|[-*+]\s|\d+[.)]\s|$))`)
)

// A composed text is a section or the answer, ready to be written: Markdown
// whose highest heading is of a given level, with places for its citations.
type composed struct {
	markdown string
	marks    []cite.Mark
	of       map[int]int // the first of Report.Citations by the mark
}

// compose makes the texts of a report, the answer first. Citations are counted
// as Check has counted them.
func (r *Report) compose() []composed {
	next := 0
	var out []composed
	for i, text := range r.texts() {
		text = unplaced.Replace(strings.ToValidUTF8(text, "\uFFFD"))
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(text)
		c := composed{marks: cite.Find(text), of: map[int]int{}}
		var b strings.Builder
		at := 0
		for n, m := range c.marks {
			b.WriteString(text[at:m.Start])
			at = m.End
			if len(m.Numbers)+len(m.Bad) > 0 {
				c.of[n] = next
				next += len(m.Numbers) + len(m.Bad)
				fmt.Fprintf(&b, placeOpen+"%d"+placeClose, n)
			}
		}
		b.WriteString(text[at:])
		title := ""
		if i > 0 {
			if title = strings.Join(strings.Fields(cite.Strip(r.Sections[i-1].Title)), " "); title == "" {
				title = fmt.Sprintf("Section %d", i)
			}
		}
		c.markdown = level(b.String(), title)
		out = append(out, c)
	}
	return out
}

// citations gives those of a mark.
func (r *Report) citations(c composed, mark int) []Citation {
	from, ok := c.of[mark]
	m := c.marks[mark]
	to := from + len(m.Numbers) + len(m.Bad)
	if !ok || to > len(r.Citations) {
		return nil // the report was not checked
	}
	return r.Citations[from:to]
}

// level makes the headings of a text those of a part: its own first line, or
// else the title, is of the second level, and what is below it goes down with
// it. A rule right below a line is a rule, and no heading. A code block that
// has no end is ended.
func level(text, title string) string {
	lines := blocks(strings.Split(strings.Trim(text, "\n"), "\n"))
	first, highest := 0, 7
	begins := true
	for _, l := range lines {
		if l.heading > 0 {
			highest = min(highest, l.heading)
			if begins {
				first = l.heading
			}
		}
		begins = begins && strings.TrimSpace(l.text) == ""
	}
	shift, top := 3-highest, 3
	var b strings.Builder
	switch {
	case first > 0 && title != "":
		shift, top = 2-first, 2
	case title != "":
		b.WriteString("## " + title + "\n\n")
	}
	for _, l := range lines {
		if l.heading > 0 {
			b.WriteString(strings.Repeat("#", min(max(l.heading+shift, top), 6)) + " ")
		}
		b.WriteString(l.text + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// A block is a line of Markdown; of a heading, without its marks.
type block struct {
	text    string
	heading int
}

// blocks finds the headings among lines.
func blocks(lines []string) []block {
	var out []block
	fence := ""
	for i, line := range lines {
		bare := strings.TrimLeft(line, " ")
		if fence != "" {
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]+" \t") == "" {
				fence = ""
			}
			out = append(out, block{text: line})
			continue
		}
		for _, mark := range []string{"```", "~~~"} {
			if strings.HasPrefix(bare, mark) && !(mark == "```" && strings.Contains(strings.TrimLeft(bare, "`"), "`")) {
				fence = bare[:len(bare)-len(strings.TrimLeft(bare, mark[:1]))]
			}
		}
		m := underline.FindStringSubmatch(line)
		below := m != nil && i > 0 && !blockStart.MatchString(lines[i-1]) && len(out) > 0 && out[len(out)-1].heading == 0
		switch h := atxHeading.FindStringSubmatch(line); {
		case fence == "" && h != nil:
			out = append(out, block{strings.TrimSpace(line[len(h[0]):]), len(h[1])})
		case below && m[1][0] == '=' && (i == 1 || strings.TrimSpace(lines[i-2]) == ""):
			out[len(out)-1].heading = 1
		case below:
			out = append(out, block{}, block{text: line})
		default:
			out = append(out, block{text: line})
		}
	}
	if fence != "" {
		out = append(out, block{text: fence})
	}
	return out
}

// webAddress is a source as an address that may be followed: http and https,
// empty for all else.
func webAddress(source string) string {
	u, err := url.Parse(strings.TrimSpace(source))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.String()
}

// heading is a question as one line, cut where it is very long.
func (r *Report) heading() (title string, whole bool) {
	const most = 200 // characters
	title = strings.Join(strings.Fields(strings.ToValidUTF8(r.Question, "\uFFFD")), " ")
	if runes := []rune(title); len(runes) > most {
		return strings.TrimSpace(string(runes[:most])) + "…", false
	}
	return title, true
}
