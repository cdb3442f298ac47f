package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// readWindow is about how many characters Read gives around a passage.
const readWindow = 12000

// Read gives a document by its id. The id of a passage gives the document too,
// or the part around the passage where the document is long. An unknown id
// gives a *NotFoundError.
func (x *Index) Read(ctx context.Context, id string) (Document, error) {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return Document{}, explain(ctx, x.path, err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	bare := bareID(id)
	for _, try := range []string{id, bare} {
		d, err := read(ctx, tx, try)
		if !errors.Is(err, sql.ErrNoRows) {
			return d, explain(ctx, x.path, err)
		}
	}
	near, err := nearest(ctx, tx, bare[:floor(bare, maxIDBytes)])
	if err != nil {
		return Document{}, explain(ctx, x.path, err)
	}
	return Document{}, &NotFoundError{ID: id[:floor(id, maxIDBytes)], Near: near}
}

// bareID takes the marks off an id that models copy with it.
func bareID(id string) string { return strings.Trim(id, " \t\r\n[]\"'`") }

// read looks for a document, then for a passage. sql.ErrNoRows says that there
// is neither.
func read(ctx context.Context, tx *sql.Tx, id string) (Document, error) {
	d, parts, err := whole(ctx, tx, id)
	if err == nil {
		d.Text = strings.Join(parts, "")
	}
	i := strings.LastIndexByte(id, '#')
	if !errors.Is(err, sql.ErrNoRows) || i < 0 {
		return d, err
	}
	part, bad := strconv.Atoi(id[i+1:])
	if bad != nil {
		return Document{}, err
	}
	d, parts, err = whole(ctx, tx, id[:i])
	if err == nil && (len(parts) < 2 || part < 1 || part > len(parts)) {
		return Document{}, sql.ErrNoRows
	}
	if err == nil {
		d.ID, d.Text = id, around(parts, part-1)
	}
	return d, err
}

// whole gives a document and the texts of its passages.
func whole(ctx context.Context, tx *sql.Tx, id string) (Document, []string, error) {
	d := Document{ID: id}
	var num int64
	if err := tx.QueryRowContext(ctx, "SELECT num, title FROM documents WHERE id = ?", id).Scan(&num, &d.Title); err != nil {
		return d, nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT text FROM passages WHERE document = ? ORDER BY part", num)
	if err != nil {
		return d, nil, err
	}
	defer rows.Close()
	var parts []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return d, nil, err
		}
		parts = append(parts, text)
	}
	return d, parts, rows.Err()
}

// around gives a passage with as many before and after it as there is room
// for, and says how much is missing.
func around(parts []string, part int) string {
	from, to := part, part+1
	for room := readWindow - utf8.RuneCountInString(parts[part]); room > 0; {
		before, after := from > 0, to < len(parts)
		if before {
			from--
			room -= utf8.RuneCountInString(parts[from])
		}
		if after {
			to++
			room -= utf8.RuneCountInString(parts[to-1])
		}
		if !before && !after {
			break
		}
	}
	text := strings.Join(parts[from:to], "")
	if n := utf8.RuneCountInString(strings.Join(parts[:from], "")); n > 0 {
		text = fmt.Sprintf("[… %d characters left out …]\n", n) + text
	}
	if n := utf8.RuneCountInString(strings.Join(parts[to:], "")); n > 0 {
		text += fmt.Sprintf("\n[… %d characters left out …]", n)
	}
	return text
}

const (
	maxNear = 3
	// maxCompared bounds the ids that are compared with an unknown one, and
	// maxCells the work of that: long ids take as much as the square of their
	// lengths. So many cells take about a tenth of a second.
	maxCompared = 100_000
	maxCells    = 50_000_000
)

// nearest gives the ids that differ least from one that is not there.
func nearest(ctx context.Context, tx *sql.Tx, id string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT id FROM documents ORDER BY id LIMIT ?", maxCompared)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type near struct {
		id       string
		distance int
	}
	var list []near
	wanted, cells := strings.ToLower(id), maxCells
	for rows.Next() {
		var n near
		if err := rows.Scan(&n.id); err != nil {
			return nil, err
		}
		if n.distance = distance(wanted, strings.ToLower(n.id), &cells); n.distance >= 0 {
			list = append(list, n)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].distance < list[j].distance })
	var ids []string
	for _, n := range list[:min(maxNear, len(list))] {
		ids = append(ids, n.id)
	}
	return ids, rows.Err()
}

// distance says how far two ids are apart, and -1 for too far: more than half
// of the characters differ, and neither has the other in it; or it would take
// more cells than there are left.
func distance(a, b string, cells *int) int {
	if a == "" {
		return -1
	}
	if strings.Contains(b, a) || strings.Contains(a, b) {
		return 0
	}
	most := max(len(a), len(b)) / 2
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return -1
	}
	if *cells -= len(a) * len(b); *cells < 0 {
		return -1
	}
	if d := levenshtein.ComputeDistance(a, b); d <= most {
		return d
	}
	return -1
}
