package document

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// pptx reads the slides of a PowerPoint file, in the order in which they are
// shown, with their notes.
func (in input) pptx(w *writer, a *archive) error {
	if !in.inside {
		w.title(a.coreTitle())
	}
	const presentation = "ppt/presentation.xml"
	links, err := a.relations(presentation)
	if err != nil {
		return err
	}
	x, err := a.member(presentation)
	if err != nil {
		return err
	}
	defer x.close()
	n := 0
	return x.each(func(e xml.StartElement) error {
		if e.Name.Local != "sldId" {
			return nil
		}
		n++
		to, ok := links[relation(e, "id")]
		if !ok || a.find(to.path) == nil {
			w.note("Slide %d is not in the file.", n)
			return nil
		}
		if n > maxEntries {
			return fail(ErrTooLarge, "has more than %d slides", maxEntries)
		}
		return slide(w, a, n, to.path, !in.inside)
	})
}

// slide writes a slide. The title of the first one is that of the document
// where it has none.
func slide(w *writer, a *archive, n int, path string, titles bool) error {
	title, blocks, err := shapes(a, path)
	if err != nil {
		return err
	}
	if err := w.part(fmt.Sprintf("slide %d", n)); err != nil {
		return err
	}
	head := fmt.Sprintf("## Slide %d", n)
	if title != "" {
		head += ": " + title
	}
	if n == 1 && titles {
		w.title(title)
	}
	for _, b := range append([]string{head}, blocks...) {
		if err := w.block(b); err != nil {
			return err
		}
	}
	links, err := a.relations(path)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.kind != "notesSlide" || l.external || a.find(l.path) == nil {
			continue
		}
		_, notes, err := shapes(a, l.path)
		if err != nil {
			return err
		}
		text := "\n" + strings.Join(notes, "\n")
		if text = line(strings.ReplaceAll(text, "\n- ", "\n")); text != "" {
			return w.block("Notes: " + text)
		}
		break // there is one at most
	}
	return nil
}

// shapes reads the texts of a slide: its title, and a block for each shape and
// each table. Numbers of pages, dates and footers are none.
func shapes(a *archive, path string) (title string, blocks []string, err error) {
	x, err := a.member(path)
	if x == nil || err != nil {
		return "", nil, err
	}
	defer x.close()
	err = x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "sp":
			kind, text, err := shape(x)
			switch {
			case err != nil:
				return err
			case kind == "sldNum" || kind == "dt" || kind == "ftr" || kind == "hdr" || kind == "sldImg":
			case (kind == "title" || kind == "ctrTitle") && title == "":
				title = line(text)
			default:
				blocks = append(blocks, text)
			}
		case "tbl":
			text, err := grid(x)
			blocks = append(blocks, text)
			return err
		case "Fallback":
			return x.skip()
		}
		return nil
	})
	return title, blocks, err
}

// shape reads the shape that was just begun: what place it holds on the slide,
// and its paragraphs as lines, those of an outline indented.
func shape(x *xmlReader) (kind, text string, err error) {
	var b strings.Builder
	err = x.within(func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		switch e.Name.Local {
		case "ph":
			kind = attr(e, "type")
			if kind == "" {
				kind = "body"
			}
		case "p":
			level, s, err := run(x)
			if err != nil {
				return err
			}
			if s = strings.TrimSpace(s); s == "" {
				return nil
			}
			if kind == "body" || level > 0 {
				s = strings.Repeat("  ", level) + "- " + s
			}
			b.WriteString(s + "\n")
		}
		return nil
	})
	return kind, b.String(), err
}

// run reads the paragraph that was just begun.
func run(x *xmlReader) (level int, text string, err error) {
	var b strings.Builder
	err = x.within(func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		switch e.Name.Local {
		case "pPr":
			if l := attr(e, "lvl"); len(l) == 1 && l[0] >= '0' && l[0] <= '8' {
				level = int(l[0] - '0')
			}
		case "t":
			s, err := x.chars()
			b.WriteString(s)
			return err
		case "br":
			b.WriteByte(' ')
		}
		return nil
	})
	return level, b.String(), err
}

// grid reads the table that was just begun.
func grid(x *xmlReader) (string, error) {
	t := writer{max: maxEntry}
	first := true
	var row []string
	err := x.within(func(token xml.Token) error {
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "tr":
				row = nil
			case "tc":
				_, text, err := shape(x)
				row = append(row, strings.TrimSpace(text))
				return err
			}
		case xml.EndElement:
			if e.Name.Local == "tr" && len(row) > 0 {
				err := t.row(row, first)
				first = false
				return err
			}
		}
		return nil
	})
	return t.text.String(), err
}
