package document

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"
)

// An entry is a file that a test puts into an archive.
type entry struct{ name, text string }

// zipOf makes an archive.
func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, e := range entries {
		method := zip.Deflate
		if e.text == "" {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: e.name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`
	// The namespaces of Office files.
	wordSpace  = ` xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"`
	sheetSpace = ` xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	slideSpace = ` xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	relSpace   = ` xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
	relType    = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

// relsOf makes the relationships of a part: rId1, rId2, …, each a kind and a
// target, and outside where the target is an address.
func relsOf(targets ...[2]string) string {
	var b strings.Builder
	b.WriteString(xmlHead + "<Relationships" + relSpace + ">")
	for i, t := range targets {
		mode := ""
		if strings.Contains(t[1], "://") {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s%s" Target="%s"%s/>`, i+1, relType, t[0], t[1], mode)
	}
	return b.String() + "</Relationships>"
}

// docxOf makes a Word file of the inside of its body.
func docxOf(t testing.TB, body string, more ...entry) []byte {
	return zipOf(t, append([]entry{
		{"[Content_Types].xml", xmlHead + "<Types/>"},
		{"word/document.xml", xmlHead + "<w:document" + wordSpace + "><w:body>" + body + "</w:body></w:document>"},
	}, more...)...)
}

// xlsxOf makes an Excel file with one sheet of the inside of its sheetData.
func xlsxOf(t testing.TB, rows, sharedStrings string) []byte {
	return zipOf(t,
		entry{"xl/workbook.xml", xmlHead + "<workbook" + sheetSpace + `><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		entry{"xl/_rels/workbook.xml.rels", relsOf([2]string{"worksheet", "worksheets/sheet1.xml"}, [2]string{"sharedStrings", "sharedStrings.xml"})},
		entry{"xl/worksheets/sheet1.xml", xmlHead + "<worksheet" + sheetSpace + "><sheetData>" + rows + "</sheetData></worksheet>"},
		entry{"xl/sharedStrings.xml", xmlHead + "<sst" + sheetSpace + ">" + sharedStrings + "</sst>"},
	)
}

// slideOf makes a slide of a title and the inside of a text body.
func slideOf(title, body string) string {
	return xmlHead + "<p:sld" + slideSpace + `><p:cSld><p:spTree>` +
		`<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>` + title + `</a:t></a:r></a:p></p:txBody></p:sp>` +
		`<p:sp><p:nvSpPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:txBody>` + body + `</p:txBody></p:sp>` +
		`</p:spTree></p:cSld></p:sld>`
}

// pptxOf makes a PowerPoint file: what stands in its list of slides, and the
// targets of these.
func pptxOf(t testing.TB, ids string, rels string, more ...entry) []byte {
	return zipOf(t, append([]entry{
		{"ppt/presentation.xml", xmlHead + "<p:presentation" + slideSpace + "><p:sldIdLst>" + ids + "</p:sldIdLst></p:presentation>"},
		{"ppt/_rels/presentation.xml.rels", rels},
	}, more...)...)
}

// pdfOf makes a PDF of its objects, of which the first is the catalog, with a
// table of where they are.
func pdfOf(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var places []int
	for i, o := range objects {
		places = append(places, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, p := range places {
		fmt.Fprintf(&b, "%010d 00000 n \n", p)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, start)
	return b.Bytes()
}

// stream makes the object of a stream, packed or not.
func stream(text string, packed bool) string {
	filter := ""
	if packed {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = io.WriteString(w, text) // into memory
		_ = w.Close()
		text, filter = b.String(), "/Filter /FlateDecode "
	}
	return fmt.Sprintf("<< %s/Length %d >>\nstream\n%s\nendstream", filter, len(text), text)
}

const (
	pdfCatalog = "<< /Type /Catalog /Pages 2 0 R >>"
	pdfFont    = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
)

// pdfPages makes a PDF with a page for each text, of lines.
func pdfPages(title string, pages ...string) []byte {
	kids := ""
	objects := []string{pdfCatalog, "", pdfFont, "<< /Title (" + title + ") >>"}
	for _, text := range pages {
		kids += fmt.Sprintf("%d 0 R ", len(objects)+1)
		objects = append(objects, fmt.Sprintf(
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", len(objects)+2))
		var b strings.Builder
		for i, l := range strings.Split(text, "\n") {
			fmt.Fprintf(&b, "BT /F1 12 Tf 72 %d Td (%s) Tj ET\n", 720-14*i, l)
		}
		objects = append(objects, stream(b.String(), true))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(pages))
	return pdfOf("/Info 4 0 R", objects...)
}
