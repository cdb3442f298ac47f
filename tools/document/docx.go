package document

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
)

// maxAddress is the longest address of a link that is written out.
const maxAddress = 2000

// A word is a docx file that is read.
type word struct {
	*writer
	links    map[string]target
	headings map[string]int             // levels by the id of the style
	items    map[string]string          // the lists that styles belong to
	lists    map[string]map[string]bool // whether a level of a list has numbers
}

// docx reads a Word file: headings, paragraphs, lists, tables, links and notes.
// Deleted text of a tracked change is not there, inserted text is.
func (in input) docx(w *writer, a *archive) error {
	if !in.inside {
		w.title(a.coreTitle())
	}
	d := word{writer: w, headings: map[string]int{}, items: map[string]string{}, lists: map[string]map[string]bool{}}
	var err error
	if d.links, err = a.relations("word/document.xml"); err != nil {
		return err
	}
	if err := d.styles(a); err != nil {
		return err
	}
	if err := d.numbering(a); err != nil {
		return err
	}
	x, err := a.member("word/document.xml")
	if err != nil {
		return err
	}
	defer x.close()
	if err := d.blocks(x); err != nil {
		return err
	}
	return d.notes(a)
}

// styles finds the headings by the names of the styles, which are English in
// every language: "heading 1", "Title". Styles of lists name the list.
func (d *word) styles(a *archive) error {
	x, err := a.member("word/styles.xml")
	if x == nil || err != nil {
		return err
	}
	defer x.close()
	id := ""
	return x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "style":
			id = attr(e, "styleId")
		case "name":
			name := strings.ToLower(attr(e, "val"))
			if n, err := strconv.Atoi(strings.TrimPrefix(name, "heading ")); err == nil && n >= 1 && n <= 9 {
				d.headings[id] = min(n, 6)
			} else if name == "title" {
				d.headings[id] = 1
			}
		case "numId":
			d.items[id] = attr(e, "val")
		}
		return nil
	})
}

// numbering tells lists with numbers from those with dots.
func (d *word) numbering(a *archive) error {
	x, err := a.member("word/numbering.xml")
	if x == nil || err != nil {
		return err
	}
	defer x.close()
	abstract, num, level := "", "", ""
	formats := map[string]map[string]bool{}
	return x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "abstractNum":
			abstract = attr(e, "abstractNumId")
			formats[abstract] = map[string]bool{}
		case "lvl":
			level = attr(e, "ilvl")
		case "numFmt":
			if f := attr(e, "val"); num == "" && formats[abstract] != nil {
				formats[abstract][level] = f != "bullet" && f != "none"
			}
		case "num":
			num = attr(e, "numId")
		case "abstractNumId":
			d.lists[num] = formats[attr(e, "val")]
		}
		return nil
	})
}

// blocks writes the paragraphs and tables of a part.
func (d *word) blocks(x *xmlReader) error {
	return x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			p, err := d.paragraph(x)
			if err != nil {
				return err
			}
			return d.put(p)
		case "tbl":
			return d.tabular(x)
		case "Fallback": // the same once more, for old programs
			return x.skip()
		}
		return nil
	})
}

// A paragraph is one of a docx file.
type paragraph struct {
	text  string
	level int // of a heading, from 1
	list  bool
	item  string // the marker of a list's item
	depth int    // of the list, from 0
}

// put writes a paragraph. The items of a list stand line by line.
func (d *word) put(p paragraph) error {
	text := strings.TrimSpace(p.text)
	switch {
	case text == "":
		return nil
	case p.level > 0:
		return d.block(strings.Repeat("#", p.level) + " " + line(text))
	case p.list:
		indent := strings.Repeat("  ", p.depth)
		item := indent + p.item + " " + strings.ReplaceAll(text, "\n", "\n"+indent+"  ") + "\n"
		if before := lastLine(d.writer.text.String()); !strings.HasPrefix(before, "- ") && !strings.HasPrefix(before, "1. ") {
			if err := d.gap(); err != nil {
				return err
			}
		}
		return d.write(item)
	}
	return d.block(text)
}

// lastLine is the last line of a text that ends in a newline, without its
// indentation.
func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return strings.TrimLeft(text[strings.LastIndexByte(text, '\n')+1:], " ")
}

// paragraph reads the paragraph that was just begun.
func (d *word) paragraph(x *xmlReader) (paragraph, error) {
	var p paragraph
	numID, level := "", "0"
	text := new(strings.Builder)
	var read func(xml.Token) error
	read = func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		switch e.Name.Local {
		case "pStyle":
			p.level = d.headings[attr(e, "val")]
			numID = d.items[attr(e, "val")]
		case "outlineLvl":
			if n, err := strconv.Atoi(attr(e, "val")); err == nil && n >= 0 && n < 9 {
				p.level = min(n+1, 6)
			}
		case "ilvl":
			level = attr(e, "val")
		case "numId":
			numID = attr(e, "val")
		case "t":
			s, err := x.chars()
			text.WriteString(s)
			return err
		case "tab":
			text.WriteByte('\t')
		case "tabs", "Fallback", "del", "moveFrom":
			return x.skip()
		case "br", "cr":
			text.WriteByte('\n')
		case "noBreakHyphen":
			text.WriteByte('-')
		case "footnoteReference", "endnoteReference":
			text.WriteString("[^" + attr(e, "id") + "]")
		case "hyperlink":
			outer := text
			text = new(strings.Builder)
			err := x.within(read)
			words := text.String()
			text = outer
			if l := d.links[relation(e, "id")]; l.external && len(l.path) <= maxAddress && strings.TrimSpace(words) != "" {
				words = "[" + words + "](" + l.path + ")"
			}
			text.WriteString(words)
			return err
		case "p": // of a text box
			inner, err := d.paragraph(x)
			text.WriteString("\n" + inner.text + "\n")
			return err
		}
		return nil
	}
	if err := x.within(read); err != nil {
		return p, err
	}
	p.text = text.String()
	if numID != "" && numID != "0" && p.level == 0 {
		p.list, p.item = true, "-"
		if d.lists[numID][level] {
			p.item = "1."
		}
		p.depth, _ = strconv.Atoi(level)
		p.depth = max(0, min(p.depth, 8))
	}
	return p, nil
}

// tabular writes the table that was just begun.
func (d *word) tabular(x *xmlReader) error {
	if err := d.gap(); err != nil {
		return err
	}
	first := true
	var row []string
	return x.within(func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "tr":
				row = nil
			case "tc":
				text, span, err := d.cell(x)
				row = append(row, text)
				for ; span > 1 && len(row) < maxColumns; span-- {
					row = append(row, "")
				}
				return err
			}
		case xml.EndElement:
			if t.Name.Local == "tr" && len(row) > 0 {
				err := d.row(row, first)
				first = false
				return err
			}
		}
		return nil
	})
}

// cell reads the cell that was just begun. A table inside is its text.
func (d *word) cell(x *xmlReader) (text string, span int, err error) {
	var lines []string
	err = x.within(func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		switch e.Name.Local {
		case "gridSpan":
			span, _ = strconv.Atoi(attr(e, "val"))
			span = min(span, 64)
		case "p":
			p, err := d.paragraph(x)
			if s := strings.TrimSpace(p.text); s != "" {
				lines = append(lines, s)
			}
			return err
		case "Fallback":
			return x.skip()
		}
		return nil
	})
	return strings.Join(lines, "\n"), span, err
}

// notes writes the footnotes and endnotes after the text.
func (d *word) notes(a *archive) error {
	for _, name := range []string{"word/footnotes.xml", "word/endnotes.xml"} {
		x, err := a.member(name)
		if err != nil {
			return err
		}
		if x == nil {
			continue
		}
		err = x.each(func(e xml.StartElement) error {
			if e.Name.Local != "footnote" && e.Name.Local != "endnote" || attr(e, "type") != "" && attr(e, "type") != "normal" {
				return nil
			}
			text, _, err := d.cell(x)
			if err != nil || text == "" {
				return err
			}
			return d.block("[^" + attr(e, "id") + "]: " + line(text))
		})
		x.close()
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}
