package article

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/research/bank"
	"stopgap/internal/research/cite"
	"stopgap/internal/research/outline"
)

var update = flag.Bool("update", false, "write the goldens anew")

const lanternPage = `# The Lantern of Korvane

Built in **1847** by *Ottla Brunec*, the tower is 41 m tall — the tallest on the coast.[3]
Its light was never lit: the council had ordered the lamp, and nobody had ordered oil.

A second inventory, made in 1902, lists “one lamp, brass, unused”.
`

const keeperPage = `Ilse Marrow kept the log from 1850 to 1881. She wrote an entry on each of the 11,322 days.

The log is in the archive of Halden, shelf 12.`

// stored are the summaries of the sample's bank, with their pages.
func stored() []struct {
	bank.Summary
	page string
} {
	summary := func(source, title, goal, evidence, said string) bank.Summary {
		return bank.Summary{Source: source, Title: title, Goal: goal, Rational: "It says so.", Evidence: evidence, Summary: said,
			Tokens: 40, Question: "Was the Lantern of Korvane ever lit, and who kept it?", Call: source + goal}
	}
	return []struct {
		bank.Summary
		page string
	}{
		{summary("notes/the-lantern.md", "The Lantern", "When the tower was built", "the tower is 41 m tall - the tallest on the coast.", "A tower of 41 m, built in 1847."), lanternPage},
		{summary("https://korvane.example/history/lantern?year=1847&lang=en", "Korvane: a history of the harbour & its lights", "Whether the light was lit",
			"Its light was never lit: the council had ordered the lamp, and nobody had ordered oil.\nA second inventory, made in 1902, lists \"one lamp, brass, unused\".",
			"The lamp was bought, but there was never any oil for it. An inventory of 1902 still calls it unused."), lanternPage},
		{summary("https://archive.halden.example/marrow", "Ilse Marrow", "Who kept the tower", "Ilse Marrow kept the log from 1850 to 1881.\nShe was paid nothing for it.", "Ilse Marrow kept the log for 31 years."), keeperPage},
		{summary("notes/tale.md", "", "What people tell of it", "", "People tell that it shone once."), "A tale.\n"},
		{summary(`javascript:alert(1)//"><script>alert(2)</script>`, `<img src=x onerror=alert(3)> [x](javascript:alert(4))`, "</style><script>alert(5)</script>",
			"<script>alert(6)</script>", "]]> --> </blockquote> ${x} {{.}} \u202e"), "<script>alert(6)</script>"},
		{summary("notes/unread.md", "Never cited", "x", "x y z", "x"), "x y z"},
	}
}

// sample is a report with every sort of citation.
func sample(t testing.TB) (*Report, *bank.Bank) {
	t.Helper()
	b, err := bank.Open(t.Context(), filepath.Join(t.TempDir(), "bank.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for _, s := range stored() {
		if _, err := b.Add(t.Context(), s.Summary, s.page); err != nil {
			t.Fatal(err)
		}
	}
	plan, _ := outline.Parse("# The Lantern\n## The tower [1]\n## Its keeper [3]\n## What people tell [4, 5, 17]")
	r := &Report{
		Question: "Was the Lantern of Korvane ever lit, and who kept it?", Model: "ollama:qwen3", Date: "2026-03-01", Outline: plan,
		Answer: "It was **never lit** <cite> <id>2</id> </cite>; Ilse Marrow kept its log for 31 years [3].",
		Sections: []Section{
			{"The tower", "## The tower\n\nThe Lantern of Korvane is 41 m tall, which makes it the tallest tower on that coast <cite> <id>1</id> </cite>. It was built in 1847 by Ottla Brunec, who had drawn two bridges and no tower before it.\n\n" +
				"### The lamp\n\nThe council ordered a lamp of brass, and nobody ordered oil for it. In 1902, 55 years later, an inventory lists it as unused <cite><id>2</id>, <id>1</id></cite>.\n\n" +
				"| Year | What happened | Visitors |\n|---|---|--:|\n| 1847 | built | – |\n| 1902 | second inventory [2] | 1,204 |\n\n> One lamp, brass, unused."},
			{"", "# Its keeper\n\nIlse Marrow kept the log from 1850 to 1881 <cite>3</cite>. She wrote:\n\n1. an entry on each of the days,\n2. in ink, and\n3. without a word about the lamp [3][1].\n\n```\nlog[1] = \"calm\"\n```\n\nThe archive has it on shelf `12[3]`."},
			{"What people tell", "That it shone once, on a night without moon, is told in three villages <cite> <id>4</id>, <id>17</id> </cite>. The tale has <cite>the old man</cite> row out to see it.\n\n#### Not so\n\nSee [the history](https://korvane.example/history/lantern) and https://korvane.example." + `

<script>alert("a")</script> <img src="http://tracker.example/x.png" onerror=alert(1)>
![pixel](http://tracker.example/y.png) [click](javascript:alert(1)) <javascript:alert(2)> [data](data:text/html,x) [rel](notes/x.md) <cite>5</cite>(javascript:alert(3))

[1]: javascript:alert(4)
</main></body><style>*{display:none}</style>

` + "An end that has none:\n\n~~~\ncode <b>"},
		},
		Log: []Entry{
			{"plan", "page_unreadable", "notes/burnt.md: no document has the id"},
			{"write", "unknown_id", "There is no summary 17, which is cited in <script>alert(7)</script> [x](javascript:alert(8))."},
		},
		Totals: Totals{Searches: 4, Pages: 6, Summaries: 6, Outlines: 2, Requests: 21, PromptTokens: 48123, Tokens: 3901},
	}
	if err := r.Check(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return r, b
}

func TestCheck(t *testing.T) {
	r, _ := sample(t)
	var got []string
	for _, c := range r.Citations {
		got = append(got, fmt.Sprintf("%d: %d%s -> %d %s %v %q", c.Section, c.Bank, c.Bad, c.Reference, c.Verdict, c.Figures, c.Claim))
	}
	want := `0: 2 -> 1 ok [] "It was **never lit**"
0: 3 -> 2 evidence not in the page [] "Ilse Marrow kept its log for 31 years"
1: 1 -> 3 ok [] "The Lantern of Korvane is 41 m tall, which makes it the tallest tower on that coast"
1: 2 -> 1 ok [55] "In 1902, 55 years later, an inventory lists it as unused"
1: 1 -> 3 ok [55] "In 1902, 55 years later, an inventory lists it as unused"
1: 2 -> 1 ok [] "second inventory"
2: 3 -> 2 evidence not in the page [] "Ilse Marrow kept the log from 1850 to 1881"
2: 3 -> 2 evidence not in the page [] "without a word about the lamp"
2: 1 -> 3 ok [] "without a word about the lamp"
3: 4 -> 4 no evidence [] "That it shone once, on a night without moon, is told in three villages"
3: 17 -> 0 unknown id [] "That it shone once, on a night without moon, is told in three villages"
3: 0the old man -> 0 unknown id [] "The tale has"
3: 5 -> 5 ok [1 2] `
	if s := strings.Join(got, "\n"); !strings.HasPrefix(s, want) {
		t.Errorf("citations\n%s\nwant\n%s", s, want)
	}
	if got := r.SummaryLine(); got != "3 sections, 13 citations of 5 sources, 6 unsupported (47 %)" {
		t.Error(got)
	}
	if r.References[1].Absent != "She was paid nothing for it" {
		t.Errorf("absent %q", r.References[1].Absent)
	}
}

// The same report gives the same bytes, also after it was kept as JSON.
func TestGoldens(t *testing.T) {
	r, _ := sample(t)
	kept, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(kept, &again); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*Report, *bytes.Buffer) error{
		"report.md":   func(r *Report, b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"report.html": func(r *Report, b *bytes.Buffer) error { return r.WriteHTML(b) },
	} {
		var got, second bytes.Buffer
		if err := write(r, &got); err != nil {
			t.Fatal(err)
		}
		if err := write(&again, &second); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), second.Bytes()) {
			t.Errorf("%s differs from that of the report read back", name)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs from its golden (go test -update writes it); it is\n%s", name, got.String())
		}
	}
}

// A report of nothing, one that was not checked, and one with a verdict alone
// are written too.
func TestSmallReports(t *testing.T) {
	long := strings.Repeat("Why is that so? ", 100)
	for name, r := range map[string]*Report{
		"empty":       {},
		"not checked": {Question: long, Answer: "a [1]", Sections: []Section{{"", "b [2]"}, {"T", ""}}},
	} {
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return r.WriteMarkdown(b) }, func(b *bytes.Buffer) error { return r.WriteHTML(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil || b.Len() == 0 {
				t.Errorf("%s: %d bytes, %v", name, b.Len(), err)
			}
			if strings.ContainsAny(b.String(), "\uE000\uE001") {
				t.Errorf("%s: a place is left in\n%s", name, b.String())
			}
		}
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct{ text, title, want string }{
		{"text", "Title", "## Title\n\ntext"},
		{"# One\n## Two\n# Three", "Title", "## One\n### Two\n## Three"},
		{"\n### One\n# Two\n###### Six", "Title", "## One\n## Two\n##### Six"},
		{"before\n# One\n### Two", "Title", "## Title\n\nbefore\n### One\n##### Two"},
		{"# One\ntext", "", "### One\ntext"},
		{"One\n===\n\ntext\n---\nmore", "T", "## One\n\ntext\n\n---\nmore"},
		{"```\n# code\n```\n# One", "T", "## T\n\n```\n# code\n```\n### One"},
		{"```\n# code", "T", "## T\n\n```\n# code\n```"},
		{"#hash\n#", "T", "## T\n\n#hash\n### "},
		{"", "T", "## T"},
	} {
		if got := level(c.text, c.title); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%q:\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

func TestWebAddress(t *testing.T) {
	for source, want := range map[string]string{
		"https://a.example/x?y=1#z": "https://a.example/x?y=1#z", " http://a.example ": "http://a.example", "HTTPS://a.example/": "https://a.example/",
		"javascript:alert(1)": "", "notes/a.md": "", "//a.example": "", "http:x": "", "http://": "", "file:///etc/passwd": "", "http://a b": "", "": "",
		"http://a.example/\"><b>": "http://a.example/%22%3E%3Cb%3E",
	} {
		if got := webAddress(source); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// Whatever a model writes, its Markdown has neither HTML nor images for a
// reader, and no links but those to the web; nothing of a place is left.
func FuzzTidy(f *testing.F) {
	r := Report{}
	for _, s := range []string{
		"<script>alert(1)</script>", "a `b\nc` <script> ` d", "| `a | <b> ` |\n|---|---|\n| 1 | <i> |", "[x](javascript:y)", "[x]:\n  javascript:y\n\n[x]", "![a](http://b)",
		"<cite>1</cite>(javascript:x) [1][2](http://x)", "~~~\n<b>", "<http://a> <mailto:x@y> <x@y.example>", "\\<b> \\\\<b>", "    <b>", "- ```\n<b>\n```\n<i>", "<!-- -->", "[a](<javascript:x>)", "&lt;b&gt; &#60;b>",
		"http&#58;//x [x](http&#58;//x)", "``` `\n<b>\n```", "<cite> <id>1</id> </cite>[x](http://y)", "> ```\n<b>\n> ```\n<i>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r.Sections = []Section{{"T", text}}
		r.References = []Reference{{Number: 1, Bank: 1, Finding: cite.Finding{Verdict: cite.Supported}, Summary: bank.Summary{Source: "https://a.example"}}}
		r.Citations = nil
		for _, m := range cite.Find(text) {
			for range len(m.Numbers) + len(m.Bad) {
				r.Citations = append(r.Citations, Citation{Section: 1, Bank: 1, Reference: 1, Verdict: cite.Supported})
			}
		}
		var md, page bytes.Buffer
		if err := r.WriteMarkdown(&md); err != nil {
			t.Fatal(err)
		}
		if !harmless(md.String()) || strings.ContainsAny(md.String(), "\uE000\uE001") {
			t.Fatalf("%q became\n%s", text, md.String())
		}
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		sober(t, page.String())
	})
}
