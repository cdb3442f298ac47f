package corpus

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
)

// A Hit is a document that answers a query, with the passage that does.
type Hit struct {
	// ID is that of the document, or of its passage ("guide.md#3") where the
	// document has several. Read takes both.
	ID       string
	Document string // the document's id
	Title    string
	Snippet  string // the best sentences of the passage, on one line
	Text     string // the whole passage, with the end of the one before
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
//
// With an Embedder the ranks by words and those by vectors are fused, and scores
// are at most 1.
func (x *Index) Search(ctx context.Context, queries []string, k int) ([]Found, error) {
	vectors, err := x.embedQueries(ctx, queries)
	if err != nil {
		return nil, err
	}
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
		if vectors != nil {
			list[i].Hits, err = x.fused(ctx, tx, terms, vectors[i], k)
		} else {
			list[i].Hits, err = hits(ctx, tx, terms, k)
		}
		if err != nil {
			return nil, explain(ctx, x.path, err)
		}
	}
	return list, nil
}

// hits asks for more passages until there are enough documents among them.
func hits(ctx context.Context, tx *sql.Tx, query []term, k int) ([]Hit, error) {
	r, err := newRanking(ctx, tx, query)
	if err != nil {
		return nil, err
	}
	for limit := 4*k + 100; ; limit *= 4 {
		best, all, err := r.best(ctx, tx, limit)
		if err != nil {
			return nil, err
		}
		last := all || limit >= maxCandidates
		if !last {
			best = complete(best)
		}
		list, err := candidates(ctx, tx, best)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(list, better)
		if found := choose(list, query, k); len(found) == k || last {
			return found, nil
		}
	}
}

// maxCandidates bounds the passages that are looked at for one query.
const maxCandidates = 4096

// complete takes the last ones off a list that breaks off: among passages of the
// same score it would choose by their numbers, which depend on when they were
// indexed.
func complete(list []ranked) []ranked {
	n := len(list)
	for n > 0 && list[n-1].score == list[len(list)-1].score {
		n--
	}
	return list[:n]
}

// A candidate is a passage that may answer a query.
type candidate struct {
	document  int64
	part      int
	id, title string
	text      string // of the passage, with its lead
	own       int    // where its own text begins
	ranked
}

// candidates gives what is shown of passages.
func candidates(ctx context.Context, tx *sql.Tx, best []ranked) ([]candidate, error) {
	s, err := tx.PrepareContext(ctx, `
		SELECT d.num, p.part, p.lead, p.text, d.id, d.title
		FROM passages p JOIN documents d ON d.num = p.document WHERE p.num = ?`)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list := make([]candidate, len(best))
	for i, r := range best {
		c := &list[i]
		c.ranked = r
		var lead string
		if err := s.QueryRowContext(ctx, r.passage).Scan(&c.document, &c.part, &lead, &c.text, &c.id, &c.title); err != nil {
			return nil, err
		}
		c.own, c.text = len(lead), lead+c.text
	}
	return list, nil
}

// better orders candidates: the best first, equal ones by their ids.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part))
}

// choose takes k candidates that look different: each document's best passage,
// then others, until there are k. They are in the order of their scores.
func choose(list []candidate, query []term, k int) []Hit {
	type look struct{ title, snippet string }
	looks := make(map[look]bool)
	documents := make(map[int64]bool)
	shown := make([]bool, len(list))
	snippets := make([]string, len(list))
	n := 0
	for _, again := range []bool{false, true} {
		for i := 0; i < len(list) && n < k; i++ {
			c := list[i]
			if shown[i] || documents[c.document] != again {
				continue
			}
			documents[c.document] = true
			snippets[i] = snippet(c.text, c.own, query)
			if l := (look{c.title, snippets[i]}); !looks[l] {
				looks[l] = true
				shown[i] = true
				n++
			}
		}
	}
	var found []Hit
	for i, c := range list {
		if shown[i] {
			found = append(found, Hit{ID: passageID(c.id, c.part), Document: c.id, Title: c.title, Snippet: snippets[i], Text: c.text, Score: c.score})
		}
	}
	return found
}

func passageID(id string, part int) string {
	if part == 0 {
		return id
	}
	return id + "#" + strconv.Itoa(part)
}
