package corpus

import (
	"database/sql"
	"testing"
)

// plainIndex makes what SQLite offers by itself, as a baseline.
func plainIndex(b *testing.B, path string, n int, text func() string) {
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE t USING fts5(text); BEGIN"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO t(text) VALUES(?)")
	if err != nil {
		b.Fatal(err)
	}
	defer insert.Close()
	for range n {
		if _, err := insert.Exec(text()); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.Exec("COMMIT"); err != nil {
		b.Fatal(err)
	}
}

// plainSearch gives the passages that SQLite's own bm25() ranks best.
func plainSearch(b *testing.B, x *Index, expression string) {
	rows, err := x.db.QueryContext(b.Context(), `
		SELECT p.text FROM (SELECT rowid AS num, rank AS score FROM terms WHERE terms MATCH ? ORDER BY rank LIMIT 5) s
		JOIN passages p ON p.num = s.num ORDER BY s.score`, expression)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			b.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}
