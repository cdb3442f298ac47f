package outline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// written are outlines as models write them, and the one spelling of each.
var written = []struct{ name, text, want string }{
	{"headings", `# The Lantern
## Building <cite> <id>1</id>, <id>2</id> </cite>
- who built it <cite>3</cite>
- when [4]
### Stone
## Keepers [1]`,
		`# The Lantern
## Building <cite> <id>1</id>, <id>2</id> </cite>
- who built it <cite> <id>3</id> </cite>
- when <cite> <id>4</id> </cite>
### Stone
## Keepers <cite> <id>1</id> </cite>`},
	{"headings of one level, in a fence", "Here is the outline:\n```markdown\n# 1. One ##\ntext <id>1</id>, <id>2</id>\n\n# 2. **Two**\n```\n",
		"- Here is the outline:\n## One\n- text <cite> <id>1</id>, <id>2</id> </cite>\n## Two"},
	{"a heading, then numbers", "# Report\n1. One <cite>1</cite>\n   - a point\n2. Two\n   2.1 Half of two <cite>2</cite>\n   2.2. The other half\n3) Three",
		"# Report\n## One <cite> <id>1</id> </cite>\n- a point\n## Two\n### Half of two <cite> <id>2</id> </cite>\n### The other half\n## Three"},
	{"numbers and indents", "Outline of the report:\n1. One\n  a) Half [1]\n  b) Other half\n    1. Deep\n2. Two\n<cite>7</cite>",
		"# Outline of the report\n## One\n### Half <cite> <id>1</id> </cite>\n### Other half\n#### Deep\n## Two <cite> <id>7</id> </cite>"},
	{"Roman and bold", "I. One\n**Two** [2]\n- p\nIII. Three", "## One\n## Two <cite> <id>2</id> </cite>\n- p\n## Three"},
	{"bullets", "* One [1]\n\t* p [2]\n\t\t* q\n* Two", "## One <cite> <id>1</id> </cite>\n- p <cite> <id>2</id> </cite>\n- q\n## Two"},
	{"Chinese", "一、概述【1】\n二、历史\n- 1847年 <cite>2、3</cite>", "## 概述 <cite> <id>1</id> </cite>\n## 历史\n- 1847年 <cite> <id>2</id>, <id>3</id> </cite>"},
	{"tags around", "<write_outline>## One [1]</write_outline>", "## One <cite> <id>1</id> </cite>"},
	{"citations alone on a line", "## One\n- a\n<cite>1</cite>\n<cite>2</cite>\n## Two\n[3]", "## One\n- a <cite> <id>1</id>, <id>2</id> </cite>\n## Two <cite> <id>3</id> </cite>"},
	{"numbers that are no marks", "## 1984. A year\n## 1.5 million people\n## 2.3 Results\n## J. R. R. Tolkien", "## 1984. A year\n## 1.5 million people\n## Results\n## J. R. R. Tolkien"},
	{"levels that are left out", "# A\n#### B\n## C\n# D", "## A\n### B\n### C\n## D"},
	{"a heading without words", "##\n## [1]\n## A", "## (no title) <cite> <id>1</id> </cite>\n## A"},
	{"a heading alone", "# A\ntext", "## A\n- text"},
	{"prose", "I would first look at the tower.\n\nThen at its keepers [1].", "I would first look at the tower.\nThen at its keepers. <cite> <id>1</id> </cite>"},
	{"nothing", " \n---\n", ""},
	{"marks and then words", "## " + strings.Repeat("> ", 20) + "A", "## A"},
	{"marks without an end", "## A\n" + strings.Repeat("1. ", maxLine/3-8) + "b [1]", "## A"},
	{"a heading with a quoted tag", "## A <b>bold</b> `<cite>1</cite>` claim", "## A <b>bold</b> `<cite>1</cite>` claim"},
}

func TestParse(t *testing.T) {
	for _, c := range written {
		o, problems := Parse(c.text)
		if got := o.String(); got != c.want || len(problems) > 0 {
			t.Errorf("%s:\n%s\nwant\n%s\nproblems %v", c.name, got, c.want, problems)
		}
	}
}

func TestProblems(t *testing.T) {
	known := func(n int) bool { return n >= 1 && n <= 5 }
	for _, c := range []struct{ text, want string }{
		{"## A [1]\n- b [5]", ""},
		{"", "The outline has no sections. Write one heading or one numbered line for each section."},
		{"## A\n## B", "The outline cites nothing. Write behind each point the numbers of the summaries that it rests on, for example <cite> <id>1</id>, <id>2</id> </cite>."},
		{"# T [9]\n## A [1]\n- b [7, 2, 8]\n### C [0]\n## D [7]",
			`There is no summary 9, which is cited in "T".|There is no summary 7, which is cited in "A".|There is no summary 8, which is cited in "A".|There is no summary 0, which is cited in "C".|There is no summary 7, which is cited in "D".`},
		{"## A <cite>Smith</cite> [1]", `"Smith" in "A" is cited, which is no number of a summary.`},
		{"## A [1]\n" + strings.Repeat("### B\n#### C\n##### D\n###### E\n", 1) + "###### F", ""},
		{strings.Repeat("## A [1]\n", MaxSections+3), "The outline is too long: it has more than 1000 sections."},
		{"## " + strings.Repeat("long ", 200) + "[1]", "The outline is too long: titles are cut after 500 characters and points after 4000."},
		{"## A [1]\n" + strings.Repeat("x", 20_000), "The outline is too long: lines are cut after 16384 bytes.|The outline is too long: titles are cut after 500 characters and points after 4000."},
		{deep(12) + " [1]", "The outline is too long: it has more than 5 levels."},
		{"## A [1]\n" + strings.Repeat("- "+strings.Repeat("point ", 60)+"\n", MaxBytes/300), "The outline is too long: what stands after its first 65536 bytes is left out."},
	} {
		o, problems := Parse(c.text)
		var got []string
		for _, p := range append(problems, o.Check(known)...) {
			got = append(got, p.Error())
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%.60q:\n%s\nwant\n%s", c.text, s, c.want)
		}
	}
}

// deep is a list of so many levels.
func deep(levels int) string {
	var lines []string
	for i := range levels {
		lines = append(lines, fmt.Sprintf("%s%d. level", strings.Repeat("  ", i), i+1))
	}
	return strings.Join(lines, "\n")
}

func TestCited(t *testing.T) {
	o, _ := Parse("# T [4]\nbefore [5]\n## A [1]\n- p [2, 1]\n### B [3]\n## C [2]")
	if got := fmt.Sprint(o.Cited(), o.Sections[0].Cited(), o.Sections[1].Cited(), len(o.All())); got != "[4 5 1 2 3] [1 2 3] [2] 3" {
		t.Error(got)
	}
}

// Whatever is written, its one spelling is read back the same.
func FuzzParse(f *testing.F) {
	for _, c := range written {
		f.Add(c.text)
	}
	f.Add(deep(9))
	f.Add("## <ci<cite>1</cite>te>2</cite> [[3]]\n- ``` [4]\n```\n- > # **- 1. x**")
	f.Fuzz(func(t *testing.T, text string) {
		o, _ := Parse(text)
		depth := 0
		var walk func([]*Section, int)
		walk = func(list []*Section, level int) {
			for _, s := range list {
				depth = max(depth, level)
				walk(s.Sections, level+1)
			}
		}
		walk(o.Sections, 1)
		if depth > MaxDepth || len(o.All()) > MaxSections {
			t.Fatalf("%d levels, %d sections", depth, len(o.All()))
		}
		if o.Check(func(int) bool { return true }); len(o.String()) > 8*len(text)+1000 {
			t.Fatalf("%d bytes of %d", len(o.String()), len(text))
		}
		if len(o.String()) > MaxBytes {
			return
		}
		again, problems := Parse(o.String())
		if len(problems) > 0 || told(t, again) != told(t, o) {
			t.Fatalf("%q\nis spelled\n%s\nwhich is read as\n%s\nproblems %v", text, o, again, problems)
		}
	})
}

func told(t *testing.T, o *Outline) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
