package corpus

import (
	"database/sql"
	"testing"
)

// plainIndex makes what SQLite offers by itself, as a baseline: a full-text table
// of n texts, in one transaction.
func plainIndex(b *testing.B, path string, n int, text func() string) *sql.DB {
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		b.Fatal(err)
	}
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
	return db
}

// plainSearch gives the texts that SQLite's own bm25() ranks best.
func plainSearch(b *testing.B, db *sql.DB, words string) {
	rows, err := db.QueryContext(b.Context(), "SELECT text FROM t WHERE t MATCH ? ORDER BY rank LIMIT 5", words)
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
