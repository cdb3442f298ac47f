package bank

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
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A bank carries these in SQLite's header.
const (
	applicationID = 0x73746762 // "stgb"
	schemaVersion = 1
)

// The tables. What a file from elsewhere may hold is bounded by the checks,
// which are made again when a file is opened. STRICT and the schema's own words
// are part of what is compared, so that nothing else is ever in a bank: no
// view, no trigger.
var schema = []string{
	`CREATE TABLE pages(
	hash TEXT PRIMARY KEY CHECK(length(hash) = 64),
	bytes INTEGER NOT NULL,
	text TEXT NOT NULL CHECK(octet_length(text) <= 4194304)
) STRICT, WITHOUT ROWID`,
	`CREATE TABLE summaries(
	number INTEGER PRIMARY KEY CHECK(number > 0),
	call TEXT NOT NULL UNIQUE CHECK(octet_length(call) <= 8192),
	question TEXT NOT NULL CHECK(octet_length(question) <= 262144),
	source TEXT NOT NULL CHECK(octet_length(source) <= 8192),
	title TEXT NOT NULL CHECK(octet_length(title) <= 8192),
	goal TEXT NOT NULL CHECK(octet_length(goal) <= 8192),
	rational TEXT NOT NULL CHECK(octet_length(rational) <= 262144),
	evidence TEXT NOT NULL CHECK(octet_length(evidence) <= 262144),
	summary TEXT NOT NULL CHECK(octet_length(summary) <= 262144),
	tokens INTEGER NOT NULL,
	page TEXT NOT NULL CHECK(octet_length(page) <= 64),
	time INTEGER NOT NULL
) STRICT`,
}

// Why a file cannot be used; each stands in an *Error.
var (
	ErrBusy    = errors.New("another process adds to it")
	ErrForeign = errors.New("the file is no bank")
	ErrDamaged = errors.New("the file is damaged")
	ErrVersion = errors.New("the file was made by another version")
)

// An Error says that a bank's file cannot be used.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("cannot use bank %s: %v", e.Path, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Open opens a bank to add to it, and makes the file, for its owner alone,
// where there is none. The error is an *Error with ErrBusy, ErrForeign,
// ErrDamaged, ErrVersion or the system's own in it. Close it.
func Open(ctx context.Context, path string) (*Bank, error) { return open(ctx, path, true) }

// Read opens a bank only to read it, also while another process adds to it. The
// error is an *Error; os.ErrNotExist is in it where there is no file.
func Read(ctx context.Context, path string) (*Bank, error) { return open(ctx, path, false) }

func open(ctx context.Context, path string, writing bool) (*Bank, error) {
	b := &Bank{path: path, now: time.Now}
	if err := b.open(ctx, writing); err != nil {
		_ = b.Close() // the first error is the one to tell
		return nil, b.explain(ctx, err)
	}
	return b, nil
}

func (b *Bank) open(ctx context.Context, writing bool) error {
	var err error
	if writing {
		if b.lock, err = lock(b.path + "-lock"); err != nil {
			return err
		}
	}
	if err := inspect(b.path, writing); err != nil {
		return err
	}
	if b.db, err = sql.Open("sqlite", dataSource(b.path, writing)); err != nil {
		return err
	}
	b.db.SetMaxOpenConns(1)
	if !writing {
		return b.check(ctx)
	}
	// The tables come in one transaction, so that a kill leaves a file with all
	// of them or an empty one.
	return b.write(ctx, func(tx *sql.Conn) error {
		var tables int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return nil
		}
		for _, statement := range append([]string{
			fmt.Sprintf("PRAGMA application_id = %d", applicationID),
			fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)}, schema...) {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}, b.check)
}

// inspect looks at SQLite's header (https://sqlite.org/fileformat.html) before
// SQLite does, so that no other file is touched.
func inspect(path string, writing bool) error {
	mode, flags := os.FileMode(0o600), os.O_RDONLY
	if writing {
		flags = os.O_RDWR | os.O_CREATE
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a pipe would be waited for
		return errors.New("it is no regular file")
	}
	f, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	var header [100]byte
	n, err := io.ReadFull(f, header[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		if writing {
			return nil
		}
		return fmt.Errorf("%w: it is empty", ErrForeign)
	case errors.Is(err, io.ErrUnexpectedEOF) || err == nil && !strings.HasPrefix(string(header[:]), "SQLite format 3\x00"):
		return ErrForeign
	case err != nil:
		return err
	case binary.BigEndian.Uint32(header[68:]) != applicationID:
		return fmt.Errorf("%w: it is another SQLite database", ErrForeign)
	}
	if v := binary.BigEndian.Uint32(header[60:]); v != schemaVersion {
		return fmt.Errorf("%w (%d, not %d)", ErrVersion, v, schemaVersion)
	}
	return nil
}

// dataSource is the name of the database for the driver. What was added is on
// the disk: the rollback journal with full synchronisation is slow and sure, and
// leaves one file, which also stands on a medium that cannot be written.
func dataSource(path string, writing bool) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // a Windows drive
	}
	// A bank that is only read is opened for writing too: what a killed process
	// left half done is taken back by the next one.
	q := url.Values{"mode": {"rw"}, "_pragma": {
		"busy_timeout(5000)", "trusted_schema(0)", "cell_size_check(1)", "cache_size(-4096)", "synchronous(FULL)"}}
	if !writing {
		q.Add("_pragma", "query_only(1)")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// check makes sure that a file holds the tables of a bank, whole, and nothing
// else.
func (b *Bank) check(ctx context.Context) error {
	rows, err := b.db.QueryContext(ctx, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if n == len(schema) || text != schema[n] {
			return fmt.Errorf("%w: its tables are others", ErrForeign)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != len(schema) {
		return fmt.Errorf("%w: its tables are others", ErrForeign)
	}
	var words string
	if err := b.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&words); err != nil {
		return err
	}
	if words != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, words)
	}
	return nil
}

// Close closes the file and lets other processes add to it.
func (b *Bank) Close() error {
	var err error
	if b.db != nil {
		err = b.db.Close()
	}
	if b.lock != nil {
		err = errors.Join(err, unlock(b.lock))
	}
	return err
}

// write does something in one transaction, and what follows after it.
func (b *Bank) write(ctx context.Context, do func(*sql.Conn) error, after ...func(context.Context) error) error {
	err := b.transact(ctx, do)
	for _, next := range after {
		if err == nil {
			err = next(ctx)
		}
	}
	return b.explain(ctx, err)
}

func (b *Bank) transact(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err = do(conn); err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// SQLite may have rolled back already; then this fails, which is fine.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

// explain gives an error its type. What ctx ended is ctx's error, whatever
// SQLite called it.
func (b *Bank) explain(ctx context.Context, err error) error {
	var bank *Error
	var path *os.PathError
	switch {
	case err == nil || errors.As(err, &bank):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &path):
		err = path.Err // the path stands before it already
	}
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
			err = fmt.Errorf("%w: %v", ErrDamaged, e)
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			err = ErrBusy
		}
	}
	return &Error{b.path, err}
}
