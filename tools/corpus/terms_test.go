package corpus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func list(text string, query bool) string {
	var terms []string
	eachTerm(text, query, func(t term) {
		if t.prefix {
			t.text += "*"
		}
		terms = append(terms, t.text)
	})
	return strings.Join(terms, " ")
}

func TestTerms(t *testing.T) {
	tests := []struct{ text, document, query string }{
		{"", "", ""},
		{"!? …", "", ""},
		{"The Lantern's mirror", "the lantern s mirror", "the lantern s mirror"},
		{"Ærøskøbing Straße ΣΊΣΥΦΟΣ Čapek e\u0301te\u0301", "ærøskøbing strasse σισυφοσ capek ete", ""},
		{"3.14 km²", "3 14 km2", ""},
		{"snake_case-word", "snake case word", ""},
		{"天文台", "天文 文台 台", "天文 文台"},
		{"天文", "天文 文", "天文"},
		{"天", "天", "天*"},
		{"天文台在Korvane岛", "天文 文台 台在 在 korvane 岛", "天文 文台 台在 korvane 岛*"},
		{"ラーメン ﾗｰﾒﾝ", "ラー ーメ メン ン ラー ーメ メン ン", "ラー ーメ メン ラー ーメ メン"},
		{"が か\u3099", "が が", "が* が*"},
		{"한국어", "한국 국어 어", "한국 국어"},
		{"ＡＢＣ１２", "abc12", "abc12"},
		{"संस्कृत", "संस्कृत", "संस्कृत"},
		{strings.Repeat("x", 100), strings.Repeat("x", 64), ""},
		{strings.Repeat("é", 100), strings.Repeat("e", 64), ""},
		{"a\x00b\xffc", "a b c", ""},
	}
	for _, tt := range tests {
		if got := list(tt.text, false); got != tt.document {
			t.Errorf("terms of %q: %q, want %q", tt.text, got, tt.document)
		}
		if got := list(tt.text, true); tt.query != "" && got != tt.query {
			t.Errorf("terms of query %q: %q, want %q", tt.text, got, tt.query)
		}
	}
}

func TestQueryTermsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "w%d w%d ", i, i)
	}
	if n := len(queryTerms(b.String())); n != maxQueryTerms {
		t.Errorf("%d terms, want %d", n, maxQueryTerms)
	}
	if got := queryTerms(strings.Repeat(" ", maxQueryBytes) + "late"); len(got) != 0 {
		t.Errorf("got %v from behind the cap", got)
	}
	if got := queryTerms(strings.Repeat("天", maxQueryBytes)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

// hostile are queries that mean something to a search engine or SQL, or nothing
// at all.
var hostile = []string{
	`"`, `""`, `a"b`, `*`, `a*`, `NEAR(a b)`, `NEAR(`, `a AND`, `NOT a`, `title:a`, `{title}:a`, `^a`, `-a`,
	`'; DROP TABLE documents; --`, `a OR`, "a\x00b", "\x00", "\xff\xfe", "(", "a)", "a + b", ":", `\`, "?1",
	"天*", "，。", "a\u0301\u0301", "\u0301", "½ ⑴ ﷺ", strings.Repeat(`"`, 1000), strings.Repeat("a ", 5000),
}

// FuzzQuery holds the promise that no query is ever an error of the index.
func FuzzQuery(f *testing.F) {
	for _, q := range hostile {
		f.Add(q)
	}
	x, err := Open(context.Background(), Config{Path: "fuzz", FS: fstest.MapFS{"a.md": {Data: []byte("a b near and or not 天文 文")}}})
	if err != nil {
		f.Fatal(err)
	}
	defer x.Close()
	f.Fuzz(func(t *testing.T, query string) {
		terms := queryTerms(query)
		for _, term := range terms {
			if !utf8.ValidString(term.text) || len(term.text) > 4*maxTermBytes {
				t.Fatalf("bad term %q", term.text)
			}
		}
		found, err := x.Search(t.Context(), []string{query}, 3)
		if err != nil || found[0].Terms != len(terms) {
			t.Fatalf("%q gives %+v: %v", query, found, err)
		}
		// What a query looks for is found in a document of the same text.
		c := countTerms("", query)
		for _, term := range terms {
			if c.of[term.text] == 0 && !(term.prefix && slices.ContainsFunc(slices.Collect(maps.Keys(c.of)), term.matches)) {
				t.Fatalf("term %q of %q is not in %v", term.text, query, c.of)
			}
		}
	})
}
