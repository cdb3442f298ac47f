package corpus

import (
	"context"
	"database/sql"
	"errors"
)

// A writer has the statements that change an index, prepared on one connection.
type writer struct {
	conn       *sql.Conn
	byPath     *sql.Stmt
	document   *sql.Stmt
	passage    *sql.Stmt
	terms      *sql.Stmt
	passages   *sql.Stmt
	unterms    *sql.Stmt
	statements []*sql.Stmt

	// What the transaction adds to the sums in meta.
	addedPassages, addedTerms int
	next                      int64 // the number of the next passage; zero before it is looked up
}

func newWriter(ctx context.Context, conn *sql.Conn) (*writer, error) {
	w := &writer{conn: conn}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&w.byPath, "SELECT num, size, mtime, hash, collided, skips FROM files WHERE path = ?"},
		{&w.document, "INSERT INTO documents(id, file, title) VALUES(?, ?, ?) ON CONFLICT(id) DO NOTHING"},
		{&w.passage, "INSERT INTO passages(num, document, part, lead, text, terms) VALUES(?, ?, ?, ?, ?, ?)"},
		{&w.terms, "INSERT INTO terms(rowid, title, text) VALUES(?, ?, ?)"},
		{&w.passages, "SELECT num, lead || text FROM passages WHERE document = ?"},
		{&w.unterms, "INSERT INTO terms(terms, rowid, title, text) VALUES('delete', ?, ?, ?)"},
	} {
		s, err := conn.PrepareContext(ctx, p.query)
		if err != nil {
			w.close()
			return nil, err
		}
		*p.to = s
		w.statements = append(w.statements, s)
	}
	return w, nil
}

func (w *writer) close() {
	for _, s := range w.statements {
		_ = s.Close()
	}
}

// records gives what the index knows of all files, by path, without the hashes.
func (w *writer) records(ctx context.Context) (map[string]record, error) {
	rows, err := w.conn.QueryContext(ctx, "SELECT path, num, size, mtime, collided, skips FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := make(map[string]record)
	for rows.Next() {
		var path, skips string
		var rec record
		if err := rows.Scan(&path, &rec.num, &rec.size, &rec.mtime, &rec.collided, &skips); err != nil {
			return nil, err
		}
		if rec.skips, err = decodeSkips(skips); err != nil {
			return nil, err
		}
		known[path] = rec
	}
	return known, rows.Err()
}

// record gives what the index knows of a file; number zero is nothing.
func (w *writer) record(ctx context.Context, path string) (rec record, err error) {
	var skips string
	err = w.byPath.QueryRowContext(ctx, path).Scan(&rec.num, &rec.size, &rec.mtime, &rec.hash, &rec.collided, &skips)
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, nil
	}
	if err == nil {
		rec.skips, err = decodeSkips(skips)
	}
	return rec, err
}

// save keeps a record. A new one gets its number.
func (w *writer) save(ctx context.Context, path string, rec *record) error {
	skips, err := encodeSkips(rec.skips)
	if err != nil {
		return err
	}
	hash := rec.hash
	if hash == nil {
		hash = []byte{}
	}
	if rec.num != 0 {
		_, err = w.conn.ExecContext(ctx,
			"UPDATE files SET size = ?, mtime = ?, hash = ?, collided = ?, skips = ? WHERE num = ?",
			rec.size, rec.mtime, hash, rec.collided, skips, rec.num)
		return err
	}
	res, err := w.conn.ExecContext(ctx,
		"INSERT INTO files(path, size, mtime, hash, collided, skips) VALUES(?, ?, ?, ?, ?, ?)",
		path, rec.size, rec.mtime, hash, rec.collided, skips)
	if err != nil {
		return err
	}
	rec.num, err = res.LastInsertId()
	return err
}

// remove takes the documents of a file out of the index, and its record with
// them if record is set.
func (w *writer) remove(ctx context.Context, file int64, record bool) error {
	if file == 0 {
		return nil
	}
	for {
		list, err := w.some(ctx, file)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		for _, d := range list {
			if err := w.forget(ctx, d); err != nil {
				return err
			}
		}
	}
	if !record {
		return nil
	}
	_, err := w.conn.ExecContext(ctx, "DELETE FROM files WHERE num = ?", file)
	return err
}

// A stored document is one that is in the index.
type stored struct {
	num   int64
	title string
}

// some gives a few of a file's documents.
func (w *writer) some(ctx context.Context, file int64) ([]stored, error) {
	rows, err := w.conn.QueryContext(ctx, "SELECT num, title FROM documents WHERE file = ? LIMIT 500", file)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []stored
	for rows.Next() {
		var d stored
		if err := rows.Scan(&d.num, &d.title); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, rows.Err()
}

// forget removes a document. The full-text index wants to be told the words
// that it is to forget.
func (w *writer) forget(ctx context.Context, d stored) error {
	rows, err := w.passages.QueryContext(ctx, d.num)
	if err != nil {
		return err
	}
	defer rows.Close()
	title, titleTerms := searchable(d.title)
	for rows.Next() {
		var num int64
		var text string
		if err := rows.Scan(&num, &text); err != nil {
			return err
		}
		words, terms := searchable(text)
		if _, err := w.unterms.ExecContext(ctx, num, title, words); err != nil {
			return err
		}
		w.count(-1, -titleTerms-terms)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM embedded WHERE passage IN (SELECT num FROM passages WHERE document = ?)",
		"DELETE FROM passages WHERE document = ?",
		"DELETE FROM documents WHERE num = ?",
	} {
		if _, err := w.conn.ExecContext(ctx, statement, d.num); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a document with its passages. It reports false where another
// document has the id.
func (w *writer) insert(ctx context.Context, file int64, d Document) (bool, error) {
	res, err := w.document.ExecContext(ctx, d.ID, file, d.Title)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	num, err := res.LastInsertId()
	if err != nil {
		return false, err
	}
	title, titleTerms := searchable(d.Title)
	list := overlapping(d.Text)
	for i, p := range list {
		part := i + 1
		if len(list) == 1 {
			part = 0
		}
		lead, text := d.Text[p.lead:p.start], d.Text[p.start:p.end]
		words, terms := searchable(d.Text[p.lead:p.end])
		row, err := w.number(ctx)
		if err != nil {
			return false, err
		}
		if _, err := w.passage.ExecContext(ctx, row, num, part, lead, text, titleTerms+terms); err != nil {
			return false, err
		}
		if _, err := w.terms.ExecContext(ctx, row, title, words); err != nil {
			return false, err
		}
		w.count(1, titleTerms+terms)
	}
	return true, nil
}

// number gives the number of a new passage.
func (w *writer) number(ctx context.Context) (int64, error) {
	if w.next == 0 {
		if err := w.conn.QueryRowContext(ctx, "SELECT next FROM meta").Scan(&w.next); err != nil {
			return 0, err
		}
	}
	w.next++
	return w.next - 1, nil
}

// count notes passages that were added, and the terms in them.
func (w *writer) count(passages, terms int) {
	w.addedPassages += passages
	w.addedTerms += terms
}

// total keeps the sums that ranking needs. It belongs before each commit.
func (w *writer) total(ctx context.Context) error {
	_, err := w.conn.ExecContext(ctx, `UPDATE meta
		SET passages = passages + ?, terms = terms + ?, next = max(next, ?), changes = changes + 1`,
		w.addedPassages, w.addedTerms, w.next)
	w.addedPassages, w.addedTerms, w.next = 0, 0, 0
	return err
}
