package batch

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// A Ledger is the list of what a folder's batch has done. It stands beside the
// journals: a rollout is on it after its journal has its end. One process
// writes it at a time; others may read it meanwhile.
type Ledger struct {
	db   *sql.DB
	lock *os.File
}

const (
	ledgerName    = "batch.db"
	lockName      = "batch.lock"
	journalFolder = "journals"
	schemaVersion = 1
)

const schema = `
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items(
	id TEXT PRIMARY KEY, place INTEGER NOT NULL, line INTEGER NOT NULL, digest TEXT NOT NULL, item TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE rollouts(
	item TEXT NOT NULL, configuration TEXT NOT NULL, seed INTEGER NOT NULL,
	rollout INTEGER NOT NULL, failed INTEGER NOT NULL, result TEXT NOT NULL,
	PRIMARY KEY(item, configuration, seed)
) WITHOUT ROWID;`

// The names of meta.
const (
	metaConfiguration = "configuration"
	metaDate          = "date"
	metaData          = "data" // the path
	metaRollouts      = "rollouts"
)

// ErrBusy says that another process works in the folder.
var ErrBusy = errors.New("another process works in it")

// A FolderError says that a folder does not take a batch.
type FolderError struct {
	Dir string
	Err error
}

func (e *FolderError) Error() string { return e.Dir + ": " + e.Err.Error() }
func (e *FolderError) Unwrap() error { return e.Err }

// OpenLedger opens the ledger of a folder, which is made where it does not
// exist, for its owner alone: journals hold prompts. The error is a
// *FolderError; ErrBusy is in it where another process works there.
func OpenLedger(dir string) (*Ledger, error) {
	l := &Ledger{}
	if err := l.open(dir); err != nil {
		_ = l.Close() // the first error is the one to tell
		return nil, &FolderError{dir, bare(err)}
	}
	return l, nil
}

func (l *Ledger) open(dir string) error {
	err := os.MkdirAll(filepath.Join(dir, journalFolder), 0o700)
	if err != nil {
		return err
	}
	if l.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := lock(l.lock); err != nil {
		return err
	}
	if l.db, err = sql.Open("sqlite", dataSource(filepath.Join(dir, ledgerName))); err != nil {
		return err
	}
	l.db.SetMaxOpenConns(1)
	var version int
	if err := l.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case schemaVersion:
		return nil
	case 0:
		return l.transact(func(tx *sql.Tx) error {
			_, err := tx.Exec(schema + fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
			return err
		})
	}
	return fmt.Errorf("its ledger is of another version (%d, not %d)", version, schemaVersion)
}

// dataSource is the name of the database for the driver. NORMAL is safe: a
// power cut may lose the last rows, whose journals are on the disk.
func dataSource(path string) string {
	abs, err := filepath.Abs(path)
	if err == nil {
		path = abs
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // a Windows drive
	}
	u.RawQuery = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-2048)"
	return u.String()
}

// bare leaves the path out of an error that stands behind it already.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func (l *Ledger) transact(f func(*sql.Tx) error) error {
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return err
	}
	return tx.Commit()
}

// Close closes the ledger and lets others in.
func (l *Ledger) Close() error {
	var err error
	if l.db != nil {
		err = l.db.Close()
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}

func (l *Ledger) meta(name string) (string, error) {
	var value string
	err := l.db.QueryRow("SELECT value FROM meta WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// Date is the day that the prompts of the folder's batch tell, empty where
// there is none yet.
func (l *Ledger) Date() (string, error) { return l.meta(metaDate) }

// A ChangedError says that a folder's batch was begun with other questions, or
// in another way.
type ChangedError struct {
	What    string // "dataset" or "configuration"
	Changes []string
}

func (e *ChangedError) Error() string {
	const most = 5
	list := e.Changes
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(e.Changes)-most))
	}
	return "its batch was begun with another " + e.What + ": " + strings.Join(list, "; ")
}

// settle makes the folder that of a dataset and a configuration, or makes sure
// that it is. The error is a *ChangedError where it is another's.
func (l *Ledger) settle(d *Dataset, c Configuration, date string) error {
	value, err := l.meta(metaConfiguration)
	if err != nil {
		return err
	}
	if value == "" {
		return l.begin(d, c, date)
	}
	var before Configuration
	if err := json.Unmarshal([]byte(value), &before); err != nil {
		return err
	}
	if changes := c.Changes(before); len(changes) > 0 {
		return &ChangedError{"configuration", changes}
	}
	return l.sameItems(d)
}

func (l *Ledger) begin(d *Dataset, c Configuration, date string) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return l.transact(func(tx *sql.Tx) error {
		insert, err := tx.Prepare("INSERT INTO items VALUES(?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		for i := range d.Items {
			it := &d.Items[i]
			text, err := json.Marshal(it)
			if err == nil {
				_, err = insert.Exec(it.ID, i, it.Line, it.digest(), string(text))
			}
			if err != nil {
				return err
			}
		}
		_, err = tx.Exec("INSERT INTO meta VALUES(?, ?), (?, ?), (?, ?)", metaConfiguration, string(b), metaDate, date, metaData, d.Path)
		return err
	})
}

// sameItems makes sure that a dataset is the one that the batch was begun with.
func (l *Ledger) sameItems(d *Dataset) error {
	rows, err := l.db.Query("SELECT id, digest FROM items ORDER BY place")
	if err != nil {
		return err
	}
	defer rows.Close()
	before := map[string]string{}
	for rows.Next() {
		var id, digest string
		if err := rows.Scan(&id, &digest); err != nil {
			return err
		}
		before[id] = digest
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var changes []string
	for i := range d.Items {
		it := &d.Items[i]
		switch was, ok := before[it.ID]; {
		case !ok:
			changes = append(changes, fmt.Sprintf("line %d (%s) is new", it.Line, it.ID))
		case was != it.digest():
			changes = append(changes, fmt.Sprintf("line %d (%s) was another", it.Line, it.ID))
		}
		delete(before, it.ID)
	}
	if n := len(before); n > 0 {
		changes = append(changes, fmt.Sprintf("%d questions are gone", n))
	}
	if len(changes) > 0 {
		return &ChangedError{"dataset", changes}
	}
	return nil
}

// put writes down a result. One that was there, which had failed, gives way.
func (l *Ledger) put(configuration string, r *Result) error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = l.db.Exec("INSERT OR REPLACE INTO rollouts VALUES(?, ?, ?, ?, ?, ?)", r.Item, configuration, r.Seed, r.Rollout, r.Failed(), string(b))
	}
	return err
}

// results calls f for each result of a configuration, in the order of the
// dataset and of the rollouts.
func (l *Ledger) results(configuration string, f func(Result) error) error {
	rows, err := l.db.Query(`SELECT result FROM rollouts JOIN items ON items.id = rollouts.item
		WHERE configuration = ? ORDER BY place, rollout`, configuration)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var r Result
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return rows.Err()
}
