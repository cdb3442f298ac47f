package corpus

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"sort"
)

// The parameters of BM25, as usual, and how much more a term in the title
// weighs than one in the text.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	titleWeight = 3
)

// maxMatches is about how many passages FTS5 scores for one query. That takes
// some microseconds a passage, and words like "the" are in most of them.
const maxMatches = 10_000

// A ranking scores the passages for one query by BM25, with Lucene's weight of
// a term, ln(1 + (N-n+0.5)/(n+0.5)). FTS5 only finds the candidates: its own
// weight, without the "1 +", is nothing for a term in half of the passages,
// and in a folder of a few notes that is many a term.
type ranking struct {
	terms   []term
	weights []float64
	average float64 // terms of a passage
	changes int64   // of the index so far
	// expression is what FTS5 looks up: the terms that occur, without the most
	// frequent where they occur too often. It is empty if none occurs.
	expression string
}

func newRanking(ctx context.Context, tx *sql.Tx, terms []term) (*ranking, error) {
	r := &ranking{}
	var passages, words float64
	if err := tx.QueryRowContext(ctx, "SELECT passages, terms, changes FROM meta").Scan(&passages, &words, &r.changes); err != nil {
		return nil, err
	}
	r.average = max(1, words/max(1, passages))
	var counts []int
	for i, t := range terms {
		var n int
		const count = "SELECT count(*) FROM terms WHERE terms MATCH ?"
		if err := tx.QueryRowContext(ctx, count, match(terms[i:i+1])).Scan(&n); err != nil {
			return nil, fmt.Errorf("term %q: %w", t.text, err)
		}
		if n > 0 {
			r.terms = append(r.terms, t)
			r.weights = append(r.weights, math.Log(1+max(0, passages-float64(n)+0.5)/(float64(n)+0.5)))
			counts = append(counts, n)
		}
	}
	r.expression = match(rarest(r.terms, counts))
	return r, nil
}

// rarest gives the terms that together occur in maxMatches passages at most,
// the rarest before others, and at least one.
func rarest(terms []term, counts []int) []term {
	order := make([]int, len(terms))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return counts[order[i]] < counts[order[j]] })
	sum, n := 0, 0
	for n < len(order) && (n == 0 || sum+counts[order[n]] <= maxMatches) {
		sum += counts[order[n]]
		n++
	}
	var kept []term
	for _, i := range order[:n] {
		kept = append(kept, terms[i])
	}
	return kept
}

// sort scores the candidates by all terms of the query, and puts the best
// first. Equal ones are in the order of their ids.
func (r *ranking) sort(list []candidate) {
	for i := range list {
		list[i].score = r.of(list[i].title, list[i].text)
	}
	slices.SortFunc(list, better)
}

// of is the score of one passage.
func (r *ranking) of(title, text string) float64 {
	found := make([]float64, len(r.terms))
	length := 0.0
	count := func(text string, weight float64) {
		eachTerm(text, false, func(t term) {
			length++
			for i, q := range r.terms {
				if q.matches(t.text) {
					found[i] += weight
				}
			}
		})
	}
	count(title, titleWeight)
	count(text, 1)
	norm := bm25K1 * (1 - bm25B + bm25B*length/r.average)
	score := 0.0
	for i, f := range found {
		score += r.weights[i] * f * (bm25K1 + 1) / (f + norm)
	}
	return score
}
