package corpus

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Every index file carries these in SQLite's header. The version changes with
// the tables, the way text is cut into passages and terms, and what is kept of
// a document; an index of another version is built anew.
const (
	applicationID = 0x73746770 // "stgp"
	schemaVersion = 4
)

// The index. The texts of a document's passages, joined, are its text; lead is
// the end of the passage before, which is searched with it. postings.go tells
// what is in postings and lengths.
//
// Of a file that is not read to its end, bytes and lines say how far it is, and
// hash is that of these bytes; of others bytes is zero.
//
// A vector belongs to a text, not to a passage: a text that moves or comes back
// needs no new one. embedded says which passage has which. Passages are numbered
// by meta.next, and no number is given twice, so that a vector that another
// process waits for never gets to a text that came meanwhile. meta.changes
// counts the transactions that changed passages or vectors.
const schema = `
CREATE TABLE meta(
	corpus TEXT NOT NULL,
	passages INTEGER NOT NULL,
	terms INTEGER NOT NULL,
	next INTEGER NOT NULL,
	changes INTEGER NOT NULL,
	embedder TEXT NOT NULL,
	probe BLOB NOT NULL);
CREATE TABLE files(
	num INTEGER PRIMARY KEY,
	path TEXT NOT NULL UNIQUE,
	size INTEGER NOT NULL,
	mtime INTEGER NOT NULL,
	hash BLOB NOT NULL,
	collided INTEGER NOT NULL,
	skips TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	lines INTEGER NOT NULL);
CREATE TABLE documents(
	num INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	file INTEGER NOT NULL,
	title TEXT NOT NULL);
CREATE INDEX documents_file ON documents(file);
CREATE TABLE passages(
	num INTEGER PRIMARY KEY,
	document INTEGER NOT NULL,
	part INTEGER NOT NULL,
	lead TEXT NOT NULL,
	text TEXT NOT NULL);
CREATE INDEX passages_document ON passages(document, part);
CREATE TABLE vectors(
	num INTEGER PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	vector BLOB NOT NULL);
CREATE TABLE embedded(passage INTEGER PRIMARY KEY, vector INTEGER NOT NULL);
CREATE TABLE postings(
	term TEXT NOT NULL,
	chunk INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY(term, chunk)) WITHOUT ROWID;
CREATE TABLE lengths(chunk INTEGER PRIMARY KEY, data BLOB NOT NULL);`

// Why an index was thrown away.
const (
	noteDamaged = "the index file was damaged"
	noteVersion = "the index file was made by another version"
	noteCorpus  = "the index file was made for another corpus"
)

// errForeign guards files that are not ours: an index path that was mistyped
// must not cost the user a file.
var errForeign = errors.New("the file exists and is no index of documents; name another")

// errClosed is what SQLite says in other words.
var errClosed = errors.New("it cannot be opened; it and its folder must be yours to read and to write")

// openStore opens the index file, with its tables in place. chosen says that
// the user named the file. The note says why an older index was thrown away.
// After an error the database may be there; the caller closes it.
func openStore(ctx context.Context, path, corpus string, chosen bool) (db *sql.DB, note string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, "", &IndexError{Path: path, Err: bare(err)}
	}
	db, err = openFile(ctx, path)
	if errors.Is(err, errForeign) && !chosen {
		note = noteDamaged
		if err := removeStore(path); err != nil {
			return nil, note, &IndexError{Path: path, Err: bare(err)}
		}
		db, err = openFile(ctx, path)
	}
	if err != nil {
		return db, note, err
	}
	err = patient(ctx, nil, func() error {
		_, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
	if err != nil {
		return db, note, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return db, note, err
	}
	defer conn.Close()
	changed, err := prepare(ctx, conn, corpus)
	if note == "" {
		note = changed
	}
	return db, note, err
}

// openFile opens a file that may be used as an index: it is absent, empty, or has
// our mark. A new one is for its owner alone: it has the texts of the documents.
//
// SQLite is asked for the mark, and not the file, which may be open in this
// process: to close it would take the locks off it that SQLite holds.
func openFile(ctx context.Context, path string) (*sql.DB, error) {
	info, err := os.Stat(path)
	fresh := errors.Is(err, os.ErrNotExist)
	switch {
	case err != nil && !fresh:
		return nil, &IndexError{Path: path, Err: bare(err)}
	case !fresh && !info.Mode().IsRegular():
		return nil, &IndexError{Path: path, Err: errForeign}
	}
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return nil, &IndexError{Path: path, Err: err}
	}
	// A search computes, and each connection has a cache of its own: more of them
	// than processors make none faster.
	most := max(4, runtime.GOMAXPROCS(0))
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	var tables, id int
	err = patient(ctx, nil, func() error {
		// In this order: the mark is there as soon as any table is.
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
			return err
		}
		return db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id)
	})
	ours := id == applicationID || id == 0 && tables == 0
	switch {
	case damaged(err):
		ours = marked(path)
	case code(err) == sqlite3.SQLITE_CANTOPEN:
		err = &IndexError{Path: path, Err: errClosed}
	case err == nil && fresh:
		err = os.Chmod(path, 0o600)
	}
	if err == nil && !ours || damaged(err) && !ours {
		_ = db.Close() // nothing was written
		return nil, &IndexError{Path: path, Err: errForeign}
	}
	return db, err
}

// marked reports whether a file that SQLite cannot read has our mark in its
// header (https://sqlite.org/fileformat.html).
func marked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var header [100]byte
	_, err = io.ReadFull(f, header[:])
	return err == nil && strings.HasPrefix(string(header[:]), "SQLite format 3\x00") &&
		binary.BigEndian.Uint32(header[68:]) == applicationID
}

// inMemory is how SQLite calls a database that has no file.
const inMemory = ":memory:"

// memoryStore makes an index without a file. It lives in its connection, so
// there is only the one, and searches wait for each other.
func memoryStore(ctx context.Context, corpus string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", inMemory)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = prepare(ctx, conn, corpus)
		_ = conn.Close() // it goes back to the pool
	}
	if err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, err
	}
	return db, nil
}

// dataSource is the name of the database for the driver. NORMAL is safe in WAL
// mode: a power cut may lose the last commits, never the file.
func dataSource(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // a Windows drive
	}
	u.RawQuery = "_pragma=busy_timeout(200)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-32768)"
	return u.String()
}

// prepare makes the tables, unless they are there for this corpus already.
func prepare(ctx context.Context, conn *sql.Conn, corpus string) (note string, err error) {
	current := func() (string, error) {
		var id, version, tables int
		for pragma, v := range map[string]*int{"application_id": &id, "user_version": &version} {
			if err := conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(v); err != nil {
				return "", err
			}
		}
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
			return "", err
		}
		if tables == 0 {
			return "new", nil
		}
		if id != applicationID || version != schemaVersion {
			return noteVersion, nil
		}
		var made string
		err := conn.QueryRowContext(ctx, "SELECT corpus FROM meta").Scan(&made)
		if err == nil && made != corpus {
			return noteCorpus, nil
		}
		return "", err
	}
	state, err := current()
	if err != nil || state == "" {
		return "", err
	}
	if err := begin(ctx, conn, nil); err != nil {
		return "", err
	}
	defer func() { err = end(ctx, conn, err) }()
	// Another process may have done it while this one waited.
	if state, err = current(); err != nil || state == "" {
		return "", err
	}
	if state != "new" {
		note = state
		if err := drop(ctx, conn); err != nil {
			return "", err
		}
	}
	for _, statement := range []string{
		schema,
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	_, err = conn.ExecContext(ctx, "INSERT INTO meta VALUES(?, 0, 0, 0, 0, '', '')", corpus)
	return note, err
}

// drop removes all tables, those of older versions too.
func drop(ctx context.Context, conn *sql.Conn) error {
	for _, table := range []string{"terms", "postings", "lengths", "embedded", "vectors", "passages", "documents", "files", "meta"} {
		if _, err := conn.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return err
		}
	}
	return nil
}

// removeStore removes an index file and what SQLite keeps beside it.
func removeStore(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// begin starts a writing transaction, after those of other processes.
func begin(ctx context.Context, conn *sql.Conn, waiting func()) error {
	return patient(ctx, waiting, func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
}

// end commits, or rolls back after an error or the end of ctx.
func end(ctx context.Context, conn *sql.Conn, err error) error {
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// SQLite may have rolled back already; then this fails, which is fine.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// patient repeats what another process holds up. Another process ends or dies,
// and SQLite frees what a dead one held, so that only ctx limits the wait.
func patient(ctx context.Context, waiting func(), do func() error) error {
	for {
		err := do()
		if !busy(err) {
			return err
		}
		if waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
