package corpus

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A ReadError says that the corpus itself cannot be read. A single file that
// cannot be read is skipped and counted.
type ReadError struct {
	Path string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("cannot read corpus %s: %v", e.Path, e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }

// An IndexError says that the file of the index cannot be used.
type IndexError struct {
	Path string
	Err  error
}

func (e *IndexError) Error() string { return fmt.Sprintf("cannot use index %s: %v", e.Path, e.Err) }
func (e *IndexError) Unwrap() error { return e.Err }

// A NoDocumentsError says that a corpus has no documents, and what was there
// instead.
type NoDocumentsError struct {
	Path    string
	Skipped Skips
}

func (e *NoDocumentsError) Error() string {
	words := "no documents in " + e.Path
	if e.Skipped.Total == 0 {
		return words + ": it has no files"
	}
	words += "; skipped: " + e.Skipped.String()
	if len(e.Skipped.First) > 0 {
		words += " (first: " + e.Skipped.First[0].String() + ")"
	}
	return words
}

// A NotFoundError says that no document has an id.
type NotFoundError struct {
	ID   string
	Near []string // ids that look like it, the nearest first
}

func (e *NotFoundError) Error() string {
	words := fmt.Sprintf("no document has the id %q.", e.ID)
	if len(e.Near) > 0 {
		words += " Similar ids: " + strings.Join(e.Near, ", ") + "."
	}
	return words
}

// A Skip is a file, a folder or a line that is not in the index.
type Skip struct {
	Path   string `json:"path"`           // relative to the corpus, with slashes
	Line   int    `json:"line,omitempty"` // of a JSONL file, from 1; zero for the whole file
	Reason string `json:"reason"`
}

func (s Skip) String() string {
	if s.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", s.Path, s.Line, s.Reason)
	}
	return s.Path + ": " + s.Reason
}

// Skips are what was left out.
type Skips struct {
	Total    int            `json:"total"`
	ByReason map[string]int `json:"by_reason,omitempty"`
	// First are the first of them, at most 100 of a corpus and 10 of a file.
	First []Skip `json:"first,omitempty"`
}

// The most examples that are kept.
const (
	maxSkips        = 100
	maxSkipsPerFile = 10
	maxReasonRunes  = 200 // of a parser's error
)

func (s *Skips) add(most int, skip Skip) {
	if s.ByReason == nil {
		s.ByReason = make(map[string]int)
	}
	s.Total++
	s.ByReason[skip.Reason]++
	if len(s.First) < most {
		s.First = append(s.First, skip)
	}
}

// merge adds what was left out of one file.
func (s *Skips) merge(o Skips) {
	if s.ByReason == nil && o.Total > 0 {
		s.ByReason = make(map[string]int)
	}
	s.Total += o.Total
	for reason, n := range o.ByReason {
		s.ByReason[reason] += n
	}
	s.First = append(s.First, o.First[:min(len(o.First), max(0, maxSkips-len(s.First)))]...)
}

// String counts the reasons, the most frequent first: "3 hidden, 1 binary".
func (s Skips) String() string {
	reasons := make([]string, 0, len(s.ByReason))
	for reason := range s.ByReason {
		reasons = append(reasons, reason)
	}
	sort.Slice(reasons, func(i, j int) bool {
		a, b := reasons[i], reasons[j]
		if s.ByReason[a] != s.ByReason[b] {
			return s.ByReason[a] > s.ByReason[b]
		}
		return a < b
	})
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", s.ByReason[reason], reason)
	}
	return strings.Join(reasons, ", ")
}

// code is SQLite's primary result code of an error, zero for other errors.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

// damaged reports whether an error says that the index file is broken.
func damaged(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CORRUPT || c == sqlite3.SQLITE_NOTADB || c == sqlite3.SQLITE_FORMAT
}

// busy reports whether another process has the index.
func busy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// explain gives an error of the index its type. What ctx ended is ctx's error,
// whatever SQLite called it.
func explain(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code(err) != sqlite3.SQLITE_OK {
		return &IndexError{Path: path, Err: err}
	}
	return err
}
