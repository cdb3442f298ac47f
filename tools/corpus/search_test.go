package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"runtime"
	"stopgap/tools"
	"sync"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

const demo = "../../docs/demo/corpus"

func TestSearch(t *testing.T) {
	cfg := newCorpus(t, files{
		"moon.md":    "# The Moon\n\nIt goes round the Earth.",
		"tides.md":   "# Tides\n\nThe moon makes the tides. The sun helps.",
		"cafe.md":    "# Café Čapek\n\nCrème brûlée on Straße 5.",
		"zh.md":      "# 天文台\n\n天文台在山上。望远镜很大。",
		"ja.md":      "# 灯台\n\n灯台は島にあります。ラーメンもある。",
		"ko.md":      "# 등대\n\n등대는 섬에 있습니다.",
		"same-a.md":  "twin words",
		"same-b.md":  "twin words",
		"equal-1.md": "# One\n\nwalrus",
		"equal-2.md": "# Two\n\nwalrus",
		"equal-3.md": "# Six\n\nwalrus",
	})
	x := mustOpen(t, cfg)
	tests := []struct{ query, want string }{
		{"moon", "moon.md tides.md"}, // the title counts more
		{"MOON", "moon.md tides.md"},
		{"capek", "cafe.md"},
		{"CREME BRULEE", "cafe.md"},
		{"strasse", "cafe.md"},
		{"天文", "zh.md"},
		{"望远镜", "zh.md"},
		{"山上", "zh.md"},
		{"镜", "zh.md"},
		{"大", "zh.md"}, // the last character of a run
		{"ラーメン", "ja.md"},
		{"島", "ja.md"},
		{"섬에", "ko.md"},
		{"walrus", "equal-1.md equal-2.md equal-3.md"}, // equal scores: by id
		{"nothing-such", ""},
		{"??", ""},
	}
	for _, tt := range tests {
		if got := ids(t, x, tt.query); got != tt.want {
			t.Errorf("%q finds %q, want %q", tt.query, got, tt.want)
		}
	}
	found, err := x.Search(t.Context(), []string{"moon", "walrus"}, 2)
	if err != nil || len(found) != 2 || len(found[0].Hits) != 2 || len(found[1].Hits) != 2 {
		t.Errorf("got %+v, %v", found, err)
	}
	if h := found[0].Hits; h[0].Score <= h[1].Score || h[1].Score <= 0 {
		t.Errorf("scores %v, %v", h[0].Score, h[1].Score)
	}
	if found, err := x.Search(t.Context(), []string{"moon"}, 0); err != nil || len(found[0].Hits) != 0 {
		t.Errorf("no hits wanted: %+v, %v", found, err)
	}
	if found, err := x.Search(t.Context(), nil, 5); err != nil || len(found) != 0 {
		t.Errorf("no queries: %+v, %v", found, err)
	}
}

func TestHitsLookDifferent(t *testing.T) {
	list := files{"long.md": "# Whales\n\n"}
	for i := range 20 {
		list[fmt.Sprintf("copy/%02d/whale.md", i)] = "# Copy\n\nA whale."
		list["long.md"] += fmt.Sprintf("## Part %d\n\nA whale of kind %d. %s\n\n", i, i, strings.Repeat("More about it. ", 100))
	}
	list["other.md"] = "# Other\n\nA whale too."
	x := mustOpen(t, newCorpus(t, list))
	found, err := x.Search(t.Context(), []string{"whale"}, 5)
	if err != nil {
		t.Fatal(err)
	}
	// One of the copies, the other one, and passages of the long one.
	documents := map[string]int{}
	lines := map[string]bool{}
	for _, h := range found[0].Hits {
		documents[h.Document]++
		lines[h.Title+h.Snippet] = true
	}
	if len(found[0].Hits) != 5 || len(lines) != 5 || documents["copy/00/whale.md"] != 1 || documents["other.md"] != 1 || documents["long.md"] != 3 {
		t.Errorf("got %v\n%s", documents, Render(found))
	}
}

func TestHostileQueries(t *testing.T) {
	x := mustOpen(t, newCorpus(t, files{"a.md": "a near title and or not x", "zh.md": "天气"}))
	for _, q := range append(hostile, strings.Repeat("x ", 1<<20)) {
		found, err := x.Search(t.Context(), []string{q}, 5)
		if err != nil {
			t.Errorf("%.40q: %v", q, err)
			continue
		}
		if text := Render(found); !utf8.ValidString(text) || text == "" || len(text) > 2000 {
			t.Errorf("%.40q gives %.80q", q, text)
		}
	}
	if got := ids(t, x, "a"); got != "a.md" {
		t.Errorf("afterwards %q", got)
	}
}

// The rare word decides among very frequent ones, and thousands of equal hits are
// in the order of their ids.
func TestVeryFrequentWords(t *testing.T) {
	const n = 3500
	var b strings.Builder
	for i := range n {
		rare := ""
		if i == 1234 || i == 2345 {
			rare = "heliograph"
		}
		if i == 2345 {
			rare += " at last" // a longer text scores less
		}
		fmt.Fprintf(&b, `{"id":"%04d","text":"the island of %s"}`+"\n", n-1-i, rare)
	}
	x := mustOpen(t, newCorpus(t, files{"many.jsonl": b.String()}))
	if got := ids(t, x, "the heliograph of the island"); got != "2265 1154 0000 0001 0002 0003 0004 0005 0006 0007" {
		t.Errorf("found %q", got)
	}
	if got := ids(t, x, "island"); got != "0000 0001 0002 0003 0004 0005 0006 0007 0008 0009" {
		t.Errorf("found %q", got)
	}
}

// TestManySearches: however many search at once, an index has a few connections,
// and keeps them.
func TestManySearches(t *testing.T) {
	x := mustOpen(t, newCorpus(t, files{"a.md": "island", "b.md": "harbour"}))
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 5 {
				if got := ids(t, x, "island"); got != "a.md" {
					t.Errorf("found %q", got)
				}
			}
		})
	}
	all.Wait()
	if s := x.db.Stats(); s.OpenConnections > max(4, runtime.GOMAXPROCS(0)) || s.MaxIdleClosed > 0 {
		t.Errorf("%d connections are open, %d were closed meanwhile", s.OpenConnections, s.MaxIdleClosed)
	}
}

// TestBM25 compares the scores with the formula, worked out here over the whole
// corpus word by word.
func TestBM25(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("a b c d e f g h i j k l m n o p")
	some := func(n int) []string {
		var out []string
		for range n {
			out = append(out, words[min(rng.IntN(len(words)), rng.IntN(len(words)))])
		}
		return out
	}
	titles, texts, list := map[string][]string{}, map[string][]string{}, files{}
	total := 0.0
	for i := range 60 {
		id := fmt.Sprintf("%02d.md", i)
		titles[id], texts[id] = some(1+i%3), some(1+rng.IntN(30))
		total += float64(len(titles[id]) + len(texts[id]))
		list[id] = "# " + strings.Join(titles[id], " ") + "\n\n" + strings.Join(texts[id], " ")
	}
	count := func(list []string, word string) (n float64) {
		for _, w := range list {
			if w == word {
				n++
			}
		}
		return n
	}
	x := mustOpen(t, newCorpus(t, list))
	for _, query := range []string{"a", "p", "a b c", "m n o p", "a p", "p z"} {
		found, err := x.Search(t.Context(), []string{query}, 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found[0].Hits {
			want := 0.0
			for _, w := range strings.Fields(query) {
				n := 0.0
				for id := range texts {
					if count(titles[id], w)+count(texts[id], w) > 0 {
						n++
					}
				}
				f := 3*count(titles[h.ID], w) + count(texts[h.ID], w)
				length := float64(len(titles[h.ID]) + len(texts[h.ID]))
				want += math.Log(1+(60-n+0.5)/(n+0.5)) * f * 2.2 / (f + 1.2*(0.25+0.75*length/(total/60)))
			}
			if math.Abs(h.Score-want) > 1e-9 {
				t.Errorf("%q scores %s %v, want %v", query, h.ID, h.Score, want)
			}
		}
		if len(found[0].Hits) == 0 {
			t.Errorf("%q finds nothing", query)
		}
	}
}

func TestRead(t *testing.T) {
	long := "# Long\n\n"
	for i := range 400 {
		long += fmt.Sprintf("This is sentence %d of a long document, and it goes on for a while.\n\n", i)
	}
	x := mustOpen(t, newCorpus(t, files{
		"long.md": long, "notes/short.md": "# Short\n\nText.", "odd#1.md": "odd",
	}))
	hit, err := x.Search(t.Context(), []string{"sentence 200"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := hit[0].Hits[0].ID
	if !strings.HasPrefix(id, "long.md#") || hit[0].Hits[0].Document != "long.md" {
		t.Fatalf("got %+v", hit)
	}
	d, err := x.Read(t.Context(), id)
	if err != nil || d.ID != id || !strings.Contains(d.Text, "sentence 200 ") || strings.Contains(d.Text, "sentence 0 ") ||
		utf8.RuneCountInString(d.Text) > readWindow+2*passageRunes || strings.Count(d.Text, "characters left out …]") != 2 {
		t.Errorf("read %s: %d characters, %v", id, utf8.RuneCountInString(d.Text), err)
	}
	d, err = x.Read(t.Context(), "long.md")
	if err != nil || !strings.Contains(d.Text, "sentence 0 ") || !strings.Contains(d.Text, "sentence 399 ") {
		t.Errorf("read whole: %d bytes, %v", len(d.Text), err)
	}
	for _, id := range []string{"notes/short.md", " [notes/short.md] ", "`notes/short.md`", "odd#1.md"} {
		if _, err := x.Read(t.Context(), id); err != nil {
			t.Errorf("read %q: %v", id, err)
		}
	}
	for id, near := range map[string]string{
		"short.md": "notes/short.md", "notes/shrot.md": "notes/short.md", "long.md#999": "long.md",
		"": "", "utterly different": "", "'; DROP TABLE documents; --": "", strings.Repeat("x", 1<<20): "",
	} {
		_, err := x.Read(t.Context(), id)
		var none *NotFoundError
		if !errors.As(err, &none) {
			t.Errorf("read %.40q: %v", id, err)
			continue
		}
		if got := strings.Join(none.Near, " "); !strings.HasPrefix(got, near) || near == "" && got != "" {
			t.Errorf("near %.40q: %q, want %q", id, got, near)
		}
	}
}

// TestDistance: ids are compared as long as there is time for it; one that has
// the other in it is found anyway.
func TestDistance(t *testing.T) {
	cells := 100
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"abcdefghij", "abcdefghik", 1},
		{"abcdefghij", "abcdefghik", -1}, // none are left
		{"abc", "x/abc.md", 0},
		{"", "abc", -1},
	} {
		if got := distance(c.a, c.b, &cells); got != c.want {
			t.Errorf("%q and %q: %d, not %d", c.a, c.b, got, c.want)
		}
	}
}

func TestTools(t *testing.T) {
	x := mustOpen(t, Config{Path: demo, Index: filepath.Join(t.TempDir(), "i.db"), Hits: 1})
	set, err := tools.NewSet(x.Tools(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, args string
		status     tools.Status
		has        string
	}{
		{"search", `{"query":["largest telescope of the Halden Observatory"]}`, tools.OK, "Halden Observatory. The Halden Observatory was opened"},
		{"search", `{"query":"the Lantern mirror"}`, tools.OK, "[the-lantern.md] (score "},
		{"search", `{"query":["comet","天文台"]}`, tools.OK, "\n\nResults for \"天文台\":\n"},
		{"search", `{"query":["comet","zzz"]}`, tools.OK, "No results for \"zzz\". Try other words."},
		{"search", `{"query":"?!"}`, tools.OK, `The query "?!" has no words to look for.`},
		{"search", `{"query":[]}`, tools.BadArguments, "minItems: got 0, want 1"},
		{"search", `{"query":7}`, tools.BadArguments, "got number, want string or array"},
		{"search", `{}`, tools.BadArguments, "missing property 'query'"},
		{"read", `{"id":"drell.md"}`, tools.OK, "Drell [drell.md]\n\nDrell is the northernmost"},
		{"read", `{"id":"drel.md"}`, tools.Failed, `no document has the id "drel.md". Similar ids: drell.md`},
	}
	for _, tt := range tests {
		res := set.Session().Run(t.Context(), []tools.Call{{Name: tt.name, Arguments: json.RawMessage(tt.args)}})[0]
		if res.Status != tt.status || !strings.Contains(res.Content, tt.has) {
			t.Errorf("%s(%s) = %s %q, want %s with %q", tt.name, tt.args, res.Status, res.Content, tt.status, tt.has)
		}
	}
}

// TestRender holds the form of the results that models are trained on, over
// the documents of the demonstration.
func TestRender(t *testing.T) {
	x := mustOpen(t, Config{Path: demo, Index: filepath.Join(t.TempDir(), "i.db")})
	var b strings.Builder
	for _, queries := range [][]string{
		{"largest telescope of the Halden Observatory"},
		{"Lantern mirror ground by"},
		{"lighthouse first lit", "天文台 开放", "submarine", "…"},
		{"submarine"},
	} {
		found, err := x.Search(t.Context(), queries, 3)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %s\n%s\n\n", strings.Join(queries, " | "), Render(found))
	}
	found := []Found{{Query: "q", Terms: 1, Hits: []Hit{
		{ID: "a.md", Title: "Is it so?", Snippet: "Yes.", Score: 12.305},
		{ID: "b.md#2", Title: strings.Repeat("Long ", 40), Snippet: "Two\nlines.", Score: 0.004},
	}}}
	fmt.Fprintf(&b, "== forms\n%s\n", Render(found))
	const golden = "testdata/render.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Every document of the demonstration is what a search for its title gives.
func TestDemoCorpus(t *testing.T) {
	x := mustOpen(t, Config{Path: demo, Index: filepath.Join(t.TempDir(), "i.db")})
	entries, err := os.ReadDir(demo)
	if err != nil {
		t.Fatal(err)
	}
	if x.Stats().Documents != len(entries) {
		t.Errorf("%d documents of %d files", x.Stats().Documents, len(entries))
	}
	for _, e := range entries {
		d, err := x.Read(t.Context(), e.Name())
		if err != nil {
			t.Fatal(err)
		}
		found, err := x.Search(t.Context(), []string{d.Title}, 1)
		if err != nil || len(found[0].Hits) != 1 || found[0].Hits[0].ID != e.Name() {
			t.Errorf("%q finds %+v, %v", d.Title, found, err)
		}
	}
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	x, err := Open(ctx, Config{Path: demo, Index: filepath.Join(dir, "index.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Close()
	found, err := x.Search(ctx, []string{"Who ground the mirror of the Lantern?"}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(Render(found))
	// Output:
	// The Lantern. The Lantern is a mirror telescope with an opening of 2.1 metres. Its mirror was ground by Ilse Marrow in a herring shed. [the-lantern.md] (score 8.80)
}
