package corpus

import (
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
	words, _, err := r.best(ctx, tx, depth)
	if err != nil {
		return nil, err
	}
	v, err := x.vectorsOf(ctx, tx, r.changes)
	if err != nil {
		return nil, err
	}
	var near []ranked
	if v.embedder == x.embedder.Name() {
		near = v.nearest(vector, depth)
	} else if x.notice != nil {
		x.notice(&IndexError{Path: x.path, Err: errAnotherModel})
	}
	list, err := candidates(ctx, tx, fuse(words, near))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, better)
	return choose(list, query, k), nil
}

// fuse joins rankings by the ranks alone, since their scores are of different
// kinds: 1/(60+rank) from each. The sum is scaled so that the first of all of
// them has the score 1. Equals share a rank.
func fuse(rankings ...[]ranked) []ranked {
	scores := make(map[int64]float64)
	for _, list := range rankings {
		rank := 0
		for i, r := range list {
			if i > 0 && r.score < list[i-1].score {
				rank = i
			}
			scores[r.passage] += (rrfK + 1) / float64(rrfK+1+rank) / float64(len(rankings))
		}
	}
	out := make([]ranked, 0, len(scores))
	for passage, score := range scores {
		out = append(out, ranked{passage, score})
	}
	return out
}
