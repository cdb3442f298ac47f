package cite

import (
	"fmt"
	"strings"
	"testing"
)

// What the tools of a run give, as tools/corpus and tools/web write it.
var results = []string{
	"Results for \"lantern\":\n" +
		"The Lantern. The Lantern is a mirror telescope. [the-lantern.md] (score 12.31)\n" +
		"St. Ives. A town. See Grant. [towns/st-ives.md#2] (score 3.00)\n" +
		"Who was Voss? An astronomer. [voss.md] (score 1.20)\n" +
		"奥克。 一只鸟。 [auk-zh.md] (score 0.40)\n\nNo results for \"x\". Try other words.",
	"Ilse Marrow [ilse-marrow.md]\n\nShe ground it.\nMade up. [made-up.md] (score 9.99)\n1. [Made up](https://made.example/up)",
	"A Google search for 'x' found 2 results:\n\n## Web Results\n1. [Tides &amp; moons](https://tides.example/a_b)\nDate published: 2020\n\nThe moon.\n\n2. [Paper](pdfUrl: https://p.example/a.pdf)\n",
	"The useful information in https://visited.example/ for user goal the year as follows: \n\nEvidence in page: \nx\n",
	"The file [x] is not here", "",
}

func TestSeen(t *testing.T) {
	var got []string
	for _, d := range Seen(results) {
		got = append(got, d.ID+"="+d.Title)
	}
	want := "the-lantern.md= towns/st-ives.md= voss.md= auk-zh.md= ilse-marrow.md=Ilse Marrow https://tides.example/a_b=Tides & moons https://p.example/a.pdf=Paper https://visited.example/="
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
}

// Titles and ids are the same document where a tool has said so.
func TestNames(t *testing.T) {
	seen := Seen(results)
	for name, want := range map[string]string{
		"the-lantern.md": "the-lantern.md", "the lantern": "the-lantern.md", "The": "", "The Lantern. The Lantern": "",
		"towns/st-ives.md#7": "towns/st-ives.md", "St. Ives": "towns/st-ives.md", "Who was Voss?": "voss.md", "Who": "", "奥克。": "auk-zh.md", "奥克": "",
		"Ilse Marrow": "ilse-marrow.md", "Ilse": "", "tides & Moons": "https://tides.example/a_b", "made-up.md": "", "": "",
	} {
		got := ""
		for _, d := range seen {
			if d.called(name) {
				got += d.ID
			}
		}
		if got != want {
			t.Errorf("%q is called %q, not %q", name, got, want)
		}
	}
}

func TestScores(t *testing.T) {
	seen := Seen(results)
	for _, c := range []struct {
		name, answer string
		gold         []string
		want         string // gold found named cited right wild
	}{
		{"an id", "2.1 metres [the-lantern.md]", []string{"the-lantern.md"}, "1 1 1 1 1 0"},
		{"an id for a title", "2.1 metres [the-lantern.md]", []string{"The Lantern"}, "1 1 1 1 1 0"},
		{"a title for an id", "2.1 metres [The lantern]", []string{"the-lantern.md"}, "1 1 1 1 1 0"},
		{"half", "Ilse Marrow [ilse-marrow.md]", []string{"The Lantern", "Ilse Marrow"}, "2 2 1 1 1 0"},
		{"both in one pair", "Yes [the-lantern.md, ilse-marrow.md]", []string{"The Lantern", "Ilse Marrow"}, "2 2 2 2 2 0"},
		{"the same twice", "Yes [the-lantern.md#1] and [The Lantern][the-lantern.md]", []string{"The Lantern"}, "1 1 1 1 1 0"},
		{"another", "Yes [voss.md]", []string{"The Lantern"}, "1 1 0 1 0 0"},
		{"made up", "Yes [made-up.md]", []string{"The Lantern"}, "1 1 0 1 0 1"},
		{"gold that nobody saw", "Yes [atlas]", []string{"Atlas"}, "1 0 1 1 1 0"},
		{"round, seen", "Yes (the-lantern.md; 1887)", []string{"The Lantern"}, "1 1 1 1 1 0"},
		{"round, nothing seen", "Yes (1887, and more)", []string{"The Lantern"}, "1 1 0 0 0 0"},
		{"square in round", "Yes (see [the-lantern.md])", []string{"The Lantern"}, "1 1 1 1 1 0"},
		{"lenticular", "是【the-lantern.md】。", []string{"The Lantern"}, "1 1 1 1 1 0"},
		{"tags", "Yes <cite> <id>the-lantern.md</id>, <id>voss.md</id> </cite>.", []string{"The Lantern"}, "1 1 1 2 1 0"},
		{"link", "The [moon](https://tides.example/a_b \"title\") does.", []string{"Tides & moons"}, "1 1 1 1 1 0"},
		{"round address", "The moon does (https://tides.example/a_b).", []string{"https://tides.example/a_b"}, "1 1 1 1 1 0"},
		{"not a link", "f[x](y) and [](the)", nil, "0 0 0 1 0 1"},
		{"a mention is no citation", "The Lantern says so", []string{"The Lantern"}, "1 1 0 0 0 0"},
		{"open", "Yes [the-lantern.md", []string{"The Lantern"}, "1 1 0 0 0 0"},
		{"nothing", "", []string{"The Lantern"}, "1 1 0 0 0 0"},
		{"no gold", "Yes [the-lantern.md]", nil, "0 0 0 1 0 0"},
		{"entities", "Yes [https://tides.example/a_b]", []string{"Tides &amp; moons"}, "1 1 1 1 1 0"},
	} {
		s := New(c.answer, c.gold, seen)
		if got := fmt.Sprint(s.Gold, s.Found, s.Named, s.Cited, s.Right, s.Wild); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		s    Score
		want string
	}{
		{Score{}, "0 false, 0 false, 0 false"},
		{Score{Cited: 3}, "0 false, 0 false, 0 false"},
		{Score{Gold: 2}, "0 true, 0 false, 0 true"},
		{Score{Gold: 2, Found: 2, Named: 1, Cited: 4, Right: 1}, "0.5 true, 0.25 true, 1 true"},
	} {
		r, rok := c.s.Recall()
		p, pok := c.s.Precision()
		e, eok := c.s.Evidence()
		if got := fmt.Sprintf("%v %v, %v %v, %v %v", r, rok, p, pok, e, eok); got != c.want {
			t.Errorf("%+v: %s, not %s", c.s, got, c.want)
		}
	}
}

// Exact match looks at an answer without its citations, and with all else.
func TestWithout(t *testing.T) {
	seen := Seen(results)
	for answer, want := range map[string]string{
		"Ottla Brunec [the-lantern.md]":            "Ottla Brunec",
		"Ottla [voss.md] Brunec (the-lantern.md).": "Ottla Brunec.",
		"A <cite><id>voss.md</id></cite>, B":       "A, B",
		"[sic] A (1887) [made-up.md]":              "[sic] A (1887) [made-up.md]",
		"A (voss.md, and more)":                    "A (voss.md, and more)",
		"A [moon](https://tides.example/a_b)":      "A [moon](https://tides.example/a_b)",
		"A [voss.md":                               "A [voss.md",
		"":                                         "",
		"([voss.md]) x":                            "x",
	} {
		if got := Without(answer, seen); got != want {
			t.Errorf("%q: %q, not %q", answer, got, want)
		}
	}
}

// Whatever an answer holds, its marks lie in it and hold what they say.
func FuzzMarks(f *testing.F) {
	for _, s := range []string{"", "[a](b.c)", "[(", "](", "((((", "[[]]", "<cite>[</cite>]", "【x】", "（[", strings.Repeat("[(", 999) + ")]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		for _, m := range marks(answer) {
			if !strings.Contains(answer[m.start:m.end], m.inner) || len(m.inner) > markLimit {
				t.Errorf("%q: %+v", answer, m)
			}
		}
		New(answer, []string{answer}, Seen([]string{answer}))
		Without(answer, Seen([]string{answer}))
	})
}
