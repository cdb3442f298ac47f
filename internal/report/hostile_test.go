package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"stopgap/internal/compare"
	"stopgap/template"
)

// hostile are texts that are more than text somewhere.
var hostile = []string{
	`<script>alert(1)</script>`, `</script><script>alert(2)</script>`, `<!--<script>`, `--><img src=x onerror=alert(3)>`, `]]><svg onload=alert(4)>`,
	`javascript:alert(5)`, `[click](javascript:alert(6))`, `<javascript:alert(7)>`, `![](http://evil.test/x.png)`, `http://evil.test/`, `<a href="http://evil.test">x</a>`,
	"\u2028alert(8)\u2029", "nul\x00nul", "\u202eesrever\u202c \u2066x\u2069", "\x1b[31mred\x1b[0m\x1b]0;title\x07", "\xff\xfe\xc3(", "\u009b31m",
	"a | b | c", "`code` **bold** _it_ ~~s~~", "line\nline\r\n# heading\n- list\n> quote", "```\nfence", "{{.Secret}} ${x} %s %d", `"><b>'`, `&lt;b&gt; &amp;`,
	"=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "'quoted", `=HYPERLINK("http://evil.test","x")`, "#only=A&show=wrong", "<style>*{display:none}</style>",
	"</textarea></title></style><iframe src=//evil.test>", strings.Repeat("wide", 200), "日本語のとても長い文章" + strings.Repeat("字", 100),
}

// hostileReport is a comparison in which everything from outside is hostile.
func hostileReport() *compare.Report {
	r := made(abilities[:3], len(hostile), 2)
	r.Data, r.Shape, r.Judge, r.Date = hostile[0], hostile[1], hostile[2], hostile[3]
	r.Warnings = slices.Clone(hostile)
	for i := range r.Configurations {
		c := &r.Configurations[i]
		c.Name, c.Format, c.Model = hostile[i], hostile[i+5], hostile[i+14]
		c.Problems[i].Kind = hostile[i+1]
		c.Terminations = append(c.Terminations, compare.Tally{Kind: hostile[i+3], N: 1})
	}
	for i := range r.Items {
		it := &r.Items[i]
		it.ID, it.Question, it.Answers = hostile[i], hostile[i], []string{hostile[i], hostile[(i+1)%len(hostile)]}
		for _, runs := range it.Runs {
			run := runs[0]
			run.Answer, run.Error, run.Journal = hostile[i], hostile[i], hostile[i]
			runs[1].Scored, runs[1].Verdict, runs[1].Damaged = hostile[i], hostile[i], hostile[i]
		}
	}
	return r
}

func hostileRuns(run *compare.Run) ([]compare.Segment, error) {
	if run.Rollout == 2 {
		return nil, errors.New(hostile[run.Seed%len(hostile)])
	}
	var out []compare.Segment
	for i, text := range hostile {
		out = append(out, compare.Segment{Source: []template.Source{template.FromTool, template.FromModel, template.FromUser}[i%3], Text: text})
	}
	return append(out, compare.Segment{Source: template.FromModel, Text: "</scr" + "ipt>", Cut: 1 << 20, At: 5}), nil
}

// acting are the characters that do something in place of being seen.
func acting(s string) []rune {
	var out []rune
	for _, r := range s {
		if acts(r) {
			out = append(out, r)
		}
	}
	return out
}

// What is hostile adds no element, no attribute and no address to the page.
func TestHTMLStaysText(t *testing.T) {
	var b, tame bytes.Buffer
	if err := HTML(&b, hostileReport(), hostileRuns); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&tame, made(abilities[:3], len(hostile), 2), madeRuns); err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(b.Bytes()) || len(acting(b.String())) > 0 {
		t.Errorf("the file has %q, or is not UTF-8", acting(b.String()))
	}
	known := vocabulary(t, tame.String())
	for what := range vocabulary(t, b.String()) {
		if !known[what] {
			t.Errorf("the page has %s, which a harmless one does not have", what)
		}
	}
	if n := strings.Count(strings.ToLower(b.String()), "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
}

// vocabulary are a page's elements, its attributes by name, and the values of
// those that are addresses or code.
func vocabulary(t *testing.T, page string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			out["a comment"] = true
		}
		if n.Type != html.ElementNode {
			continue
		}
		out["the element "+n.Data] = true
		for _, a := range n.Attr {
			out["the attribute "+n.Data+" "+a.Key] = true
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s has the attribute %s", n.Data, a.Key)
			}
			address := a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "srcset" || a.Key == "data" || a.Key == "xlink:href"
			if address && !regexp.MustCompile(`^(#only=[A-Z]+\.[A-Z]+&show=differs|data:,)$`).MatchString(a.Val) {
				t.Errorf("%s has the address %q", n.Data, a.Val)
			}
		}
	}
	return out
}

func TestTerminalStaysText(t *testing.T) {
	for _, s := range []Screen{{Width: 60}, {Width: 80}, {Width: 200}, {Width: 60, Colour: true}, {}} {
		var b bytes.Buffer
		if err := Terminal(&b, hostileReport(), nil, s); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if s.Colour {
			text = regexp.MustCompile(`\x1b\[[0-9]+m`).ReplaceAllString(text, "")
		}
		if !utf8.ValidString(text) || len(acting(text)) > 0 {
			t.Errorf("width %d: %q", s.Width, acting(text))
		}
	}
}

// In Markdown, what is hostile ends no cell, opens no tag and makes no link.
func TestMarkdownStaysText(t *testing.T) {
	var b bytes.Buffer
	r := hostileReport()
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !utf8.ValidString(text) || len(acting(text)) > 0 {
		t.Errorf("%q", acting(text))
	}
	bare := regexp.MustCompile(`\\.`).ReplaceAllString(text, "") // what a backslash takes the meaning from
	for _, c := range []string{"<", "`", "](", "![", "**", "~~", "${", "://"} {
		if strings.Contains(bare, c) {
			t.Errorf("there is a bare %q", c)
		}
	}
	if strings.Contains(regexp.MustCompile(`&(lt|gt|amp);`).ReplaceAllString(bare, ""), "&") {
		t.Error("there is a bare &")
	}
	columns := 0
	for l := range strings.SplitSeq(bare, "\n") {
		n := strings.Count(l, "|")
		switch {
		case n == 0:
			columns = 0
		case columns == 0:
			columns = n
		case n != columns:
			t.Errorf("a row of %d columns, not %d: %s", n-1, columns-1, l)
		}
		if regexp.MustCompile(`^(#{3,}|[-+*] |\d+\. |=|    |~~~)`).MatchString(l) {
			t.Errorf("a line begins like %q", l)
		}
	}
}

// A spreadsheet gets no formula, and whoever takes the apostrophes off gets back
// what there was.
func TestCSVKeepsTheTexts(t *testing.T) {
	var b bytes.Buffer
	r := hostileReport()
	if err := CSV(&b, r); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 3*2*len(hostile); len(rows) != want {
		t.Fatalf("%d rows, not %d", len(rows), want)
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	number := regexp.MustCompile(`^-?[0-9.e+-]*$`)
	for i, row := range rows[1:] {
		it := &r.Items[i/2%len(hostile)]
		for j, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !number.MatchString(cell) {
				t.Errorf("%s is the formula %q", rows[0][j], cell)
			}
		}
		for name, want := range map[string]string{"item": it.ID, "question": it.Question} {
			want = strings.ReplaceAll(strings.ReplaceAll(strings.ToValidUTF8(want, "\ufffd"), "\x00", "␀"), "\r\n", "\n") // Go's reader makes one of the two
			if got := strings.TrimPrefix(row[column(name)], "'"); got != want {
				t.Errorf("%s: %q, not %q", name, got, want)
			}
		}
		var gold []string
		if err := json.Unmarshal([]byte(row[column("gold")]), &gold); err != nil || len(gold) != 2 {
			t.Errorf("gold %q: %v", row[column("gold")], err)
		}
	}
	if i := column("exact_match"); rows[1][i] != "0" && rows[1][i] != "1" {
		t.Errorf("exact match is %q", rows[1][i])
	}
}

func TestJSONIsTheReport(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, hostileReport()); err != nil {
		t.Fatal(err)
	}
	var back compare.Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Items) != len(hostile) || back.Items[0].Question != hostile[0] || back.Pairs[0].Tests[0].Holm == nil {
		t.Errorf("%d items, %q", len(back.Items), back.Items[0].Question)
	}
}
