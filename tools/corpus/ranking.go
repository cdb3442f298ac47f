package corpus

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"math"
	"slices"
)

// The parameters of BM25, as usual, and how much more a term in the title
// weighs than one in the text.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	titleWeight = 3
)

// A ranking scores all passages for one query by BM25, with Lucene's weight of a
// term, ln(1 + (N-n+0.5)/(n+0.5)). The usual one, without the "1 +", is nothing
// for a term in half of the passages, and in a folder of a few notes that is
// many a term. No passage is passed over: the ranking is exact.
type ranking struct {
	lists   []postingList // of the terms that occur, in the order of the query
	weights []float64
	chunks  []int64 // that have any of the terms
	average float64 // terms of a passage
	changes int64   // of the index so far
}

func newRanking(ctx context.Context, tx *sql.Tx, terms []term) (*ranking, error) {
	r := &ranking{}
	var passages, words float64
	if err := tx.QueryRowContext(ctx, "SELECT passages, terms, changes FROM meta").Scan(&passages, &words, &r.changes); err != nil {
		return nil, err
	}
	r.average = max(1, words/max(1, passages))
	for _, t := range terms {
		list, err := readPostings(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		n := float64(list.count())
		if n == 0 {
			continue
		}
		r.lists = append(r.lists, list)
		r.weights = append(r.weights, math.Log(1+max(0, passages-n+0.5)/(n+0.5)))
		for chunk := range list {
			r.chunks = append(r.chunks, chunk)
		}
	}
	slices.Sort(r.chunks)
	r.chunks = slices.Compact(r.chunks)
	return r, nil
}

// best gives the n passages that score best, the best first, and whether these
// are all that have a term of the query.
func (r *ranking) best(ctx context.Context, tx *sql.Tx, n int) (list []ranked, all bool, err error) {
	top := newBest(n)
	scores := make([]float64, chunkSize)
	norms := make([]float64, chunkSize)
	for _, chunk := range r.chunks {
		if err := r.norms(ctx, tx, chunk, norms); err != nil {
			return nil, false, err
		}
		for i, l := range r.lists {
			weight := r.weights[i] * (bm25K1 + 1)
			for data := l[chunk]; len(data) >= postingBytes; data = data[postingBytes:] {
				low, f := binary.LittleEndian.Uint16(data), float64(data[2])
				scores[low] += weight * f / (f + norms[low])
			}
		}
		for low, score := range scores {
			if score > 0 {
				top.add(ranked{chunk<<chunkBits | int64(low), score})
				scores[low] = 0
			}
		}
	}
	top.settle()
	return top.list, top.seen <= n, nil
}

// norms gives what the lengths of a chunk's passages mean for their scores.
func (r *ranking) norms(ctx context.Context, tx *sql.Tx, chunk int64, norms []float64) error {
	var data sql.RawBytes
	rows, err := tx.QueryContext(ctx, "SELECT data FROM lengths WHERE chunk = ?", chunk)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&data); err != nil {
			return err
		}
		for i := 0; i < len(data)/2 && i < len(norms); i++ {
			norms[i] = bm25K1 * (1 - bm25B + bm25B*float64(binary.LittleEndian.Uint16(data[2*i:]))/r.average)
		}
	}
	return rows.Err()
}

// A ranked passage is one with a score: the higher the better.
type ranked struct {
	passage int64 // its number
	score   float64
}

// best keeps the n best of many.
type best struct {
	n    int
	list []ranked
	seen int
	bar  float64 // what the n-th best had when it was last looked at
}

func newBest(n int) *best { return &best{n: n, bar: math.Inf(-1)} }

func (b *best) add(r ranked) {
	b.seen++
	if r.score < b.bar {
		return
	}
	b.list = append(b.list, r)
	if len(b.list) >= 2*b.n+64 {
		b.settle()
	}
}

// settle puts the best first, equal ones in the order of their numbers, and
// drops the others.
func (b *best) settle() {
	slices.SortFunc(b.list, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.passage, y.passage))
	})
	if len(b.list) > b.n {
		b.list = b.list[:b.n]
	}
	if len(b.list) == b.n && b.n > 0 {
		b.bar = b.list[b.n-1].score
	}
}
