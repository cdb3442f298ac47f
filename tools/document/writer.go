package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// errFull ends a parser whose text has reached its limit: the rest is not even
// looked at.
var errFull = errors.New("the text is full")

// maxParts and maxNotes keep the lists beside the text small.
const (
	maxParts = 10_000
	maxNotes = 20
	maxTitle = 300
)

// A writer collects the text of a document up to a limit.
type writer struct {
	text strings.Builder
	max  int
	doc  Document // all but the Markdown
	// left counts the notes that are not kept.
	left int
}

// write appends text that is Markdown already. It ends a parser with errFull.
func (w *writer) write(s string) error {
	s = clean(s)
	if room := w.max - w.text.Len(); len(s) > room {
		w.text.WriteString(s[:floor(s, room)])
		return errFull
	}
	w.text.WriteString(s)
	return nil
}

// block appends a paragraph, a heading or a table, with an empty line before.
func (w *writer) block(s string) error {
	s = strings.Trim(s, "\n")
	if strings.TrimSpace(s) == "" {
		return nil
	}
	if err := w.gap(); err != nil {
		return err
	}
	return w.write(s + "\n")
}

// gap makes an empty line unless the text begins here or has one.
func (w *writer) gap() error {
	switch t := w.text.String(); {
	case t == "" || strings.HasSuffix(t, "\n\n"):
		return nil
	case strings.HasSuffix(t, "\n"):
		return w.write("\n")
	}
	return w.write("\n\n")
}

// part begins a page, a slide, a sheet or a file.
func (w *writer) part(name string) error {
	if err := w.gap(); err != nil {
		return err
	}
	if len(w.doc.Parts) < maxParts {
		w.doc.Parts = append(w.doc.Parts, Part{Name: line(name), Offset: w.text.Len()})
	}
	return nil
}

// title names the document, unless it has a name already.
func (w *writer) title(s string) {
	if s = line(s); w.doc.Title == "" && s != "" {
		w.doc.Title = s[:floor(s, maxTitle)]
	}
}

// note says what is not in the text.
func (w *writer) note(format string, args ...any) {
	if len(w.doc.Notes) < maxNotes {
		w.doc.Notes = append(w.doc.Notes, line(fmt.Sprintf(format, args...)))
		return
	}
	w.left++
}

// document is what was written. A text that was cut says so; other errors are
// those of the parser.
func (w *writer) document(err error) (Document, error) {
	if errors.Is(err, errFull) {
		w.note("The text is longer than %s; the rest is left out.", size(int64(w.max)))
		err = nil
	}
	if err != nil {
		return Document{}, err
	}
	if w.left > 0 {
		w.doc.Notes = append(w.doc.Notes, fmt.Sprintf("%d more things are left out.", w.left))
	}
	d := w.doc
	d.Title = line(d.Title)
	d.Markdown = w.text.String()
	if strings.TrimSpace(d.Markdown) == "" {
		reason := "has no text in it"
		if len(d.Notes) > 0 {
			reason += ": " + strings.Join(d.Notes, " ")
		}
		return Document{}, fail(ErrEmpty, "%s", reason)
	}
	return d, nil
}

// clean makes text valid UTF-8 with Unix newlines and without control
// characters, which a terminal might obey.
func clean(s string) string {
	if plain(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\f' || r == '\v' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufeff':
			return -1
		}
		return r // RuneError for what is no UTF-8
	}, s)
}

// plain reports whether clean has nothing to do, for the common case.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 {
			return false
		}
	}
	return true
}

// line makes one line of a text.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// row writes one row of a Markdown table, the first one with the rule that
// makes it the head.
func (w *writer) row(cells []string, first bool) error {
	var b strings.Builder
	for _, c := range cells {
		if c == "" {
			b.WriteString("|  ")
			continue
		}
		b.WriteString("| ")
		b.WriteString(cell(c))
		b.WriteByte(' ')
	}
	b.WriteString("|\n")
	if first {
		b.WriteString(strings.Repeat("| --- ", len(cells)) + "|\n")
	}
	return w.write(b.String())
}

// cell makes text fit into a cell of a Markdown table.
func cell(s string) string {
	s = strings.TrimSpace(clean(s))
	if strings.ContainsAny(s, "|\n") {
		s = strings.ReplaceAll(s, "|", `\|`)
		s = strings.ReplaceAll(s, "\n", "<br>")
	}
	return s
}

// floor is the last place up to n where no character is cut.
func floor(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
