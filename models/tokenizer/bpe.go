package tokenizer

import (
	"sync"

	"golang.org/x/text/unicode/norm"
)

// A bpe is byte-level byte-pair encoding: special tokens are cut out of the
// text, what is left is normalised and split into pieces, and in each piece the
// pair of neighbours that was learned first is merged until no pair is known.
type bpe struct {
	special    *trie // recognised in the text as it came
	normalized *trie // recognised after normalisation
	compose    bool  // normalise to NFC
	split      splitter
	octets     [256]int32       // by byte: its token, or -1
	words      map[string]int32 // tokens that a piece is before anything is merged; nil for most models
	merges     map[pair]merged
	cache      cache
}

// A pair is two neighbouring tokens.
type pair struct{ left, right int32 }

// A merged is what a pair becomes. Lower ranks come first.
type merged struct{ rank, id int32 }

func (e *bpe) encode(text string, special bool) []int {
	var ids []int
	first, second := e.special, e.normalized
	if !special {
		first, second = nil, nil
	}
	for plain, id := range first.cut(text) {
		if e.compose {
			plain = norm.NFC.String(plain)
		}
		for plain, id := range second.cut(plain) {
			e.split.pieces(plain, func(piece string) { ids = e.word(piece, ids) })
			ids = appendToken(ids, id)
		}
		ids = appendToken(ids, id)
	}
	return ids
}

func appendToken(ids []int, id int32) []int {
	if id < 0 {
		return ids
	}
	return append(ids, int(id))
}

// word appends the tokens of one piece.
func (e *bpe) word(piece string, ids []int) []int {
	if len(piece) == 1 {
		return appendToken(ids, e.octets[piece[0]])
	}
	if id, ok := e.words[piece]; ok {
		return append(ids, int(id))
	}
	if len(piece) > longestCached {
		return e.merge(piece, ids)
	}
	tokens, ok := e.cache.get(piece)
	if !ok {
		from := len(ids)
		ids = e.merge(piece, ids)
		e.cache.put(piece, ids[from:])
		return ids
	}
	for _, id := range tokens {
		ids = append(ids, int(id))
	}
	return ids
}

// A symbol is a token of a piece while it is being merged, with its neighbours'
// places. A symbol that has been merged into its left neighbour has the id -1.
type symbol struct{ id, prev, next int32 }

// A candidate is a pair that may be merged. It is stale once one of its symbols
// has become another.
type candidate struct {
	merged
	pair
	at int32 // the place of the left symbol
}

// before orders candidates: the pair that was learned first, then the leftmost.
func (c *candidate) before(d *candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// A workspace is what merging one piece needs.
type workspace struct {
	symbols []symbol
	queue   queue
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// largestKept is how many symbols a workspace may hold to be used again.
const largestKept = 1 << 14

// merge appends the tokens of a piece. It takes n·log n steps for n bytes.
func (e *bpe) merge(piece string, ids []int) []int {
	w := workspaces.Get().(*workspace)
	w.symbols, w.queue = w.symbols[:0], w.queue[:0]
	for i := range len(piece) {
		if id := e.octets[piece[i]]; id >= 0 {
			n := int32(len(w.symbols))
			w.symbols = append(w.symbols, symbol{id, n - 1, n + 1})
		}
	}
	for at := range int32(len(w.symbols)) {
		e.consider(w, at)
	}
	for len(w.queue) > 0 {
		c := w.queue.pop()
		left := &w.symbols[c.at]
		if left.id != c.left || int(left.next) >= len(w.symbols) || w.symbols[left.next].id != c.right {
			continue // stale
		}
		right := &w.symbols[left.next]
		left.id, left.next, right.id = c.id, right.next, -1
		if int(left.next) < len(w.symbols) {
			w.symbols[left.next].prev = c.at
		}
		e.consider(w, left.prev)
		e.consider(w, c.at)
	}
	for _, s := range w.symbols {
		ids = appendToken(ids, s.id)
	}
	if cap(w.symbols) <= largestKept {
		workspaces.Put(w)
	}
	return ids
}

// consider puts the pair that begins at a place into the queue.
func (e *bpe) consider(w *workspace, at int32) {
	if at < 0 || int(w.symbols[at].next) >= len(w.symbols) {
		return
	}
	p := pair{w.symbols[at].id, w.symbols[w.symbols[at].next].id}
	if m, ok := e.merges[p]; ok {
		w.queue.push(candidate{m, p, at})
	}
}

// A queue is a binary heap of candidates, the first one on top.
type queue []candidate

func (q *queue) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for i > 0 && c.before(&h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = c
	*q = h
}

func (q *queue) pop() candidate {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if child >= len(h) || !h[child].before(&last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return top
}
