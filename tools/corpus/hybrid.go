package corpus

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// rrfK is the constant of reciprocal rank fusion, as its authors have it
// (Cormack, Clarke and Büttcher, SIGIR 2009).
const rrfK = 60

// embedQueries gives the vectors of the queries, or nil where the index or the
// server has none: then words alone decide, and Notice is told.
func (x *Index) embedQueries(ctx context.Context, queries []string) ([][]float32, error) {
	if x.embedder == nil || len(queries) == 0 {
		return nil, nil
	}
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = q[:floor(q, maxQueryBytes)]
	}
	list, err := x.embedder.Embed(ctx, texts, true)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		if x.notice != nil {
			x.notice(err)
		}
		return nil, nil
	}
	return list, nil
}

// fused ranks by words and by vectors.
func (x *Index) fused(ctx context.Context, tx *sql.Tx, query []term, vector []float32, k int) ([]Hit, error) {
	depth := 4*k + 100
	r, err := newRanking(ctx, tx, query)
	if err != nil {
		return nil, err
	}
	var words []candidate
	if r.expression != "" {
		if words, _, err = candidates(ctx, tx, r.expression, depth, true); err != nil {
			return nil, err
		}
		r.sort(words)
	}
	v, err := x.vectorsOf(ctx, tx, r.changes)
	if err != nil {
		return nil, err
	}
	list, err := fuse(ctx, tx, words, v.nearest(vector, depth))
	if err != nil {
		return nil, err
	}
	return choose(list, query, k), nil
}

// fuse joins two rankings by the ranks alone, since their scores are of
// different kinds: 1/(60+rank) from each. The sum is scaled so that the first
// of both has the score 1. Equals share a rank.
func fuse(ctx context.Context, tx *sql.Tx, words []candidate, close []near) ([]candidate, error) {
	scores := make(map[int64]float64)
	share := func(rank int) float64 { return (rrfK + 1) / 2.0 / float64(rrfK+1+rank) }
	rank := 0
	for i, c := range words {
		if i > 0 && c.score < words[i-1].score {
			rank = i
		}
		scores[c.num] += share(rank)
	}
	rank = 0
	var missing []int64
	for i, n := range close {
		if i > 0 && n.score < close[i-1].score {
			rank = i
		}
		if _, ok := scores[n.passage]; !ok {
			missing = append(missing, n.passage)
		}
		scores[n.passage] += share(rank)
	}
	list, err := byNumber(ctx, tx, missing)
	if err != nil {
		return nil, err
	}
	list = append(list, words...)
	for i := range list {
		list[i].score = scores[list[i].num]
	}
	slices.SortFunc(list, better)
	return list, nil
}

// byNumber gives passages that were found by their vectors.
func byNumber(ctx context.Context, tx *sql.Tx, nums []int64) ([]candidate, error) {
	s, err := tx.PrepareContext(ctx, `
		SELECT d.num, p.part, p.lead || p.text, d.id, d.title
		FROM passages p JOIN documents d ON d.num = p.document WHERE p.num = ?`)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list := make([]candidate, len(nums))
	for i, num := range nums {
		c := &list[i]
		c.num = num
		if err := s.QueryRowContext(ctx, num).Scan(&c.document, &c.part, &c.text, &c.id, &c.title); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// better orders candidates: the best first, equal ones by their ids.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part))
}
