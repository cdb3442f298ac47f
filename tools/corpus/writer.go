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
	passages   *sql.Stmt
	statements []*sql.Stmt

	// What the transaction adds to the sums in meta, and to the inverted index.
	addedPassages, addedTerms int
	postings                  postings
	next                      int64 // the number of the next passage; -1 before it is looked up
}

func newWriter(ctx context.Context, conn *sql.Conn) (*writer, error) {
	w := &writer{conn: conn, postings: newPostings(), next: -1}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&w.byPath, "SELECT num, size, mtime, hash, collided, skips, bytes, lines FROM files WHERE path = ?"},
		{&w.document, "INSERT INTO documents(id, file, title) VALUES(?, ?, ?) ON CONFLICT(id) DO NOTHING"},
		{&w.passage, "INSERT INTO passages(num, document, part, lead, text) VALUES(?, ?, ?, ?, ?)"},
		{&w.passages, "SELECT num, lead || text FROM passages WHERE document = ?"},
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
	err = w.byPath.QueryRowContext(ctx, path).Scan(&rec.num, &rec.size, &rec.mtime, &rec.hash, &rec.collided, &skips, &rec.bytes, &rec.lines)
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
			"UPDATE files SET size = ?, mtime = ?, hash = ?, collided = ?, skips = ?, bytes = ?, lines = ? WHERE num = ?",
			rec.size, rec.mtime, hash, rec.collided, skips, rec.bytes, rec.lines, rec.num)
		return err
	}
	res, err := w.conn.ExecContext(ctx,
		"INSERT INTO files(path, size, mtime, hash, collided, skips, bytes, lines) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
		path, rec.size, rec.mtime, hash, rec.collided, skips, rec.bytes, rec.lines)
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

// forget removes a document.
func (w *writer) forget(ctx context.Context, d stored) error {
	rows, err := w.passages.QueryContext(ctx, d.num)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var num int64
		var text string
		if err := rows.Scan(&num, &text); err != nil {
			return err
		}
		c := countTerms(d.title, text)
		w.postings.remove(num, c)
		w.addedPassages--
		w.addedTerms -= c.length
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if w.postings.pending >= maxPending {
		if err := w.postings.write(ctx, w.conn); err != nil {
			return err
		}
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
	list := overlapping(d.Text)
	for i, p := range list {
		part := i + 1
		if len(list) == 1 {
			part = 0
		}
		row, err := w.number(ctx)
		if err != nil {
			return false, err
		}
		lead, text := d.Text[p.lead:p.start], d.Text[p.start:p.end]
		if _, err := w.passage.ExecContext(ctx, row, num, part, lead, text); err != nil {
			return false, err
		}
		c := countTerms(d.Title, d.Text[p.lead:p.end])
		w.postings.add(row, c)
		w.addedPassages++
		w.addedTerms += c.length
	}
	return true, nil
}

// number gives the number of a new passage.
func (w *writer) number(ctx context.Context) (int64, error) {
	if w.next < 0 {
		if err := w.conn.QueryRowContext(ctx, "SELECT next FROM meta").Scan(&w.next); err != nil {
			return 0, err
		}
	}
	if w.postings.full(w.next) {
		if err := w.postings.write(ctx, w.conn); err != nil {
			return 0, err
		}
	}
	w.next++
	return w.next - 1, nil
}

// total writes the postings and the sums that ranking needs. It belongs before
// each commit.
func (w *writer) total(ctx context.Context) error {
	if err := w.postings.write(ctx, w.conn); err != nil {
		return err
	}
	_, err := w.conn.ExecContext(ctx, `UPDATE meta
		SET passages = passages + ?, terms = terms + ?, next = max(next, ?), changes = changes + 1`,
		w.addedPassages, w.addedTerms, w.next)
	w.addedPassages, w.addedTerms, w.next = 0, 0, -1
	return err
}
