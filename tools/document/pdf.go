package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"

	"github.com/ledongthuc/pdf"
)

// maxPages bounds a PDF: a tree of pages may lead in circles.
const maxPages = 10_000

// pdftotext is the path of Poppler's command, empty where there is none.
func pdftotext() string {
	path, err := exec.LookPath("pdftotext")
	if err != nil {
		return ""
	}
	return path
}

// pdf reads a PDF with Poppler's pdftotext where there is one, which knows
// every font and encoding, and else with a library.
func (in input) pdf(w *writer) error {
	if in.PDFToText != "" {
		return in.poppler(w)
	}
	r, err := pdf.NewReader(in.data, in.data.Size())
	if err != nil {
		if errors.Is(err, pdf.ErrInvalidPassword) {
			return fail(ErrUnsupported, "is a PDF with a password")
		}
		return fail(ErrDamaged, "is a damaged PDF: %s", line(err.Error()))
	}
	w.title(r.Trailer().Key("Info").Key("Title").Text())
	for n := 1; n <= min(r.NumPage(), maxPages); n++ {
		page := r.Page(n)
		if page.V.IsNull() {
			continue
		}
		text, err := pageText(page)
		if err != nil {
			w.note("Page %d cannot be read to its end: %v.", n, err)
		}
		if err := w.page(n, text); err != nil {
			return err
		}
	}
	return in.scanned(w)
}

// pageText puts the characters of a page into words and lines, by where they
// stand: a PDF has no spaces but those that somebody drew. What was read
// before an error is kept.
func pageText(page pdf.Page) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%.100s", line(fmt.Sprint(r)))
		}
	}()
	var b strings.Builder
	var last pdf.Text
	for _, t := range page.Content().Text {
		if strings.TrimSpace(t.S) == "" && t.S != " " {
			continue
		}
		if b.Len() > 0 {
			size := max(math.Abs(t.FontSize), math.Abs(last.FontSize), 1)
			down, right := last.Y-t.Y, t.X-last.X-last.W
			switch {
			case down > 1.8*size || down < -size:
				b.WriteString("\n\n")
			case math.Abs(down) > size/2:
				b.WriteByte('\n')
			case (right > size/5 || right < -size) && t.S != " " && last.S != " ":
				b.WriteByte(' ')
			}
		}
		b.WriteString(t.S)
		last = t
	}
	return b.String(), nil
}

// page writes one page of a PDF.
func (w *writer) page(n int, text string) error {
	if err := w.part(fmt.Sprintf("page %d", n)); err != nil {
		return err
	}
	var b strings.Builder
	empty := 0
	for l := range strings.SplitSeq(clean(text), "\n") {
		l = strings.TrimRight(l, " \t")
		if l == "" {
			if empty++; empty > 1 {
				continue
			}
		} else {
			empty = 0
		}
		b.WriteString(l + "\n")
	}
	return w.block(b.String())
}

// scanned says why there may be no text.
func (in input) scanned(w *writer) error {
	if strings.TrimSpace(w.text.String()) == "" {
		return fail(ErrEmpty, "is a PDF without text; its pages are probably pictures")
	}
	return nil
}

// poppler reads a PDF with pdftotext, which is part of the child's group and
// has limits of its own. Its head tells the title, form feeds part the pages.
func (in input) poppler(w *writer) error {
	cmd := exec.Command(in.PDFToText, "-enc", "UTF-8", "-eol", "unix", "-htmlmeta", "-", "-")
	cmd.Stdin = io.NewSectionReader(in.data, 0, in.data.Size())
	out := &capped{max: 2*w.max + (1 << 20)}
	var problems capped
	problems.max = maxStderr
	cmd.Stdout, cmd.Stderr = out, &problems
	grandchild.Lock()
	err := cmd.Start()
	if err == nil {
		grandchild.process = cmd.Process
		limitCommand(cmd.Process, in.Memory)
	}
	grandchild.Unlock()
	if err != nil {
		return fail(ErrConverter, "cannot be read: %s", line(err.Error()))
	}
	err = cmd.Wait()
	if err != nil && len(out.b) == 0 {
		return in.popplerError(err, problems.b)
	}
	head, body, _ := bytes.Cut(out.b, []byte("<pre>"))
	if _, rest, ok := bytes.Cut(head, []byte("<title>")); ok {
		title, _, _ := bytes.Cut(rest, []byte("</title>"))
		w.title(string(title))
	}
	if i := bytes.LastIndex(body, []byte("</pre>")); i >= 0 {
		body = body[:i]
	}
	pages := strings.Split(string(body), "\f")
	for i, text := range pages {
		if i == len(pages)-1 && strings.TrimSpace(text) == "" {
			break
		}
		if err := w.page(i+1, strings.TrimPrefix(text, "\n")); err != nil {
			return err
		}
	}
	if err != nil {
		w.note("pdftotext ended early (%v); the rest is left out.", err)
	}
	return in.scanned(w)
}

// popplerError says what pdftotext could not do.
func (in input) popplerError(err error, problems []byte) error {
	words := string(problems)
	first, _, _ := strings.Cut(strings.TrimSpace(words), "\n")
	switch {
	case strings.Contains(words, "Incorrect password"):
		return fail(ErrUnsupported, "is a PDF with a password")
	case strings.Contains(words, "ut of memory"), strings.Contains(words, "bad_alloc"):
		return outOfMemory(in.Memory)
	case first == "":
		first = err.Error()
	}
	return fail(ErrDamaged, "is a damaged PDF: %.200s", line(first))
}

// A capped writer keeps the beginning of what is written and fails after it.
type capped struct {
	b   []byte
	max int
}

func (c *capped) Write(p []byte) (int, error) {
	if n := c.max - len(c.b); n < len(p) {
		c.b = append(c.b, p[:n]...)
		return n, errFull
	}
	c.b = append(c.b, p...)
	return len(p), nil
}
