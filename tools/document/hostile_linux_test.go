package document

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A hostile file is one that somebody made to hurt its reader.
type hostile struct {
	name string // of the file
	why  string
	data func(testing.TB) []byte
	// want is the error, nil where the file may as well be read.
	want error
	// says is in the error or in a note.
	says string
}

func text(s string) func(testing.TB) []byte {
	return func(testing.TB) []byte { return []byte(s) }
}

var hostiles = []hostile{
	// Archives.
	{"zeros.zip", "a file of zeros", func(t testing.TB) []byte {
		return zipOf(t, entry{"zeros.txt", strings.Repeat("0", n(1<<30, 65<<20))})
	}, ErrEmpty, "larger than 64 MiB"},
	{"many.zip", "more files than are opened", func(t testing.TB) []byte {
		return zipOf(t, make([]entry, 2001)...)
	}, ErrTooLarge, "more than 2000 files"},
	{"overlap.zip", "files that lie on top of each other", overlapping, ErrTooLarge, "unpacks to more than 200 MiB"},
	{"nested.zip", "archives in archives", func(t testing.TB) []byte {
		inner := zipOf(t, entry{"a.txt", "inside"})
		for range 10 {
			inner = zipOf(t, entry{"a.zip", string(inner)})
		}
		return inner
	}, ErrEmpty, "an archive inside an archive"},
	{"outside.zip", "names that lead outside", func(t testing.TB) []byte {
		return zipOf(t, entry{"../../etc/passwd", "root"}, entry{"/etc/passwd", "root"}, entry{`..\..\passwd`, "root"}, entry{"a.txt", "fine"})
	}, nil, "leads outside"},
	{"sizes.zip", "sizes that are not true", func(t testing.TB) []byte {
		data := zipOf(t, entry{"a.txt", strings.Repeat("a", 1000)})
		at := bytes.Index(data, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(data[at+24:], 1<<31)
		return data
	}, ErrEmpty, "damaged"},
	{"count.zip", "a count of files that is not true", func(t testing.TB) []byte {
		data := zipOf(t, entry{"a.txt", "a"})
		at := bytes.Index(data, []byte("PK\x05\x06"))
		binary.LittleEndian.PutUint16(data[at+8:], 65534)
		binary.LittleEndian.PutUint16(data[at+10:], 65534)
		return data
	}, ErrDamaged, "damaged"},
	{"broken.zip", "nothing after the first bytes", text("PK\x03\x04 and no more"), ErrDamaged, "damaged archive"},

	// XML.
	{"laughs.docx", "entities of entities", func(t testing.TB) []byte {
		var b strings.Builder
		b.WriteString(`<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a0 "ha">`)
		for i := range 30 {
			fmt.Fprintf(&b, `<!ENTITY a%d "&a%d;&a%d;">`, i+1, i, i)
		}
		b.WriteString(`]><w:document><w:body><w:p><w:r><w:t>&a30;</w:t></w:r></w:p></w:body></w:document>`)
		return zipOf(t, entry{"word/document.xml", b.String()})
	}, ErrDamaged, "DOCTYPE"},
	{"outside.docx", "an entity that is a file", func(t testing.TB) []byte {
		return zipOf(t, entry{"word/document.xml", `<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]><w>&x;</w>`})
	}, ErrDamaged, "DOCTYPE"},
	{"deep.docx", "elements in elements", func(t testing.TB) []byte {
		return docxOf(t, strings.Repeat("<w:p>", n(1_000_000, 100_000)))
	}, ErrDamaged, "nested deeper than 256"},
	{"long.docx", "a paragraph without end", func(t testing.TB) []byte {
		return docxOf(t, "<w:p><w:r>"+strings.Repeat("<w:t>abcdefgh</w:t>", n(5_000_000, 50_000))+"</w:r></w:p>")
	}, nil, ""},
	{"spaces.docx", "a tag of a gigabyte", func(t testing.TB) []byte {
		return docxOf(t, "<w:p"+strings.Repeat(" ", n(1<<30, 10<<20)))
	}, nil, ""},
	{"attribute.docx", "an attribute of a gigabyte", func(t testing.TB) []byte {
		return docxOf(t, `<w:p a="`+strings.Repeat("a", n(1<<30, 20<<20)))
	}, nil, ""},
	{"attributes.docx", "a million attributes", func(t testing.TB) []byte {
		return docxOf(t, "<w:p"+strings.Repeat(` a="a"`, n(10_000_000, 100_000))+"></w:p>")
	}, nil, ""},
	{"links.docx", "links in links", func(t testing.TB) []byte {
		return docxOf(t, "<w:p>"+strings.Repeat(`<w:hyperlink r:id="rId1"><w:r><w:t>x</w:t></w:r>`, 250)+strings.Repeat("</w:hyperlink>", 250)+"</w:p>",
			entry{"word/_rels/document.xml.rels", relsOf([2]string{"hyperlink", "http://" + strings.Repeat("a", 1<<20)})})
	}, nil, ""},
	{"span.docx", "cells over a million columns", func(t testing.TB) []byte {
		return docxOf(t, "<w:tbl><w:tr>"+strings.Repeat(`<w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>`, 1000)+"</w:tr></w:tbl>")
	}, nil, ""},

	// Sheets and slides.
	{"columns.xlsx", "a million columns", func(t testing.TB) []byte {
		return xlsxOf(t, "<row>"+strings.Repeat("<c><v>1</v></c>", 1_000_000)+"</row>", "")
	}, ErrTooLarge, "more than 16384 columns"},
	{"far.xlsx", "a cell that is far away", func(t testing.TB) []byte {
		return xlsxOf(t, `<row><c r="ZZZZZZZZZZZZZZZZ1"><v>1</v></c></row>`, "")
	}, ErrTooLarge, "more than 16384 columns"},
	{"sparse.xlsx", "rows of one cell at the far end", func(t testing.TB) []byte {
		return xlsxOf(t, strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, n(1_000_000, 10_000)), "")
	}, nil, "longer than 8 MiB"},
	{"strings.xlsx", "more strings than there is memory", func(t testing.TB) []byte {
		return xlsxOf(t, "<row><c><v>1</v></c></row>", strings.Repeat("<si><t>a</t></si>", n(10_000_000, 100_000)))
	}, nil, ""},
	{"string.xlsx", "a string that is not there", func(t testing.TB) []byte {
		return xlsxOf(t, `<row><c t="s"><v>-1</v></c></row>`, "")
	}, ErrDamaged, "which is not there"},
	{"self.pptx", "a slide that is the presentation", func(t testing.TB) []byte {
		return pptxOf(t, strings.Repeat(`<p:sldId r:id="rId1"/>`, 100), relsOf([2]string{"slide", "presentation.xml"}))
	}, nil, ""},
	{"slides.pptx", "one slide, a hundred thousand times", func(t testing.TB) []byte {
		return pptxOf(t, strings.Repeat(`<p:sldId r:id="rId1"/>`, 100_000), relsOf([2]string{"slide", "slides/slide1.xml"}),
			entry{"ppt/slides/slide1.xml", slideOf("Again", "")})
	}, ErrTooLarge, "more than 2000 slides"},

	// PDFs.
	{"kids.pdf", "a tree of pages that is a circle", func(testing.TB) []byte {
		return pdfOf("", pdfCatalog, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000000 >>")
	}, nil, ""},
	{"table.pdf", "a table that follows itself", func(testing.TB) []byte {
		data := pdfOf("/Prev 9", pdfCatalog, "<< /Type /Pages /Kids [] /Count 0 >>")
		return bytes.Replace(data, []byte("/Prev 9"), fmt.Appendf(nil, "/Prev %d", bytes.Index(data, []byte("xref\n"))), 1)
	}, nil, ""},
	{"flate.pdf", "a page that unpacks to a gigabyte", func(testing.TB) []byte {
		return pdfOf("", pdfCatalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
			"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
			stream(strings.Repeat("BT /F1 9 Tf (a) Tj ET\n", n(50_000_000, 200_000)), true), pdfFont)
	}, nil, ""},
	{"length.pdf", "a stream that says it is huge", func(testing.TB) []byte {
		return pdfOf("", pdfCatalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
			"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>", "<< /Length 99999999999999 >>\nstream\nBT\nendstream")
	}, nil, ""},
	{"deep.pdf", "arrays in arrays", func(testing.TB) []byte {
		return pdfOf("", "<< /Type /Catalog /Pages "+strings.Repeat("[", n(5_000_000, 100_000)))
	}, nil, ""},
	{"broken.pdf", "nothing after the first bytes", text("%PDF-1.4 and no more"), ErrDamaged, ""},
	{"objects.pdf", "an object that is itself", func(testing.TB) []byte {
		return pdfOf("", "<< /Type /Catalog /Pages 2 0 R >>", "2 0 R")
	}, nil, ""},

	// Tables and pages.
	{"line.csv", "a line of 60 MB", func(testing.TB) []byte { return bytes.Repeat([]byte("a"), 60<<20) }, ErrTooLarge, "longer than 4 MiB"},
	{"huge.csv", "a line of 100 MB", func(testing.TB) []byte { return bytes.Repeat([]byte("a"), 100<<20) }, ErrTooLarge, "larger than 64 MiB"},
	{"columns.csv", "a million columns", func(testing.TB) []byte { return bytes.Repeat([]byte("a,"), 1_000_000) }, ErrTooLarge, "more than 16384 columns"},
	{"quote.csv", "a quote that is never closed", func(testing.TB) []byte {
		return append([]byte(`a,"`), bytes.Repeat([]byte("a line\n"), n(8<<20, 1<<20))...)
	}, ErrTooLarge, "longer than 4 MiB"},
	{"empty.csv", "rows without columns", func(testing.TB) []byte { return bytes.Repeat([]byte("\n"), n(60<<20, 4<<20)) }, ErrEmpty, ""},
	{"deep.html", "a million tags in each other", func(testing.TB) []byte {
		return []byte(strings.Repeat("<div>", 1_000_000) + "the end")
	}, nil, "bare text"},
	{"lists.html", "500 lists in each other", func(testing.TB) []byte {
		return []byte(strings.Repeat("<ul><li>x", n(250, 40)))
	}, nil, ""},
	{"quotes.html", "quotations in each other, and much in them", func(testing.TB) []byte {
		return []byte(strings.Repeat("<blockquote>", 450) + strings.Repeat("x<br>", n(1_000_000, 500)))
	}, nil, ""},
	{"wide.html", "a million tags beside each other", func(testing.TB) []byte {
		return []byte(strings.Repeat("<p>a</p>", n(1_500_000, 20_000)))
	}, nil, ""},
	{"formats.html", "tags that are closed in the wrong order", func(testing.TB) []byte {
		return []byte(strings.Repeat("<b><i><a><p>", n(200_000, 2_000)) + strings.Repeat("</b></i></a></p>", n(200_000, 2_000)))
	}, nil, ""},
	{"attributes.html", "a million attributes", func(testing.TB) []byte {
		var b strings.Builder
		b.WriteString("<p ")
		for i := range n(1_000_000, 20_000) {
			fmt.Fprintf(&b, "a%d=1 ", i)
		}
		return []byte(b.String() + ">end</p>")
	}, nil, ""},
	{"table.html", "a cell over a billion columns", text("<table><tr><td colspan=1000000000 rowspan=1000000000>a</td><td>b</td></tr></table>"), nil, ""},
	{"entities.html", "many entities", func(testing.TB) []byte {
		return bytes.Repeat([]byte("&CounterClockwiseContourIntegral;"), n(400_000, 100_000))
	}, nil, ""},
	{"brackets.html", "what Markdown has to escape", func(testing.TB) []byte {
		return []byte("<p>" + strings.Repeat("[*_`\\<>#", n(1_000_000, 2_000)))
	}, nil, ""},

	// Text.
	{"latin.html", "an encoding that is not the one that is named", text("<meta charset=utf-8><p>Gr\xfc\xdfe\xff\xfe\xfd"), nil, ""},
	{"half.txt", "half of a character of UTF-16", text("\xff\xfea\x00\x00\xd8b\x00c"), nil, ""},
	{"mark.txt", "a byte order mark and nothing else", text("\xef\xbb\xbf"), ErrEmpty, ""},
	{"control.txt", "nothing but control characters", func(testing.TB) []byte { return bytes.Repeat([]byte{1, 2, 3, 27}, 100) }, ErrUnsupported, ""},
	{"zeros.txt", "nothing but zeros", func(testing.TB) []byte { return make([]byte, 1<<20) }, ErrUnsupported, ""},
	{"deep.json", "arrays in arrays", func(testing.TB) []byte { return bytes.Repeat([]byte("["), 20<<20) }, nil, "longer than 8 MiB"},
	{"picture.png", "a picture", text("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), ErrUnsupported, "image/png"},
	{"nothing.pdf", "no bytes", text(""), ErrEmpty, "is empty"},
}

// overlapping is an archive of a thousand files that are the same packed bytes.
func overlapping(t testing.TB) []byte {
	one := zipOf(t, entry{"a.bin", strings.Repeat("\x00", 1<<20)})
	at := bytes.Index(one, []byte("PK\x01\x02"))
	end := bytes.Index(one, []byte("PK\x05\x06"))
	data := bytes.Clone(one[:at])
	data = append(data, bytes.Repeat(one[at:end], 1000)...)
	tail := bytes.Clone(one[end:])
	binary.LittleEndian.PutUint16(tail[8:], 1000)
	binary.LittleEndian.PutUint16(tail[10:], 1000)
	binary.LittleEndian.PutUint32(tail[12:], uint32(1000*(end-at)))
	return append(data, tail...)
}

// TestHostile: whatever a file is, this process lives, the child holds its
// memory and its time, and an error is one clear sentence. PDFs are read once
// more without pdftotext.
func TestHostile(t *testing.T) {
	o := Options{Executable: child(t)}
	if !thorough {
		o.Timeout = 2 * time.Minute // a busy machine; a slice needs a second
	}
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) { try(t, h, o) })
	}
	for _, h := range hostiles {
		if strings.HasSuffix(h.name, ".pdf") && h.name != "nothing.pdf" {
			t.Run("without pdftotext "+h.name, func(t *testing.T) {
				t.Setenv("PATH", "")
				h.says = ""
				o := o
				if h.want == nil && !thorough {
					o.Timeout = 3 * time.Second // the Go library goes round in circles, which is to be ended
				}
				try(t, h, o)
			})
		}
	}
}

func try(t *testing.T, h hostile, o Options) {
	data := h.data(t)
	w := watch(t)
	start := time.Now()
	d, err := Parse(context.Background(), h.name, bytes.NewReader(data), o)
	took, peak := time.Since(start), w.stop()
	if err != nil {
		wantClear(t, err)
	}
	switch {
	case thorough && (errors.Is(err, ErrTimeout) || errors.Is(err, ErrMemory)):
	case h.want != nil && !errors.Is(err, h.want):
		t.Errorf("%s: got %v, want %v", h.why, err, h.want)
	case !strings.Contains(fmt.Sprint(err)+strings.Join(d.Notes, " "), h.says):
		t.Errorf("%s: %v %q does not say %q", h.why, err, d.Notes, h.says)
	}
	if peak > DefaultMemory {
		t.Errorf("%s: %s of memory", h.why, size(peak))
	}
	t.Logf("%-16s %8s in, %7.2f s, peak %9s, %d bytes out, %v %q", h.name, size(int64(len(data))), took.Seconds(), size(peak), len(d.Markdown), err, d.Notes)
}
