package document

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// A sample is a file as people make them, and what is to be read in it.
type sample struct {
	name string
	data []byte
	kind string
	// title and markdown are the whole of it; parts are the names.
	title, markdown string
	parts           []string
}

func samples(t testing.TB) []sample {
	gbk, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte("年份,发现者\n1947,安娜·沃斯\n彗星每六十一年回来一次,这是望远镜的主镜\n"))
	if err != nil {
		t.Fatal(err)
	}
	utf16, err := unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewEncoder().Bytes([]byte("<title>Ünï</title><p>Köln"))
	if err != nil {
		t.Fatal(err)
	}
	return []sample{
		{"report.docx", wordSample(t), "docx", "The Lantern",
			"# A telescope\n\nThe *Lantern* has a mirror[^2] of 2.1 metres, see [its page](https://example.org/lantern).\n\n" +
				"- one\n  - inside\n1. first\n\n| Year | Who \\| what |\n| --- | --- |\n| 1947 | Voss<br>a comet |\n\nIn a box.\n\n[^2]: Ground by Ilse Marrow.\n", nil},
		{"talk.pptx", slideSample(t), "pptx", "Comets",
			"## Slide 1: Comets\n\n- They come back.\n  - Some do.\n\nNotes: Say it slowly.\n\n## Slide 2: Years\n\n| Year | Who |\n| --- | --- |\n| 1947 | Voss |\n",
			[]string{"slide 1", "slide 2"}},
		{"sheet.xlsx", sheetSample(t), "xlsx", "sheet",
			"## Dates\n\n| When | Share | Sum |  | Flag |\n| --- | --- | --- | --- | --- |\n" +
				"| 1947-03-14 | 12.5% | 1234567.25 |  | TRUE |\n| 1947-03-14 06:30 | 0.1 | 3 |  | FALSE |\n| 26:03:00 | 07:15 | #DIV/0! |  | inside |\n\n## Empty\n",
			[]string{"Dates", "Empty"}},
		{"paper.pdf", pdfPages("On comets", "The Lantern is a telescope.\nIt has a mirror.", "A second page."), "pdf", "On comets",
			"The Lantern is a telescope.\nIt has a mirror.\n\nA second page.\n", []string{"page 1", "page 2"}},
		{"chinese.csv", gbk, "csv", "chinese",
			"| 年份 | 发现者 |\n| --- | --- |\n| 1947 | 安娜·沃斯 |\n| 彗星每六十一年回来一次 | 这是望远镜的主镜 |\n", nil},
		{"wide.htm", utf16, "html", "Ünï", "Köln\n", nil},
		{"table.tsv", []byte("a\tb\n\"1,2\"\t\n"), "tsv", "table", "| a | b |\n| --- | --- |\n| 1,2 |  |\n", nil},
		{"lines.jsonl", []byte("{\"a\":1}\n{\"a\":2}\n"), "jsonl", "lines", "{\"a\":1}\n{\"a\":2}\n", nil},
		{"data", []byte(`{"a": [1, 2]}`), "json", "data", `{"a": [1, 2]}`, nil},
		{"a login page.pdf", []byte("<!doctype html><title>Log in</title><form>Name"), "html", "Log in", "Name\n", nil},
		{"all.zip", zipOf(t, entry{"a.md", "# A\n"}, entry{"in/", ""}, entry{"in/b.docx", string(docxOf(t, "<w:p><w:r><w:t>Inside.</w:t></w:r></w:p>"))}, entry{"c.png", "\x89PNG\r\n\x1a\n\x00"}), "zip", "all",
			"# a.md\n\n# A\n\n# in/b.docx\n\nInside.\n", []string{"a.md", "in/b.docx"}},
	}
}

// wordSample has headings of a German Word, a list, a table, a link, a
// footnote, a tracked change and a text box that is there twice.
func wordSample(t testing.TB) []byte {
	run := func(s string) string { return `<w:r><w:t xml:space="preserve">` + s + `</w:t></w:r>` }
	item := func(id, level, s string) string {
		return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + id + `"/></w:numPr></w:pPr>` + run(s) + `</w:p>`
	}
	box := `<mc:AlternateContent><mc:Choice><w:txbxContent><w:p>` + run("In a box.") + `</w:p></w:txbxContent></mc:Choice>` +
		`<mc:Fallback><w:txbxContent><w:p>` + run("In a box.") + `</w:p></w:txbxContent></mc:Fallback></mc:AlternateContent>`
	return docxOf(t,
		`<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>`+run("A telescope")+`</w:p>`+
			`<w:p>`+run("The *Lantern* has a ")+`<w:del>`+run("glass")+`</w:del><w:ins>`+run("mirror")+`</w:ins><w:r><w:footnoteReference w:id="2"/></w:r>`+run(" of 2.1 metres, see ")+
			`<w:hyperlink r:id="rId1">`+run("its ")+run("page")+`</w:hyperlink>`+run(".")+`</w:p>`+
			item("1", "0", "one")+item("1", "1", "inside")+item("2", "0", "first")+
			`<w:tbl><w:tr><w:tc><w:p>`+run("Year")+`</w:p></w:tc><w:tc><w:p>`+run("Who | what")+`</w:p></w:tc></w:tr>`+
			`<w:tr><w:tc><w:p>`+run("1947")+`</w:p></w:tc><w:tc><w:p>`+run("Voss")+`</w:p><w:p>`+run("a comet")+`</w:p></w:tc></w:tr></w:tbl>`+
			`<w:p><w:r>`+box+`</w:r></w:p>`,
		entry{"docProps/core.xml", `<cp:coreProperties xmlns:cp="c" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Lantern</dc:title></cp:coreProperties>`},
		entry{"word/_rels/document.xml.rels", relsOf([2]string{"hyperlink", "https://example.org/lantern"})},
		entry{"word/styles.xml", "<w:styles" + wordSpace + `><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>`},
		entry{"word/numbering.xml", "<w:numbering" + wordSpace + `><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>` +
			`<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>` +
			`<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>`},
		entry{"word/footnotes.xml", "<w:footnotes" + wordSpace + `><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote><w:footnote w:id="2"><w:p>` + run("Ground by Ilse Marrow.") + `</w:p></w:footnote></w:footnotes>`},
	)
}

// slideSample has two slides, whose order is not that of their files, notes
// and a table.
func slideSample(t testing.TB) []byte {
	table := `<a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Year</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>Who</a:t></a:r></a:p></a:txBody></a:tc></a:tr>` +
		`<a:tr><a:tc><a:txBody><a:p><a:r><a:t>1947</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>Voss</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl>`
	second := strings.Replace(slideOf("Years", ""), "</p:spTree>", "<p:graphicFrame>"+table+"</p:graphicFrame></p:spTree>", 1)
	notes := strings.Replace(slideOf("", "<a:p><a:r><a:t>Say it slowly.</a:t></a:r></a:p>"), `<p:ph idx="1"/>`, "", 1)
	return pptxOf(t, `<p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/>`,
		relsOf([2]string{"slide", "slides/slide1.xml"}, [2]string{"slide", "/ppt/slides/slide2.xml"}),
		entry{"ppt/slides/slide1.xml", second},
		entry{"ppt/slides/slide2.xml", slideOf("Comets", `<a:p><a:r><a:t>They come </a:t></a:r><a:r><a:t>back.</a:t></a:r></a:p><a:p><a:pPr lvl="1"/><a:r><a:t>Some do.</a:t></a:r></a:p>`)},
		entry{"ppt/slides/_rels/slide2.xml.rels", relsOf([2]string{"notesSlide", "../notesSlides/notesSlide1.xml"})},
		entry{"ppt/notesSlides/notesSlide1.xml", notes},
	)
}

// sheetSample has every kind of cell.
func sheetSample(t testing.TB) []byte {
	return zipOf(t,
		entry{"xl/workbook.xml", xmlHead + "<workbook" + sheetSpace + `><sheets><sheet name="Dates" sheetId="4" r:id="rId2"/><sheet name="Empty" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		entry{"xl/_rels/workbook.xml.rels", relsOf([2]string{"worksheet", "worksheets/sheet1.xml"}, [2]string{"worksheet", "worksheets/sheet2.xml"}, [2]string{"sharedStrings", "sharedStrings.xml"}, [2]string{"styles", "styles.xml"})},
		entry{"xl/styles.xml", "<styleSheet" + sheetSpace + `><numFmts><numFmt numFmtId="164" formatCode="[$-409]d\ mmmm\ yyyy;@"/></numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>` +
			`<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/><xf numFmtId="22"/><xf numFmtId="46"/><xf numFmtId="20"/><xf numFmtId="4"/></cellXfs></styleSheet>`},
		entry{"xl/sharedStrings.xml", "<sst" + sheetSpace + "><si><t>When</t></si><si><r><t>Sh</t></r><r><t>are</t></r><rPh><t>x</t></rPh></si></sst>"},
		entry{"xl/worksheets/sheet1.xml", "<worksheet" + sheetSpace + "><sheetData/></worksheet>"},
		entry{"xl/worksheets/sheet2.xml", "<worksheet" + sheetSpace + `><sheetData>` +
			`<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>Sum</t></is></c><c r="E1" t="str"><f>"Fl"&amp;"ag"</f><v>Flag</v></c></row>` +
			`<row r="3"><c r="A3" s="1"><v>17240</v></c><c r="B3" s="2"><v>0.125</v></c><c r="C3" s="6"><v>1234567.25</v></c><c r="E3" t="b"><v>1</v></c></row>` +
			`<row r="4"><c r="A4" s="3"><v>17240.2708333333</v></c><c r="B4"><v>0.10000000000000001</v></c><c r="C4"><f>1+2</f><v>3</v></c><c r="E4" t="b"><v>0</v></c></row>` +
			`<row r="5"><c r="A5" s="4"><v>1.0854166666666667</v></c><c r="B5" s="5"><v>0.30208333333333331</v></c><c r="C5" t="e"><v>#DIV/0!</v></c><c r="E5" t="inlineStr"><is><r><t>in</t></r><r><t>side</t></r></is></c></row>` +
			`</sheetData></worksheet>`},
	)
}

func TestSamples(t *testing.T) {
	for _, s := range samples(t) {
		for _, poppler := range []bool{true, false} {
			name := s.name
			if s.kind == "pdf" {
				if poppler {
					needPoppler(t)
				} else {
					name += " without pdftotext"
				}
			} else if !poppler {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if !poppler {
					t.Setenv("PATH", "")
				}
				d, err := Parse(context.Background(), s.name, bytes.NewReader(s.data), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if d.Type != s.kind || d.Title != s.title || d.Markdown != s.markdown {
					t.Errorf("%s %q\n%s\nwant %s %q\n%s", d.Type, d.Title, d.Markdown, s.kind, s.title, s.markdown)
				}
				var parts []string
				for i, p := range d.Parts {
					parts = append(parts, p.Name)
					if i > 0 && p.Offset < d.Parts[i-1].Offset || p.Offset > len(d.Markdown) {
						t.Errorf("the offsets are %v", d.Parts)
					}
				}
				if strings.Join(parts, ",") != strings.Join(s.parts, ",") {
					t.Errorf("parts %q, want %q", parts, s.parts)
				}
				again, err := Parse(context.Background(), s.name, bytes.NewReader(s.data), Options{})
				if err != nil || again.Markdown != d.Markdown {
					t.Errorf("another time: %v\n%s", err, again.Markdown)
				}
			})
		}
	}
}

// TestOthers reads what other programs have written: python-docx, openpyxl,
// python-pptx and ReportLab (testdata/files/make.py).
func TestOthers(t *testing.T) {
	for _, s := range []sample{
		{name: "python-docx.docx", title: "Halden Observatory", markdown: "# Halden Observatory\n\n# The Lantern\n\nIts largest telescope is called the Lantern.\n\n" +
			"- a mirror of 2.1 metres\n- ground by Ilse Marrow\n\n| Year | Comet |\n| --- | --- |\n| 1947 | Voss |\n"},
		{name: "openpyxl.xlsx", title: "openpyxl", markdown: "## Comets\n\n| Name | Seen | Share | Minutes |\n| --- | --- | --- | --- |\n" +
			"| Voss | 1947-03-14 | 25% | 06:30 |\n| Ålund | 2008-03-14 21:15 | 0.333333333333333 | 30:00:00 |\n\n## Notes\n\n| a \\| b | two<br>lines |\n| --- | --- |\n"},
		{name: "python-pptx.pptx", title: "Comets", markdown: "## Slide 1: Comet Voss\n\n- It comes back every 61 years.\n\nNotes: Say who saw it.\n\n" +
			"## Slide 2: Years\n\n| Year | Who |\n| --- | --- |\n| 1947 | Voss |\n"},
		{name: "reportlab.pdf", title: "The Lantern", markdown: "The Lantern is a telescope.\nIts mirror was ground in a herring shed.\n\nA second page.\n"},
	} {
		t.Run(s.name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata", "files", s.name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d, err := Parse(context.Background(), s.name, f, Options{})
			if err != nil || d.Title != s.title || d.Markdown != s.markdown {
				t.Errorf("%v %q\n%s\nwant %q\n%s", err, d.Title, d.Markdown, s.title, s.markdown)
			}
		})
	}
}

// needPoppler skips where there is no pdftotext. STOPGAP_REQUIRE_POPPLER makes
// that an error.
func needPoppler(t testing.TB) {
	t.Helper()
	if pdftotext() != "" {
		return
	}
	if os.Getenv("STOPGAP_REQUIRE_POPPLER") != "" {
		t.Fatal("there is no pdftotext (Debian: poppler-utils)")
	}
	t.Skip("there is no pdftotext (Debian: poppler-utils)")
}

// TestArticle: what stands around an article is left out, and links lead where
// they did.
func TestArticle(t *testing.T) {
	words := strings.Repeat("The Lantern is a telescope whose mirror was ground in a herring shed, where it was cold enough. ", 8)
	page := `<html><head><title>The Lantern - Halden</title></head><body><nav><ul><li><a href="/">Home</a><li><a href="/b">Buy</a></ul></nav>
<article><h1>The Lantern</h1><p>` + words + `<a href="/mirror?a=1">More</a>.</p><table><tr><th>Year<th>Who<tr><td>1947<td>Voss</table><p>` + words + `</p></article>
<aside class="ad">Buy now!</aside><footer>Imprint</footer><script>evil()</script></body></html>`
	d, err := Parse(context.Background(), "lantern", strings.NewReader(page), Options{ContentType: "text/html", BaseURL: "https://halden.example/tools/lantern"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"herring shed", "[More](https://halden.example/mirror?a=1)", "| 1947 | Voss |"} {
		if !strings.Contains(d.Markdown, want) {
			t.Errorf("%q is not in\n%s", want, d.Markdown)
		}
	}
	for _, bad := range []string{"Buy", "Imprint", "evil"} {
		if strings.Contains(d.Markdown, bad) {
			t.Errorf("%q is in\n%s", bad, d.Markdown)
		}
	}
	if d.Title != "The Lantern - Halden" && d.Title != "The Lantern" {
		t.Errorf("title %q", d.Title)
	}
}

// TestCatdoc reads an RTF file with Debian's catdoc, which reads those and the
// Word files before 2007.
func TestCatdoc(t *testing.T) {
	if _, err := exec.LookPath("catdoc"); err != nil {
		if os.Getenv("STOPGAP_REQUIRE_POPPLER") != "" {
			t.Fatal("there is no catdoc")
		}
		t.Skip("there is no catdoc (Debian: catdoc)")
	}
	o := Options{Converters: map[string][]string{"rtf": {"catdoc", "-dutf-8", "-w", filePlaceholder}}}
	d, err := Parse(context.Background(), "note.rtf", strings.NewReader(`{\rtf1\ansi\ansicpg1252 The \b Lantern\b0  in K\'f6ln.\par}`), o)
	if err != nil || strings.TrimSpace(d.Markdown) != "The Lantern in Köln." || d.Type != "rtf" {
		t.Errorf("%v %+v", err, d)
	}
}

// TestConverter: what a command does, and does not do.
func TestConverter(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("there is no cat")
	}
	old := "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00"
	parse := func(command ...string) (Document, error) {
		return Parse(context.Background(), "a b.DOC", strings.NewReader(old), Options{Converters: map[string][]string{"doc": command}})
	}
	_, err = Parse(context.Background(), "old.doc", strings.NewReader(old), Options{})
	if !errors.Is(err, ErrConverter) || !strings.Contains(err.Error(), "reading doc files takes an external command, and none is configured") {
		t.Errorf("without a command: %v", err)
	}
	d, err := parse("sh", "-c", `test -s "$1" && echo "# A comet." && basename "$1"`, "sh", filePlaceholder)
	if err != nil || d.Markdown != "# A comet.\nfile.doc\n" || d.Type != "doc" || d.Title != "a b" {
		t.Errorf("%v %+v", err, d)
	}
	for _, tt := range []struct {
		why, want string
		command   []string
	}{
		{"it prints no text", "it prints something else", []string{cat, filePlaceholder}},
		{"it fails", "exit status 3 no such font", []string{"sh", "-c", "echo no such font >&2; exit 3", "sh", filePlaceholder}},
		{"it is not there", "is not there", []string{"no-such-command", filePlaceholder}},
		{"it says nothing", "has no text in it", []string{"true", filePlaceholder}},
	} {
		if _, err := parse(tt.command...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.why, err)
		} else {
			wantClear(t, err)
		}
	}
}

// TestConverterBeside: a command may be named from the folder of the user.
func TestConverterBeside(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("convert.sh", []byte("#!/bin/sh\ntr a-z A-Z < \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Converters: map[string][]string{"doc": {"./convert.sh", filePlaceholder}}}
	d, err := Parse(t.Context(), "a.doc", strings.NewReader("comet"), o)
	if err != nil || d.Markdown != "COMET" {
		t.Errorf("%q, %v", d.Markdown, err)
	}
}

// TestConverterFiles: nothing of a converter is left in the temporary folder.
func TestConverterFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if _, err := Parse(context.Background(), "a.doc", strings.NewReader("x"), Options{Converters: map[string][]string{"doc": {"sh", "-c", "cat \"$1\"; touch here", "sh", filePlaceholder}}}); err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(dir + "/*"); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// TestPassword reads a PDF that is encrypted with a password of its owner and
// one that nobody has said.
func TestPassword(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(lockedPDF)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		if _, err := Parse(context.Background(), "locked.pdf", bytes.NewReader(data), Options{}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "password") {
			t.Errorf("PATH=%q: %v", path, err)
		}
	}
}

// lockedPDF is an empty page with the password "secret", by pypdf.
const lockedPDF = "JVBERi0xLjMKJeLjz9MKMSAwIG9iago8PAovUHJvZHVjZXIgPDQ3MTNiNDEyMWI+Cj4+CmVuZG9iagoyIDAgb2JqCjw8Ci9UeXBlIC9QYWdlcwovQ291bnQgMQovS2lkcyBbIDQgMCBS" +
	"IF0KPj4KZW5kb2JqCjMgMCBvYmoKPDwKL1R5cGUgL0NhdGFsb2cKL1BhZ2VzIDIgMCBSCj4+CmVuZG9iago0IDAgb2JqCjw8Ci9UeXBlIC9QYWdlCi9SZXNvdXJjZXMgPDwKPj4KL01l" +
	"ZGlhQm94IFsgMC4wIDAuMCAxMDAgMTAwIF0KL1BhcmVudCAyIDAgUgo+PgplbmRvYmoKNSAwIG9iago8PAovViAyCi9SIDMKL0xlbmd0aCAxMjgKL1AgNDI5NDk2NzI5MgovRmlsdGVy" +
	"IC9TdGFuZGFyZAovTyA8MGRiNTg1NWZjNTMyNjU2OWU3NjU5MDZjYWY2NGU0NDI5YTRjMjBkNmU5OTZmZGVmOTYzZTliNTA4MGY5ZTA4Mz4KL1UgPGNkYTE5NGJjMmIyNmE1MDFhMWYw" +
	"MjdhZGQyY2JjYWZmMjhiZjRlNWU0ZTc1OGE0MTY0MDA0ZTU2ZmZmYTAxMDg+Cj4+CmVuZG9iagp4cmVmCjAgNgowMDAwMDAwMDAwIDY1NTM1IGYgCjAwMDAwMDAwMTUgMDAwMDAgbiAK" +
	"MDAwMDAwMDA1OSAwMDAwMCBuIAowMDAwMDAwMTE4IDAwMDAwIG4gCjAwMDAwMDAxNjcgMDAwMDAgbiAKMDAwMDAwMDI2MSAwMDAwMCBuIAp0cmFpbGVyCjw8Ci9TaXplIDYKL1Jvb3Qg" +
	"MyAwIFIKL0luZm8gMSAwIFIKL0lEIFsgPDE2ODNhZjQ1NmQ0NjBhYmZmMjNiMjE1ZWUyNTFkNDNkPiA8MTY4M2FmNDU2ZDQ2MGFiZmYyM2IyMTVlZTI1MWQ0M2Q+IF0KL0VuY3J5cHQg" +
	"NSAwIFIKPj4Kc3RhcnR4cmVmCjQ3NgolJUVPRgo="
