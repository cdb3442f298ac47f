// Package bank keeps what was read for a research: numbered summaries and the
// pages that they are of, in one SQLite file, outside of any prompt.
//
// A number is given once and never changes, so that an outline may cite it
// after a kill, and in a later question that uses the same file. The package
// fetches nothing, asks no model and never judges a summary.
package bank

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// A Bank is an open file. One process adds to it at a time; others may read it
// meanwhile. Its methods may be called from several goroutines.
type Bank struct {
	path string
	db   *sql.DB
	lock *os.File
	now  func() time.Time
}

// A Summary is what one reading of a page gave.
type Summary struct {
	Number   int       `json:"number"` // from 1, given by Add
	Source   string    `json:"source"` // the address of the page, or a document's id
	Title    string    `json:"title,omitempty"`
	Goal     string    `json:"goal"` // what the page was read for
	Rational string    `json:"rational,omitempty"`
	Evidence string    `json:"evidence,omitempty"` // the page's own words
	Summary  string    `json:"summary,omitempty"`
	Tokens   int       `json:"tokens"`         // what the three take of a prompt, as its writer counts
	Question string    `json:"question"`       // that the research was about
	Call     string    `json:"call,omitempty"` // names the call that it came of, in all runs
	Page     string    `json:"page,omitempty"`
	Time     time.Time `json:"time,omitzero"` // when it was added, given by Add
}

// A Page is the text that a summary is of.
type Page struct {
	Hash string // of the whole text: SHA-256, in hexadecimal digits
	Text string
	// Bytes is how long the text was. It is longer than Text where that was cut
	// at MaxPage.
	Bytes int
}

// The bounds of what is kept, in bytes.
const (
	MaxPage  = 4 << 20   // of a page; the rest is cut
	MaxField = 256 << 10 // of a text that a model wrote
	MaxName  = 8 << 10   // of a source, a goal and a call; titles are cut at it
)

// ErrEmpty says that a summary has neither evidence nor a summary.
var ErrEmpty = errors.New("the summary is empty")

// A TooLongError says that a field is longer than a bank keeps.
type TooLongError struct {
	Field       string // as in JSON
	Bytes, Most int
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%q has %d bytes, and %d is the most", e.Field, e.Bytes, e.Most)
}

// Add keeps a summary with the page that it is of, and gives it back with its
// number. Both are on the disk then. Where the bank has a summary of the same
// Call, that one is given and nothing changes: so a run that was killed may add
// again what it is not sure of. The page may be empty: then nothing is kept.
//
// The error is ErrEmpty or a *TooLongError where the summary cannot be kept,
// and else an *Error.
func (b *Bank) Add(ctx context.Context, s Summary, page string) (Summary, error) {
	if err := s.clean(); err != nil {
		return Summary{}, err
	}
	s.Time = b.now().UTC().Truncate(time.Millisecond)
	p := newPage(page)
	s.Page = p.Hash
	err := b.write(ctx, func(tx *sql.Conn) error {
		before, err := one(ctx, tx, "WHERE call = ?", s.Call)
		if err == nil {
			s = before
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if p.Hash != "" {
			if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO pages VALUES(?, ?, ?)", p.Hash, p.Bytes, p.Text); err != nil {
				return err
			}
		}
		if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) + 1 FROM summaries").Scan(&s.Number); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO summaries("+columns+") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			s.Number, s.Call, s.Question, s.Source, s.Title, s.Goal, s.Rational, s.Evidence, s.Summary, s.Tokens, s.Page, s.Time.UnixMilli())
		return err
	})
	if err != nil {
		return Summary{}, err
	}
	return s, nil
}

// clean makes a summary what a bank keeps, or says why it cannot be.
func (s *Summary) clean() error {
	for _, f := range []*string{&s.Source, &s.Title, &s.Goal, &s.Rational, &s.Evidence, &s.Summary, &s.Question, &s.Call} {
		*f = strings.ToValidUTF8(strings.TrimSpace(*f), "\uFFFD")
	}
	s.Title = head(s.Title, MaxName)
	s.Tokens = max(s.Tokens, 0)
	for _, f := range []struct {
		name, text string
		most       int
	}{
		{"source", s.Source, MaxName}, {"goal", s.Goal, MaxName}, {"call", s.Call, MaxName}, {"rational", s.Rational, MaxField},
		{"evidence", s.Evidence, MaxField}, {"summary", s.Summary, MaxField}, {"question", s.Question, MaxField},
	} {
		if len(f.text) > f.most {
			return &TooLongError{f.name, len(f.text), f.most}
		}
	}
	switch {
	case s.Call == "":
		return errors.New(`"call" is empty: it tells a summary from one that is added again`)
	case s.Evidence == "" && s.Summary == "":
		return ErrEmpty
	}
	return nil
}

// newPage is the page of a text, the zero value for none.
func newPage(text string) Page {
	if strings.TrimSpace(text) == "" {
		return Page{}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	sum := sha256.Sum256([]byte(text))
	return Page{Hash: hex.EncodeToString(sum[:]), Text: head(text, MaxPage), Bytes: len(text)}
}

// head is the beginning of a text, so many bytes at most, in whole characters.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Last is the highest number that was given, zero for none.
func (b *Bank) Last(ctx context.Context) (int, error) {
	var n int
	err := b.db.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) FROM summaries").Scan(&n)
	return n, b.explain(ctx, err)
}

// Since gives the summaries with a number above n, in their order; Since(0)
// gives all.
func (b *Bank) Since(ctx context.Context, n int) ([]Summary, error) {
	rows, err := b.db.QueryContext(ctx, "SELECT "+columns+" FROM summaries WHERE number > ? ORDER BY number", n)
	if err != nil {
		return nil, b.explain(ctx, err)
	}
	defer rows.Close()
	var out []Summary
	for rows.Next() {
		s, err := scan(rows)
		if err != nil {
			return nil, b.explain(ctx, err)
		}
		out = append(out, s)
	}
	return out, b.explain(ctx, rows.Err())
}

// Get gives the summaries of these numbers, in this order and each once, and
// the numbers that the bank does not have.
func (b *Bank) Get(ctx context.Context, numbers ...int) (found []Summary, unknown []int, err error) {
	seen := map[int]bool{}
	for _, n := range numbers {
		if seen[n] {
			continue
		}
		seen[n] = true
		s, err := one(ctx, b.db, "WHERE number = ?", n)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			unknown = append(unknown, n)
		case err != nil:
			return nil, nil, b.explain(ctx, err)
		default:
			found = append(found, s)
		}
	}
	return found, unknown, nil
}

// Of gives the summary of a call. The error is ErrNoSummary where there is none
// yet.
func (b *Bank) Of(ctx context.Context, call string) (Summary, error) {
	s, err := one(ctx, b.db, "WHERE call = ?", call)
	if errors.Is(err, sql.ErrNoRows) {
		return Summary{}, ErrNoSummary
	}
	return s, b.explain(ctx, err)
}

// Page gives the page of a summary by Summary.Page. The error is ErrNoPage
// where the bank has none.
func (b *Bank) Page(ctx context.Context, hash string) (Page, error) {
	p := Page{Hash: hash}
	err := b.db.QueryRowContext(ctx, "SELECT bytes, text FROM pages WHERE hash = ?", hash).Scan(&p.Bytes, &p.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return Page{}, ErrNoPage
	}
	return p, b.explain(ctx, err)
}

var (
	// ErrNoPage says that the bank has no page of a hash.
	ErrNoPage = errors.New("the page is not kept")
	// ErrNoSummary says that the bank has no summary of a call.
	ErrNoSummary = errors.New("there is no such summary")
)

// columns are those of summaries, as scan reads them.
const columns = "number, call, question, source, title, goal, rational, evidence, summary, tokens, page, time"

func scan(row interface{ Scan(...any) error }) (Summary, error) {
	var s Summary
	var at int64
	err := row.Scan(&s.Number, &s.Call, &s.Question, &s.Source, &s.Title, &s.Goal, &s.Rational, &s.Evidence, &s.Summary, &s.Tokens, &s.Page, &at)
	s.Time = time.UnixMilli(at).UTC()
	return s, err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func one(ctx context.Context, q querier, where string, arg any) (Summary, error) {
	return scan(q.QueryRowContext(ctx, "SELECT "+columns+" FROM summaries "+where, arg))
}
