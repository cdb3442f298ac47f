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
	statements []*sql.Stmt
}

func newWriter(ctx context.Context, conn *sql.Conn) (*writer, error) {
	w := &writer{conn: conn}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&w.byPath, "SELECT num, size, mtime, hash, collided, skips FROM files WHERE path = ?"},
		{&w.document, "INSERT INTO documents(id, file, title, text) VALUES(?, ?, ?, ?) ON CONFLICT(id) DO NOTHING"},
		{&w.passage, "INSERT INTO passages(document, part, start, stop) VALUES(?, ?, ?, ?)"},
		{&w.terms, "INSERT INTO terms(rowid, title, text) VALUES(?, ?, ?)"},
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
	const mine = "(SELECT num FROM documents WHERE file = ?)"
	statements := []string{
		"DELETE FROM terms WHERE rowid IN (SELECT num FROM passages WHERE document IN " + mine + ")",
		"DELETE FROM passages WHERE document IN " + mine,
		"DELETE FROM documents WHERE file = ?",
	}
	if record {
		statements = append(statements, "DELETE FROM files WHERE num = ?")
	}
	for _, s := range statements {
		if _, err := w.conn.ExecContext(ctx, s, file); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a document with its passages. It reports false where another
// document has the id.
func (w *writer) insert(ctx context.Context, file int64, d Document) (bool, error) {
	res, err := w.document.ExecContext(ctx, d.ID, file, d.Title, d.Text)
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
	title := searchable(d.Title)
	list := passages(d.Text, passageRunes)
	for i, p := range list {
		part := i + 1
		if len(list) == 1 {
			part = 0
		}
		res, err := w.passage.ExecContext(ctx, num, part, p.start, p.end)
		if err != nil {
			return false, err
		}
		row, err := res.LastInsertId()
		if err != nil {
			return false, err
		}
		if _, err := w.terms.ExecContext(ctx, row, title, searchable(d.Text[p.start:p.end])); err != nil {
			return false, err
		}
	}
	return true, nil
}
