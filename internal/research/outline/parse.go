package outline

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"stopgap/internal/research/cite"
)

// What begins a line. Numbers have three digits at most, so that a year is none.
var (
	heading  = regexp.MustCompile(`^ {0,3}(#{1,6})(?:\s+|$)(.*)$`)
	numbered = regexp.MustCompile(`^(?:(\d{1,3}(?:\.\d{1,3})*)[.)](?:\s+|$)|(\d{1,3}(?:\.\d{1,3})+)\s+(\p{Lu}|\p{Lo})|[IVX]{1,6}[.)](?:\s+|$)|[A-Za-z]\)(?:\s+|$)|\(?[一二三四五六七八九十]{1,3}(?:、|\)\s*)|[（(][一二三四五六七八九十]{1,3}[）)])`)
	bullet   = regexp.MustCompile(`^[-*+•](?:\s+|$)`)
	bold     = regexp.MustCompile(`^(?:\*\*([^*]+)\*\*|__([^_]+)__):?$`)
	fenced   = regexp.MustCompile("^(?:```|~~~)")
	wrapper  = regexp.MustCompile(`(?i)</?(?:write_)?outline\s*>`)
	rule     = regexp.MustCompile(`^[-=*_\s]+$`)
	closing  = regexp.MustCompile(`(?:^|\s)#+$`)
	leading  = regexp.MustCompile("^(?:\\s+|#{1,6}(?:\\s+|$)|[-*+•](?:\\s+|$)|>|```|~~~)")
)

const (
	maxLine  = 16 << 10 // bytes of one line
	maxMarks = 50       // before its text
)

// A kind of line.
type lineKind int

const (
	proseLine lineKind = iota
	headingLine
	numberedLine // or a line in bold
	bulletLine
)

// A row is a line of an outline, read.
type row struct {
	kind   lineKind
	depth  int // of a heading, from 1; of 1.2.3, 3; zero where the indent tells
	indent int // columns
	text   string
	cites  []int
}

// Parse reads an outline: Markdown headings with list items below them; or,
// where there are none, numbered or indented lists. The problems are of
// citations that are no numbers and of what was too much; Check finds the rest.
func Parse(text string) (*Outline, []Problem) {
	p := &parser{out: &Outline{}}
	if len(text) > MaxBytes {
		p.tooLarge(fmt.Sprintf("what stands after its first %d bytes is left out", MaxBytes))
		text = text[:MaxBytes]
	}
	text = wrapper.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	var rows []row
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := p.row(strings.TrimRight(line, " \t\r")); ok {
			rows = append(rows, r)
		}
	}
	p.build(rows)
	return p.out, p.problems
}

// A parser makes an outline of rows.
type parser struct {
	out      *Outline
	problems []Problem
	told     map[string]bool // what was said of size
	stack    []open
	sections int
}

// An open section may still get parts.
type open struct {
	section *Section
	row     row
}

func (p *parser) tooLarge(words string) {
	if p.told == nil {
		p.told = map[string]bool{}
	}
	if !p.told[words] {
		p.told[words] = true
		p.problems = append(p.problems, Problem{Kind: TooLarge, Text: words})
	}
}

// row reads a line; there is nothing in an empty one, nor in a rule.
func (p *parser) row(line string) (row, bool) {
	if len(line) > maxLine {
		p.tooLarge(fmt.Sprintf("lines are cut after %d bytes", maxLine))
		line = strings.ToValidUTF8(line[:maxLine], "")
	}
	var r row
	body := strings.TrimLeft(line, " \t")
	for _, c := range line[:len(line)-len(body)] {
		if r.indent++; c == '\t' {
			r.indent += 3
		}
	}
	if fenced.MatchString(body) || rule.MatchString(body) {
		return row{}, false
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		r.kind, r.depth, body = headingLine, len(m[1]), m[2]
	} else if m := bullet.FindString(body); m != "" {
		r.kind, body = bulletLine, body[len(m):]
	}
	if m := numbered.FindStringSubmatchIndex(body); m != nil && r.kind != headingLine {
		if r.kind = numberedLine; m[4] >= 0 {
			r.depth = strings.Count(body[m[4]:m[5]], ".") + 1
		} else if m[2] >= 0 && strings.Contains(body[m[2]:m[3]], ".") {
			r.depth = strings.Count(body[m[2]:m[3]], ".") + 1
		}
	}
	if r.kind != headingLine && bold.MatchString(strings.TrimSpace(cite.Strip(body))) {
		r.kind = numberedLine
	}
	body, bad := p.cites(&r, body)
	most := MaxNote
	if r.kind == headingLine || r.kind == numberedLine {
		most = MaxTitle
	}
	r.text = p.cut(body, most)
	for _, word := range bad {
		p.problems = append(p.problems, Problem{Kind: BadCitation, Section: p.cut(r.text, 80), Text: word})
	}
	return r, r.text != "" || len(r.cites) > 0
}

// cites takes the citations out of a line and cleans it, and gives what is left.
func (p *parser) cites(r *row, body string) (left string, bad []string) {
	for again := 0; ; again++ { // what is left may be a citation again, or a mark
		body = clean(body)
		marks := cite.Find(body)
		if len(marks) == 0 {
			break
		}
		for _, m := range marks {
			r.cites, bad = union(r.cites, m.Numbers), append(bad, m.Bad...)
		}
		if body = cite.Strip(body); again == 20 {
			body = strings.NewReplacer("<", "", "[", "", "【", "").Replace(body)
		}
	}
	if n := cite.MaxNumbers; len(r.cites) > n {
		r.cites = r.cites[:n]
		p.tooLarge(fmt.Sprintf("a point cites more than %d summaries", n))
	}
	return body, bad
}

// clean takes off what only marks a line as a title or a point. A line that has
// too many marks says nothing: a model has gone on with them for ever.
func clean(text string) string {
	for range maxMarks {
		before := text
		text = strings.Join(strings.Fields(text), " ")
		text = closing.ReplaceAllString(text[len(leading.FindString(text)):], "")
		if m := numbered.FindStringSubmatchIndex(text); m != nil {
			end := m[1]
			if m[6] >= 0 { // the letter behind 1.2 is the text's
				end = m[6]
			}
			text = text[end:]
		}
		if m := bold.FindStringSubmatch(text); m != nil {
			text = m[1] + m[2]
		}
		if rule.MatchString(text) {
			text = ""
		}
		if text == before {
			return text
		}
	}
	return ""
}

// cut bounds a text in characters.
func (p *parser) cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	if most >= MaxTitle {
		p.tooLarge(fmt.Sprintf("titles are cut after %d characters and points after %d", MaxTitle, MaxNote))
	}
	return strings.TrimSpace(string([]rune(text)[:most-1])) + "…"
}

// build makes the tree.
func (p *parser) build(rows []row) {
	headings, numbers, items := 0, 0, 0
	for _, r := range rows {
		switch r.kind {
		case headingLine:
			headings++
		case numberedLine:
			numbers++
			items++
		case bulletLine:
			items++
		}
	}
	titled := len(rows) > 1 && rows[0].kind == headingLine && rows[0].text != ""
	switch {
	case titled && headings == 1 && (rows[0].depth == 1 && items > 0 || numbers > 0):
		p.out.Title, p.out.Cites = rows[0].text, rows[0].cites
		p.list(rows[1:], numbers > 0)
	case headings > 0:
		p.headings(rows)
	case items > 0:
		if rows[0].kind == proseLine && utf8.RuneCountInString(rows[0].text) <= MaxTitle && rows[0].text != "" {
			p.out.Title, p.out.Cites = strings.TrimRight(rows[0].text, ":： "), rows[0].cites
			rows = rows[1:]
		}
		p.list(rows, numbers > 0)
	default:
		for _, r := range rows {
			p.note(r)
		}
	}
	if o := p.out; o.Title != "" && len(o.Sections) == 0 { // a heading alone is no title of anything
		*o = Outline{Sections: []*Section{{Title: o.Title, Cites: o.Cites, Notes: o.Notes}}}
	}
}

// headings makes each heading a section, and all else points.
func (p *parser) headings(rows []row) {
	first := 0
	for _, r := range rows {
		if r.kind == headingLine && r.depth == 1 {
			first++
		}
	}
	for i, r := range rows {
		switch {
		case r.kind != headingLine:
			p.note(r)
		case first == 1 && r.depth == 1 && r.text != "" && p.sections == 0 && deeper(rows[i+1:]):
			p.out.Title, p.out.Cites = r.text, r.cites
		default:
			for len(p.stack) > 0 && p.stack[len(p.stack)-1].row.depth >= r.depth {
				p.stack = p.stack[:len(p.stack)-1]
			}
			p.section(r)
		}
	}
}

func deeper(rows []row) bool {
	for _, r := range rows {
		if r.kind == headingLine && r.depth > 1 {
			return true
		}
	}
	return false
}

// list makes each numbered line a section; without numbers, each point that is
// not indented. What stands below one is its points.
func (p *parser) list(rows []row, numbers bool) {
	margin := -1
	for _, r := range rows {
		if r.kind == bulletLine && (margin < 0 || r.indent < margin) {
			margin = r.indent
		}
	}
	for _, r := range rows {
		if r.text == "" || numbers && r.kind != numberedLine || !numbers && (r.kind != bulletLine || r.indent > margin) {
			p.note(r)
			continue
		}
		for len(p.stack) > 0 {
			last := p.stack[len(p.stack)-1].row
			if r.depth > 0 && len(p.stack) < r.depth || r.depth == 0 && last.indent < r.indent {
				break
			}
			p.stack = p.stack[:len(p.stack)-1]
		}
		p.section(r)
	}
}

// section opens a section below the open ones.
func (p *parser) section(r row) {
	if p.sections == MaxSections {
		p.tooLarge(fmt.Sprintf("it has more than %d sections", MaxSections))
		p.note(r)
		return
	}
	if r.text == "" {
		r.text = "(no title)"
	}
	s := &Section{Title: r.text, Cites: r.cites}
	if len(p.stack) >= MaxDepth {
		p.tooLarge(fmt.Sprintf("it has more than %d levels", MaxDepth))
		p.stack = p.stack[:MaxDepth-1]
	}
	if len(p.stack) == 0 {
		p.out.Sections = append(p.out.Sections, s)
	} else {
		above := p.stack[len(p.stack)-1].section
		above.Sections = append(above.Sections, s)
	}
	p.sections++
	p.stack = append(p.stack, open{s, r})
}

// note adds a point to the section that is open. Numbers that stand alone are
// those of the point before them, or of the title.
func (p *parser) note(r row) {
	cites, notes := &p.out.Cites, &p.out.Notes
	titled := p.out.Title != ""
	if len(p.stack) > 0 {
		s := p.stack[len(p.stack)-1].section
		cites, notes, titled = &s.Cites, &s.Notes, true
	}
	switch {
	case r.text != "":
		*notes = append(*notes, Note{r.text, r.cites})
		return
	case len(*notes) > 0:
		cites = &(*notes)[len(*notes)-1].Cites
	case !titled: // nothing that they could be of
		return
	}
	*cites = union(*cites, r.cites)
	if len(*cites) > cite.MaxNumbers {
		*cites = (*cites)[:cite.MaxNumbers]
	}
}
