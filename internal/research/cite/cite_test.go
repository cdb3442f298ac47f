package cite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// spellings are what models write, and what is read of it: the numbers of each
// mark, and what is no number.
var spellings = []struct{ text, want string }{
	{"no citation at all, 1 of 2", ""},
	{"<cite> <id>1</id>, <id>2</id> </cite>", "1,2"},
	{"a <cite><id>3</id></cite> and <cite>\n<id>4</id>\n</cite>.", "3 4"},
	{"<cite>1, 2</cite>", "1,2"},
	{"<cite>1;2、3，4</cite>", "1,2,3,4"},
	{"<cite>1 2 and 3</cite>", "1,2,3"},
	{"<CITE><ID>7</ID></Cite>", "7"},
	{"<cite>[1], [2]</cite>", "1,2"},
	{"<cite> <id>id1</id>, <id>#2</id>, <id>Summary 3</id> </cite>", "1,2,3"},
	{"<cite><id>id 1</id></cite>", "1"},
	{"<cite>3-5, 9 – 10</cite>", "3,4,5,9,10"},
	{"<cite>007</cite>", "7"},
	{"<cite>2, 2, 1, 2</cite>", "2,1"},
	{`<cite id="4"/> <cite ids='5, 6'></cite>`, "4,5,6 "},
	{`<cite index="8">The tower stands.</cite>`, "8 "},
	{"<id>1</id>", "1"},
	{"<id>1</id>, <id>2</id>; <id>3</id>", "1,2,3"},
	{"<cite> <id>id_1</id>, summary_2 </cite> [id_3]", "1,2,3"},
	{"<cite> <id_1>, <id 2>, <id=\"3\"/> </cite>", "1,2,3"},
	{"so <id_4>, <id5>. <ideal 6>", "4,5"},
	{"<cite>1 to 3, 7</cite>", "1,2,3,7"},
	{"<id> 1 </id> text <id>2</id>", "1 2"},
	{"It is tall [1].", "1"},
	{"It is tall[1][2], [3] [4].", "1,2,3,4"},
	{"It is tall [1, 2; 3].", "1,2,3"},
	{"It is tall [2-4], and old [^5].", "2,3,4 5"},
	{"It is tall [id 6] and [Summary 7].", "6 7"},
	{"高い【1】【2†L3-L9】。", "1,2"},
	{"In [2019] it was [1984, 3] tall.", ""},
	{"[1](https://example.org) is a link, ![1](x.png) too", ""},
	{"[1]: https://example.org", ""},
	{"as said [1]: it is tall", "1"},
	{`an escaped \[1] and \<cite>2</cite>`, ""},
	{"`a[1]` is code, ``b ` [2]`` too, this is not: ` [3]", "3"},
	{"```\na[1]\n```\nafter [2]", "2"},
	{"~~~ go\na[1]\n~~~~\nafter [2]\n```\nfor ever [3]", "2"},
	{"- ```\n  a[1]\n  ```\n- [2]", "2"},
	{"~~struck~~ [1]", "1"},
	{"<cite>Smith 2019</cite>", "2019!Smith"},
	{"<cite>the first one</cite>", "!the first one"},
	{"<cite>9-1</cite>, <cite>1-1000000</cite>", "!9-1 1-1000000"},
	{"<cite></cite>", ""},
	{"<cite> <id>1</id>, <id>2</id> and then no end", "1,2"},
	{"<cite>1 and no end", ""},
	{"1</cite>", ""},
	{"<cite> <id>1</id> <cite> <id>2</id> </cite>", "1,2"},
	{"<cite>12345678901</cite>", "!12345678901"},
	{"<citex>1</citex> <cited>2</cited>", ""},
	{"[ ] [x] [1.5] [-1] [a1] [] [[1]]", "1"},
	{"\\", ""},
	{"<cite", ""},
	{"[", ""},
}

func told(marks []Mark) string {
	var out []string
	for _, m := range marks {
		words := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Numbers), " ", ","), "[]")
		if len(m.Bad) > 0 {
			words += "!" + strings.Join(m.Bad, " ")
		}
		out = append(out, words)
	}
	return strings.Join(out, " ")
}

func TestFind(t *testing.T) {
	for _, c := range spellings {
		if got := told(Find(c.text)); got != c.want {
			t.Errorf("%q cites %q, want %q", c.text, got, c.want)
		}
	}
	marks := Find("It is tall <cite>1</cite>.")
	if len(marks) != 1 || marks[0].Start != 11 || marks[0].End != 25 {
		t.Errorf("places %+v", marks)
	}
	if got := Strip("It is tall <cite>1</cite>, and old [2] [3]."); got != "It is tall, and old." {
		t.Errorf("stripped: %q", got)
	}
}

// What is spelled is read, and marks are places of the text, in order.
func FuzzFind(f *testing.F) {
	for _, c := range spellings {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, m := range Find(text) {
			if m.Start < at || m.End <= m.Start || m.End > len(text) || len(m.Numbers) > MaxNumbers {
				t.Fatalf("%+v of %q", m, text)
			}
			at = m.End
			if len(m.Numbers) == 0 {
				continue
			}
			again := Find(Spell(m.Numbers...))
			if len(again) != 1 || !slices.Equal(again[0].Numbers, m.Numbers) || len(again[0].Bad) > 0 {
				t.Fatalf("%v is spelled %q, which is read as %+v", m.Numbers, Spell(m.Numbers...), again)
			}
		}
	})
}

const page = `# The *Lantern* of Korvane

> Built in **1847**, the tower is 41 m tall — the tallest of its
> kind.[3] It was “never lit”\.

- Its keeper, [Ilse Marrow](https://example.org/a_(b)), kept a log.
- The log is lost.

| Year | Visitors |
|------|---------:|
| 1901 | 1,204 |

Lost… or hidden! He said: don’t go there. A soft` + "\u00ad" + `hyphen and a zero` + "\u200b" + `width. 塔は高い。
灯は消えた。`

func TestLook(t *testing.T) {
	p := NewPage(page)
	for _, c := range []struct {
		evidence string
		verdict  Verdict
		share    string
	}{
		{"Built in 1847, the tower is 41 m tall - the tallest of its kind.", Supported, "1.00"},
		{"the tower is 41 m tall—the tallest of its kind. It was \"never lit\".", Supported, "1.00"},
		{"“The tower is 41 m tall”", Supported, "1.00"}, // another first letter, quotes around
		{"**Built in 1847**", Supported, "1.00"},
		{"Lost... or hidden", Supported, "1.00"}, // the page's own ellipsis
		{"Lost … or gone", NotInPage, "0.00"},
		{"- Its keeper, Ilse Marrow, kept a log.\n- The log is lost.", Supported, "1.00"},
		{"Its keeper, [Ilse Marrow](https://elsewhere.example), kept a log", Supported, "1.00"},
		{"Built in 1847 ... kept a log … don't go there", Supported, "1.00"},
		{"... don't go there ...", Supported, "1.00"},
		{"1901 1,204", Supported, "1.00"},
		{"A softhyphen and a zerowidth", Supported, "1.00"},
		{"塔は高い。灯は消えた", Supported, "1.00"},
		{"塔は高い … 灯は消えた", NotInPage, "0.00"}, // four characters are as little as two words
		{"built in 1847", Supported, "1.00"},
		{"Built In 1847", NotInPage, "0.00"},
		{"the tower is 42 m tall", NotInPage, "0.00"},
		{"the tower is 4", NotInPage, "0.00"}, // half a word
		{"ilt in 1847", NotInPage, "0.00"},
		{"The log is lost.\nThe log was found.", NotInPage, "0.46"},
		{"tower ... lost ... tall", NotInPage, "0.00"}, // single words
		{"lost", Supported, "1.00"},
		{"", NoEvidence, "0.00"},
		{" \n---\n... \"\" ", NoEvidence, "0.00"},
	} {
		got := p.Look(c.evidence)
		if got.Verdict != c.verdict || fmt.Sprintf("%.2f", got.Share) != c.share || (got.Absent != "") != (c.verdict == NotInPage) {
			t.Errorf("%q: %+v, want %s, %s", c.evidence, got, c.verdict, c.share)
		}
	}
	if got := p.Look("Its keeper,\nnobody knows who, kept a log."); got.Absent != "nobody knows who, kept a log" {
		t.Errorf("absent is %q", got.Absent)
	}
	if got := p.Look(strings.Repeat("The log is lost.\n", 1000)); got.Verdict != NotInPage || got.Share != 0.5 {
		t.Errorf("a thousand pieces: %+v", got)
	}
	if got := NewPage("").Look("anything"); got.Verdict != NotInPage {
		t.Errorf("no page: %+v", got)
	}
}

// A text stands in itself, and so does each of its lines.
func FuzzLook(f *testing.F) {
	f.Add(page)
	for _, c := range spellings {
		f.Add(c.text)
	}
	f.Add("a - b\n-c")
	f.Add("infor\u00ad\nmation ... x ... y z w")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(plain(text), "...") { // pieces between ellipses have a length
			return
		}
		p := NewPage(text)
		for _, evidence := range append(strings.Split(text, "\n"), text) {
			if got := p.Look(evidence); got.Verdict == NotInPage {
				t.Fatalf("%q is not found in %q (%q): %+v", evidence, text, p.text, got)
			}
		}
	})
}

func BenchmarkLook(b *testing.B) {
	text := strings.Repeat(page+"\n\n", 1000)
	for b.Loop() {
		p := NewPage(text)
		p.Look("Built in 1847, the tower is 41 m tall\nnot in it at all\nThe log is lost.")
	}
	b.SetBytes(int64(len(text)))
}
