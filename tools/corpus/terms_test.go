package corpus

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
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

// hostile are queries that mean something to FTS5 or SQL, or nothing at all.
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
	db, err := sql.Open("sqlite", dataSource(filepath.Join(f.TempDir(), "fuzz.db")))
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(schema); err != nil {
		f.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO terms(title, text) VALUES('a b', 'near and or not 天文 文')"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		terms := queryTerms(query)
		if len(terms) == 0 {
			return
		}
		for _, term := range terms {
			if !utf8.ValidString(term.text) || len(term.text) > 4*maxTermBytes {
				t.Fatalf("bad term %q", term.text)
			}
		}
		var n int
		if err := db.QueryRow("SELECT count(*) FROM terms WHERE terms MATCH ?", match(terms)).Scan(&n); err != nil {
			t.Fatalf("%q gives %s: %v", query, match(terms), err)
		}
		// What a query looks for is found in a document of the same text.
		doc, _ := searchable(query)
		res, err := db.Exec("INSERT INTO terms(title, text) VALUES('', ?)", doc)
		if err != nil {
			t.Fatal(err)
		}
		row, err := res.LastInsertId()
		if err != nil {
			t.Fatal(err)
		}
		for i := range terms {
			const found = "SELECT count(*) FROM terms WHERE terms MATCH ? AND rowid = ?"
			if err := db.QueryRow(found, match(terms[i:i+1]), row).Scan(&n); err != nil || n != 1 {
				t.Fatalf("term %q of %q is not found in %q: %v", terms[i].text, query, doc, err)
			}
		}
		if _, err := db.Exec("INSERT INTO terms(terms, rowid, title, text) VALUES('delete', ?, '', ?)", row, doc); err != nil {
			t.Fatal(err)
		}
	})
}
