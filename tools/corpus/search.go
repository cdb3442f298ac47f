package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// A Hit is a document that answers a query, with the passage that does.
type Hit struct {
	// ID is that of the document, or of its passage ("guide.md#3") where the
	// document has several. Read takes both.
	ID       string
	Document string // the document's id
	Title    string
	Snippet  string // the best sentences of the passage, on one line
	Score    float64
}

// Found is what a query gave, the best hit first.
type Found struct {
	Query string
	// Terms is how many distinct terms of the query were looked up. Zero means
	// that it has neither letters nor digits.
	Terms int
	Hits  []Hit
}

// Search looks up each query and gives up to k hits for it, ranked by BM25 over
// the terms that a passage has; the title counts three times. Higher scores are
// better; equal ones are in the order of their ids. A document comes up once,
// with its best passage, as long as there are k documents to show, and no two
// hits look the same. Queries are words without any syntax; what is longer
// than 10 kB or 64 distinct terms is cut.
func (x *Index) Search(ctx context.Context, queries []string, k int) ([]Found, error) {
	// One transaction, so that an update by another process is seen as a whole.
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, explain(ctx, x.path, err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	list := make([]Found, len(queries))
	for i, query := range queries {
		terms := queryTerms(query)
		list[i] = Found{Query: query, Terms: len(terms)}
		if len(terms) == 0 || k <= 0 {
			continue
		}
		if list[i].Hits, err = hits(ctx, tx, terms, k); err != nil {
			return nil, explain(ctx, x.path, err)
		}
	}
	return list, nil
}

// A candidate is a passage that has terms of the query.
type candidate struct {
	document, start, end int64
	part                 int
	id, title            string
	score                float64 // as FTS5 gives it: the lower the better
}

// maxCandidates bounds the passages that are looked at for one query.
const maxCandidates = 4096

// hits asks for more passages until there are k documents and no passage
// beyond the last one asked for could be as good.
func hits(ctx context.Context, tx *sql.Tx, terms []term, k int) ([]Hit, error) {
	expression := match(terms)
	for limit := 4*k + 16; ; limit *= 4 {
		list, err := candidates(ctx, tx, expression, limit)
		if err != nil {
			return nil, err
		}
		order, firsts := byDocument(list)
		complete := len(list) < limit || limit >= maxCandidates ||
			firsts >= k && list[len(list)-1].score > list[order[k-1]].score
		if !complete {
			continue
		}
		chosen, err := choose(ctx, tx, list, order, terms, k)
		if err == nil && len(chosen) < k && len(list) == limit && limit < maxCandidates {
			continue // too many of them looked the same
		}
		return chosen, err
	}
}

func candidates(ctx context.Context, tx *sql.Tx, expression string, limit int) ([]candidate, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT d.num, p.start, p.stop, p.part, d.id, d.title, s.score
		FROM (SELECT rowid AS num, rank AS score FROM terms WHERE terms MATCH ? ORDER BY rank LIMIT ?) s
		JOIN passages p ON p.num = s.num
		JOIN documents d ON d.num = p.document
		ORDER BY s.score, d.id, p.part`, expression, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []candidate
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.document, &c.start, &c.end, &c.part, &c.id, &c.title, &c.score); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// byDocument puts the best passage of each document before all others. It
// gives the order and the number of documents.
func byDocument(list []candidate) (order []int, documents int) {
	seen := make(map[int64]bool)
	var others []int
	for i, c := range list {
		if seen[c.document] {
			others = append(others, i)
			continue
		}
		seen[c.document] = true
		order = append(order, i)
	}
	return append(order, others...), len(seen)
}

// choose takes the first k candidates that look different, and puts them back
// into the order of their scores.
func choose(ctx context.Context, tx *sql.Tx, list []candidate, order []int, terms []term, k int) ([]Hit, error) {
	type shown struct{ title, snippet string }
	seen := make(map[shown]bool)
	found := make(map[int]Hit)
	var taken []int
	for _, i := range order {
		if len(taken) == k {
			break
		}
		c := list[i]
		var text string
		if err := tx.QueryRowContext(ctx, "SELECT text FROM documents WHERE num = ?", c.document).Scan(&text); err != nil {
			return nil, err
		}
		h := Hit{ID: passageID(c.id, c.part), Document: c.id, Title: c.title, Score: -c.score}
		h.Snippet = snippet(cut(text, c.start, c.end), terms)
		if look := (shown{h.Title, h.Snippet}); !seen[look] {
			seen[look] = true
			found[i] = h
			taken = append(taken, i)
		}
	}
	sort.Ints(taken)
	var hits []Hit
	for _, i := range taken {
		hits = append(hits, found[i])
	}
	return hits, nil
}

// cut is a piece of a text, whatever a damaged index says of where it lies.
func cut(text string, start, end int64) string {
	end = min(max(end, 0), int64(len(text)))
	return text[min(max(start, 0), end):end]
}

func passageID(id string, part int) string {
	if part == 0 {
		return id
	}
	return id + "#" + strconv.Itoa(part)
}

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
	// Models copy an id with the marks around it.
	bare := strings.Trim(id, " \t\r\n[]\"'`")
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

func read(ctx context.Context, tx *sql.Tx, id string) (Document, error) {
	var num int64
	d, err := whole(ctx, tx, id, &num)
	if !errors.Is(err, sql.ErrNoRows) {
		return d, err
	}
	i := strings.LastIndexByte(id, '#')
	if i < 0 {
		return Document{}, err
	}
	part, bad := strconv.Atoi(id[i+1:])
	if bad != nil {
		return Document{}, err
	}
	if d, err = whole(ctx, tx, id[:i], &num); err != nil {
		return Document{}, err
	}
	var start, end int64
	err = tx.QueryRowContext(ctx, "SELECT start, stop FROM passages WHERE document = ? AND part = ?", num, part).Scan(&start, &end)
	if err == nil {
		d.Text = around(d, start, end)
	}
	return d, err
}

func whole(ctx context.Context, tx *sql.Tx, id string, num *int64) (Document, error) {
	d := Document{ID: id}
	err := tx.QueryRowContext(ctx, "SELECT num, title, text FROM documents WHERE id = ?", id).Scan(num, &d.Title, &d.Text)
	return d, err
}

// around gives the part of a long document around a passage, and says how much
// is missing.
func around(d Document, start, end int64) string {
	rs := []rune(d.Text)
	if len(rs) <= readWindow {
		return d.Text
	}
	first := len([]rune(cut(d.Text, 0, start)))
	length := len([]rune(cut(d.Text, start, end)))
	from := max(0, min(first-(readWindow-length)/2, len(rs)-readWindow))
	to := min(from+readWindow, len(rs))
	text := string(rs[from:to])
	if from > 0 {
		text = fmt.Sprintf("[… %d characters left out …]\n", from) + text
	}
	if to < len(rs) {
		text += fmt.Sprintf("\n[… %d characters left out …]", len(rs)-to)
	}
	return text
}

const (
	maxNear = 3
	// maxCompared bounds the ids that are compared with an unknown one.
	maxCompared = 100_000
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
	wanted := strings.ToLower(id)
	for rows.Next() {
		var n near
		if err := rows.Scan(&n.id); err != nil {
			return nil, err
		}
		if n.distance = distance(wanted, strings.ToLower(n.id)); n.distance >= 0 {
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
// of the characters differ, and neither has the other in it.
func distance(a, b string) int {
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
	if d := levenshtein.ComputeDistance(a, b); d <= most {
		return d
	}
	return -1
}
