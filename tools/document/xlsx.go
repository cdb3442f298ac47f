package document

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// A workbook is an xlsx file that is read.
type workbook struct {
	*writer
	*archive
	strings []string
	formats []string // by the number of a cell's style
	epoch   float64  // the days that dates count from, less those of 1900
}

// xlsx reads the sheets of an Excel file row by row, with the values that
// Excel has stored for formulas. It is read here, with encoding/xml: excelize
// alone would add a quarter to the time that the command takes to build.
func (in input) xlsx(w *writer, a *archive) error {
	if !in.inside {
		w.title(a.coreTitle())
	}
	const book = "xl/workbook.xml"
	links, err := a.relations(book)
	if err != nil {
		return err
	}
	b := workbook{writer: w, archive: a}
	for _, l := range links {
		switch {
		case l.external:
		case l.kind == "sharedStrings":
			err = b.sharedStrings(l.path)
		case l.kind == "styles":
			err = b.styles(l.path)
		}
		if err != nil {
			return err
		}
	}
	type sheet struct{ name, path string }
	var sheets []sheet
	x, err := a.member(book)
	if err != nil {
		return err
	}
	defer x.close()
	err = x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			if v := attr(e, "date1904"); v == "1" || v == "true" {
				b.epoch = 1462
			}
		case "sheet":
			to := links[relation(e, "id")]
			if to.kind == "worksheet" && len(sheets) < maxEntries {
				sheets = append(sheets, sheet{attr(e, "name"), to.path})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range sheets {
		if err := b.sheet(s.name, s.path); err != nil {
			return err
		}
	}
	return nil
}

// maxStrings bounds the texts that a workbook shares, in bytes with what Go
// needs for each.
const maxStrings = 100 << 20

// sharedStrings reads the texts that cells name by their number. The readings
// of East Asian words, which stand beside them, are left out.
func (b *workbook) sharedStrings(path string) error {
	x, err := b.member(path)
	if x == nil || err != nil {
		return err
	}
	defer x.close()
	total := 0
	return x.each(func(e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		s, err := richText(x)
		if total += len(s) + 16; total > maxStrings {
			return fail(ErrTooLarge, "has more than %s of text in its cells", size(maxStrings))
		}
		b.strings = append(b.strings, s)
		return err
	})
}

// richText is the text of the element that was just begun, which may be cut
// into runs.
func richText(x *xmlReader) (string, error) {
	var b strings.Builder
	err := x.within(func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		switch {
		case ok && e.Name.Local == "rPh":
			return x.skip()
		case ok && e.Name.Local == "t":
			s, err := x.chars()
			b.WriteString(s)
			return err
		}
		return nil
	})
	return b.String(), err
}

// styles reads how the numbers of cells are shown.
func (b *workbook) styles(path string) error {
	x, err := b.member(path)
	if x == nil || err != nil {
		return err
	}
	defer x.close()
	custom := map[string]string{}
	return x.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			custom[attr(e, "numFmtId")] = attr(e, "formatCode")
		case "cellXfs":
			return x.within(func(t xml.Token) error {
				e, ok := t.(xml.StartElement)
				if !ok || e.Name.Local != "xf" {
					return nil
				}
				id := attr(e, "numFmtId")
				code, ok := custom[id]
				if !ok {
					n, _ := strconv.Atoi(id)
					code = builtinFormats[n]
				}
				b.formats = append(b.formats, code)
				return nil
			})
		}
		return nil
	})
}

// sheet writes a sheet as a table. Rows and columns before the first value
// are not there; the letters of the columns would say nothing to a reader.
func (b *workbook) sheet(name, path string) error {
	x, err := b.member(path)
	if err != nil {
		return err
	}
	if x == nil {
		b.note("The sheet %s is not in the file.", name)
		return nil
	}
	defer x.close()
	if err := b.part(name); err != nil {
		return err
	}
	if err := b.block("## " + line(name)); err != nil {
		return err
	}
	first := true
	return x.each(func(e xml.StartElement) error {
		if e.Name.Local != "row" {
			return nil
		}
		cells, err := b.cells(x)
		if err != nil || len(cells) == 0 {
			return err
		}
		if first {
			err = b.gap()
		}
		if err == nil {
			err = b.row(cells, first)
		}
		first = false
		return err
	})
}

// cells reads the row that was just begun, without the empty cells at its end.
func (b *workbook) cells(x *xmlReader) ([]string, error) {
	var row []string
	column := 0
	err := x.within(func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "c" {
			return nil
		}
		if n := columnOf(attr(e, "r")); n >= 0 {
			column = n
		}
		if column >= maxColumns {
			return fail(ErrTooLarge, "has a row with more than %d columns", maxColumns)
		}
		value, err := b.value(x, attr(e, "t"), attr(e, "s"))
		if err != nil {
			return err
		}
		if value != "" {
			for len(row) <= column {
				row = append(row, "")
			}
			row[column] = value
		}
		column++
		return nil
	})
	return row, err
}

// columnOf is the column of a reference such as "AB12", from 0; -1 for none,
// and past every bound for what is none of Excel's.
func columnOf(ref string) int {
	n := 0
	for i := range len(ref) {
		c := ref[i] &^ 0x20
		if c < 'A' || c > 'Z' {
			break
		}
		if n = n*26 + int(c-'A') + 1; n > maxColumns {
			return n
		}
	}
	return n - 1
}

// value reads the cell that was just begun.
func (b *workbook) value(x *xmlReader, kind, style string) (string, error) {
	v, inline := "", ""
	err := x.within(func(t xml.Token) (err error) {
		if e, ok := t.(xml.StartElement); ok {
			switch e.Name.Local {
			case "v":
				v, err = x.chars()
			case "is":
				inline, err = richText(x)
			case "f":
				err = x.skip()
			}
		}
		return err
	})
	if err != nil {
		return "", err
	}
	switch kind {
	case "inlineStr":
		return inline, nil
	case "s":
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < 0 || n >= len(b.strings) {
			return "", fail(ErrDamaged, "is damaged: a cell names the text %.20q, which is not there", v)
		}
		return b.strings[n], nil
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[v], nil
	case "str", "e", "d":
		return v, nil
	}
	n, _ := strconv.Atoi(style)
	if n >= 0 && n < len(b.formats) {
		return b.number(v, b.formats[n]), nil
	}
	return b.number(v, ""), nil
}
