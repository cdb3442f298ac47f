package batch

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Contents are what a folder's ledger has.
type Contents struct {
	Configuration Configuration // nil where the batch has not begun
	Date          string        // that the prompts tell
	Data          string        // the dataset's file, without its folder
	Items         []Item        // all of the dataset, in its order
	Results       []Result      // in the order of the dataset and of the rollouts
}

// ReadFolder reads the ledger of a folder, also while another process works
// there. It writes nothing. The error is a *FolderError, with fs.ErrNotExist in
// it where there is no ledger.
func ReadFolder(dir string) (*Contents, error) {
	c, err := readFolder(dir)
	if err != nil {
		return nil, &FolderError{dir, bare(err)}
	}
	return c, nil
}

func readFolder(dir string) (*Contents, error) {
	file := filepath.Join(dir, ledgerName)
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: %w", ledgerName, fs.ErrInvalid)
	}
	db, err := sql.Open("sqlite", dataSource(file)+"&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	l := &Ledger{db: db}
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return nil, fmt.Errorf("its ledger cannot be read: %w", err)
	}
	c := &Contents{}
	switch version {
	case 0:
		return c, nil // it was made a moment ago
	case schemaVersion:
	default:
		return nil, fmt.Errorf("its ledger is of another version (%d, not %d)", version, schemaVersion)
	}
	value, err := l.meta(metaConfiguration)
	if err != nil || value == "" {
		return c, err
	}
	if err := json.Unmarshal([]byte(value), &c.Configuration); err != nil {
		return nil, fmt.Errorf("its configuration cannot be read: %w", err)
	}
	if c.Date, err = l.Date(); err != nil {
		return nil, err
	}
	data, err := l.meta(metaData)
	if err != nil {
		return nil, err
	}
	c.Data = path.Base(filepath.ToSlash(data))
	if c.Items, err = l.items(); err != nil {
		return nil, err
	}
	err = l.results(c.Configuration.Hash(), func(r Result) error {
		c.Results = append(c.Results, r)
		return nil
	})
	return c, err
}

// items gives the questions that the batch was begun with, in their order.
func (l *Ledger) items() ([]Item, error) {
	rows, err := l.db.Query("SELECT item, line FROM items ORDER BY place")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Item
	for rows.Next() {
		var text string
		var it Item
		if err := rows.Scan(&text, &it.Line); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &it); err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, rows.Err()
}
