package document

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// parseHere parses in this process, as a child does: for many files, and for
// fuzzing, which must see the code.
func parseHere(name, contentType string, data []byte, poppler string) (Document, error) {
	w := &writer{max: 1 << 20}
	j := job{Name: name, ContentType: contentType, MaxText: w.max, Memory: DefaultMemory, Timeout: DefaultTimeout, PDFToText: poppler}
	in := input{job: j, name: name, data: io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), quota: newQuota()}
	return guarded(in, w)
}

// wantSound wants what every answer must be.
func wantSound(t *testing.T, d Document, err error) {
	t.Helper()
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if ok {
			e.Name = "x"
		} else {
			err = &Error{Name: "x", Reason: "is damaged: " + line(err.Error()), Cause: ErrDamaged} // as Child says it
		}
		wantClear(t, err)
		return
	}
	if strings.TrimSpace(d.Markdown) == "" || !utf8.ValidString(d.Markdown) || len(d.Markdown) > 1<<20 {
		t.Errorf("%d bytes of text, valid: %v", len(d.Markdown), utf8.ValidString(d.Markdown))
	}
	bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	for _, s := range append([]string{d.Markdown, d.Title}, d.Notes...) {
		if i := strings.IndexFunc(s, bad); i >= 0 {
			t.Errorf("a control character: %q", s[max(0, i-20):min(len(s), i+20)])
		}
	}
	if strings.ContainsAny(d.Title+strings.Join(d.Notes, ""), "\n\t") {
		t.Errorf("no single lines: %q %q", d.Title, d.Notes)
	}
	last := 0
	for _, p := range d.Parts {
		if p.Offset < last || p.Offset > len(d.Markdown) {
			t.Errorf("parts %v of %d bytes", d.Parts, len(d.Markdown))
		}
		last = p.Offset
	}
}

// TestTruncated cuts every sample at many places, and TestMutated changes
// bytes of it: nothing panics, and every answer is sound.
func TestTruncated(t *testing.T) {
	for _, s := range samples(t) {
		step := max(1, len(s.data)/n(len(s.data), 60))
		for cut := 1; cut < len(s.data); cut += step {
			d, err := parseHere(s.name, "", s.data[:cut], "")
			wantSound(t, d, err)
			if t.Failed() {
				t.Fatalf("%s cut at %d", s.name, cut)
			}
		}
	}
}

func TestMutated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range samples(t) {
		for range n(3000, 40) {
			data := bytes.Clone(s.data)
			for range 1 + random.IntN(8) {
				switch at := random.IntN(len(data)); random.IntN(3) {
				case 0:
					data[at] = byte(random.Uint32())
				case 1:
					data[at] ^= 1 << random.IntN(8)
				case 2:
					from := random.IntN(len(data))
					copy(data[at:], data[from:min(len(data), from+random.IntN(64))])
				}
			}
			d, err := parseHere(s.name, "", data, "")
			wantSound(t, d, err)
			if t.Failed() {
				path := filepath.Join(os.TempDir(), "mutated-"+s.name)
				_ = os.WriteFile(path, data, 0o600)
				t.Fatalf("%s: the bytes are in %s", s.name, path)
			}
		}
	}
}

// TestCancel: when the context is done, the call comes back and nothing that
// it has started is left.
func TestCancel(t *testing.T) {
	needPoppler(t)
	ctx, cancel := context.WithCancel(context.Background())
	slow := pdfPages("slow", strings.Repeat("a line of text\n", 20_000))
	done := make(chan error, 1)
	go func() {
		_, err := Parse(ctx, "slow.pdf", bytes.NewReader(slow), Options{Timeout: time.Minute})
		done <- err
	}()
	deadline := time.Now().Add(time.Minute)
	for len(descendants(os.Getpid())) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantNobody(t)
}

// TestTimeout: a file that takes too long is an error after its time, and
// nothing is left of the process.
func TestTimeout(t *testing.T) {
	start := time.Now()
	_, err := Parse(context.Background(), "slow.docx", bytes.NewReader(docxOf(t, strings.Repeat("<w:p/>", 5_000_000))), Options{Timeout: 200 * time.Millisecond})
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "takes longer than 200ms to read") {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	wantNobody(t)
}

// TestOrphan: a child whose parent is killed ends by itself.
func TestOrphan(t *testing.T) {
	if os.Getenv("STOPGAP_TEST_ORPHAN") != "" {
		_, _ = Parse(context.Background(), "slow.docx", bytes.NewReader(docxOf(t, strings.Repeat("<w:p/>", 5_000_000))), Options{Timeout: 20 * time.Second}) // it ends when its time is over
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOrphan$")
	cmd.Env = append(os.Environ(), "STOPGAP_TEST_ORPHAN=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var children []int
	deadline := time.Now().Add(5 * time.Minute)
	for len(children) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
		children = descendants(cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(children) == 0 {
		t.Fatal("no child was seen")
	}
	for time.Now().Before(deadline) {
		if _, err := os.Stat("/proc/" + strconv.Itoa(children[0])); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", children[0])
}

// TestNoChild: a program that does not call Child does not start itself over
// and over.
func TestNoChild(t *testing.T) {
	t.Setenv(jobVariable, "{}")
	_, err := Parse(context.Background(), "a.txt", strings.NewReader("a"), Options{})
	if err == nil || !strings.Contains(err.Error(), "document.Child") {
		t.Errorf("got %v", err)
	}
}

// TestLimits of Options.
func TestLimits(t *testing.T) {
	big := strings.Repeat("中文 text\n", 1000)
	d, err := Parse(context.Background(), "a.txt", strings.NewReader(big), Options{MaxText: 1000})
	if err != nil || len(d.Markdown) > 1000 || len(d.Markdown) < 997 || !utf8.ValidString(d.Markdown) || len(d.Notes) != 1 || d.Notes[0] != "The text is longer than 1000 bytes; the rest is left out." {
		t.Errorf("%v: %d bytes, %q", err, len(d.Markdown), d.Notes)
	}
	if _, err := Parse(context.Background(), "a.txt", strings.NewReader(big), Options{MaxBytes: 1 << 10}); !errors.Is(err, ErrTooLarge) || err.Error() != "a.txt is larger than 1.0 KiB" {
		t.Errorf("got %v", err)
	}
	if _, err := Parse(context.Background(), "a.txt", io.MultiReader(strings.NewReader("a"), broken{}), Options{}); err == nil || !strings.Contains(err.Error(), "cannot read it: the line is cut") {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the line is cut") }

// TestMemory: the limit holds for a parser that needs more, whoever asks for
// the memory.
func TestMemory(t *testing.T) {
	o := Options{Executable: child(t), Memory: 96 << 20, Timeout: time.Minute}
	w := watch(t)
	_, err := Parse(context.Background(), "wide.html", strings.NewReader(strings.Repeat("<p a=b>x", 400_000)), o)
	if peak := w.stop(); peak > o.Memory || !errors.Is(err, ErrMemory) {
		t.Errorf("%s: %v", size(peak), err)
	}
	wantClear(t, err)
}

func FuzzParse(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.name, "", s.data)
	}
	f.Fuzz(func(t *testing.T, name, contentType string, data []byte) {
		d, err := parseHere(name, contentType, data, "")
		wantSound(t, d, err)
	})
}

// fuzz runs one parser over the inside of its format: archives, whose sums
// hide what is in them, are made around the parts.
func fuzz(f *testing.F, name string, wrap func(testing.TB, []byte) []byte) {
	f.Fuzz(func(t *testing.T, part []byte) {
		d, err := parseHere(name, "", wrap(t, part), "")
		wantSound(t, d, err)
	})
}

func plainBytes(_ testing.TB, b []byte) []byte { return b }

func FuzzPDF(f *testing.F) {
	f.Add(pdfPages("On comets", "A page.", "Two."))
	f.Add(pdfOf("/Prev 9", pdfCatalog, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000 >>"))
	fuzz(f, "a.pdf", func(_ testing.TB, b []byte) []byte { return append([]byte("%PDF-1.7\n"), b...) })
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte("<title>a</title><table><tr><td colspan=9>b<ul><li><a href=x>c</a><pre>d</pre>"))
	fuzz(f, "a.html", plainBytes)
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a;b\n\"c\n\";d\n"))
	fuzz(f, "a.csv", plainBytes)
}

func FuzzText(f *testing.F) {
	f.Add([]byte("# T\r\n\xff\xfea\x00"))
	fuzz(f, "a.md", plainBytes)
}

func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, entry{"a.txt", "text"}, entry{"b.zip", "PK\x03\x04"}))
	f.Add(overlapping(f)[:4000])
	fuzz(f, "a.zip", plainBytes)
}

func FuzzDOCX(f *testing.F) {
	f.Add([]byte(`<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:hyperlink><w:t>a</w:t></w:hyperlink></w:p><w:tbl><w:tr><w:tc><w:p><w:t>b</w:t></w:p></w:tc></w:tr></w:tbl>`))
	fuzz(f, "a.docx", func(t testing.TB, b []byte) []byte { return docxOf(t, string(b)) })
}

func FuzzPPTX(f *testing.F) {
	f.Add([]byte(slideOf("a", `<a:p><a:pPr lvl="8"/><a:t>b</a:t></a:p><a:tbl><a:tr><a:tc/></a:tr></a:tbl>`)))
	fuzz(f, "a.pptx", func(t testing.TB, b []byte) []byte {
		return pptxOf(t, `<p:sldId r:id="rId1"/>`, relsOf([2]string{"slide", "slides/slide1.xml"}), entry{"ppt/slides/slide1.xml", string(b)})
	})
}

func FuzzXLSX(f *testing.F) {
	f.Add([]byte(`<row><c r="B2" t="s" s="1"><v>0</v></c><c t="inlineStr"><is><t>x</t></is></c><c s="1"><v>1e308</v></c></row>`))
	fuzz(f, "a.xlsx", func(t testing.TB, b []byte) []byte {
		return zipOf(t,
			entry{"xl/workbook.xml", "<workbook" + sheetSpace + `><sheets><sheet name="One" r:id="rId1"/></sheets></workbook>`},
			entry{"xl/_rels/workbook.xml.rels", relsOf([2]string{"worksheet", "s.xml"}, [2]string{"sharedStrings", "t.xml"}, [2]string{"styles", "f.xml"})},
			entry{"xl/s.xml", "<s" + sheetSpace + ">" + string(b) + "</s>"}, entry{"xl/t.xml", "<t><si><t>a</t></si></t>"},
			entry{"xl/f.xml", `<f><numFmt numFmtId="200" formatCode="yyyy"/><cellXfs><xf/><xf numFmtId="200"/></cellXfs></f>`})
	})
}

func FuzzNumber(f *testing.F) {
	f.Add("17240.5", `[$-409]d\ mmmm\ yyyy;@`)
	f.Add("-1e300", "[h]:mm")
	f.Fuzz(func(t *testing.T, v, format string) {
		if s := new(workbook).number(v, format); len(s) > len(v)+400 {
			t.Errorf("%q as %q is %q", v, format, s)
		}
	})
}
