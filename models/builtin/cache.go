package builtin

import (
	"sync"
	"sync/atomic"
)

// pageLength is how many positions a page holds.
const pageLength = 64

// A page holds the keys and values of pageLength positions, of all layers and
// heads. Sequences share pages: one that is full, or that another sequence may
// know, is not written any more.
type page struct {
	users  atomic.Int32 // sequences that have it
	keys   []float32    // by layer, head, number in the head, position
	values []float32    // by layer, head, position, number in the head
}

func (s *shape) newPage() *page {
	n := s.layers * s.kvHeads * s.head * pageLength
	both := make([]float32, 2*n)
	p := &page{keys: both[:n], values: both[n:]}
	p.users.Store(1)
	return p
}

// at gives the part of a page that belongs to a head of a layer: of its keys,
// the numbers by position, and of its values.
func (s *shape) at(p *page, layer, head int) (keys, values []float32) {
	size := s.head * pageLength
	start := (layer*s.kvHeads + head) * size
	return p.keys[start:][:size], p.values[start:][:size]
}

// A sequence is tokens and what the layers computed for each.
type sequence struct {
	tokens []int
	pages  []*page
}

// fork gives a sequence that begins with the first n tokens of q. Only a page
// that is partly filled is copied.
func (q *sequence) fork(n int) sequence {
	out := sequence{tokens: append([]int(nil), q.tokens[:n]...)}
	for _, p := range q.pages[:n/pageLength] {
		p.users.Add(1)
		out.pages = append(out.pages, p)
	}
	if n%pageLength != 0 {
		half := q.pages[n/pageLength]
		last := &page{keys: append([]float32(nil), half.keys...), values: append([]float32(nil), half.values...)}
		last.users.Store(1)
		out.pages = append(out.pages, last)
	}
	return out
}

const (
	// maxKept is how many sequences are kept for the requests to come.
	maxKept = 16
	// maxKeptBytes bounds their pages.
	maxKeptBytes = 16 << 20
	// maxFree is how many pages wait for another sequence: a context of 4 096.
	maxFree = 4096 / pageLength
)

// prefixes are the sequences that new ones may begin with, the least recently
// used first. None of them changes any more. The zero value is ready.
type prefixes struct {
	mu   sync.Mutex
	kept []keptSequence
	free []*page // that no sequence has any more
}

type keptSequence struct {
	sequence
	session string
}

// begin gives a sequence with the longest beginning of tokens that is known,
// the last token left out: something has to be computed to go on from.
func (p *prefixes) begin(tokens []int) sequence {
	p.mu.Lock()
	defer p.mu.Unlock()
	best, length := -1, 0
	for i, k := range p.kept {
		if n := common(k.tokens, tokens[:len(tokens)-1]); n > length {
			best, length = i, n
		}
	}
	if best < 0 {
		return sequence{}
	}
	found := p.kept[best]
	p.kept = append(append(p.kept[:best:best], p.kept[best+1:]...), found)
	return found.fork(length)
}

// extend makes room in a sequence for n more positions. Pages that were left
// are taken first: a context has megabytes, and what is garbage of that size
// waits long to be collected.
func (p *prefixes) extend(q *sequence, s *shape, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(q.pages)*pageLength < len(q.tokens)+n {
		p.trim(0, *q) // what would have to leave when q is kept leaves now
		q.pages = append(q.pages, p.page(s))
	}
}

// page gives an empty page.
func (p *prefixes) page(s *shape) *page {
	last := len(p.free) - 1
	if last < 0 {
		return s.newPage()
	}
	fresh := p.free[last]
	p.free = p.free[:last]
	clear(fresh.keys) // numbers out of bounds would reach the next sequence
	clear(fresh.values)
	fresh.users.Store(1)
	return fresh
}

// keep takes a sequence that is complete and that its owner does not use any
// more. It takes the place of what the session had before and of those that it
// begins with.
func (p *prefixes) keep(q sequence, session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if common(k.tokens, q.tokens) == len(q.tokens) {
			p.leave(q) // it is known already
			return
		}
	}
	kept := make([]keptSequence, 0, len(p.kept)+1)
	for _, k := range p.kept {
		if common(k.tokens, q.tokens) < len(k.tokens) && (session == "" || k.session != session) {
			kept = append(kept, k)
			continue
		}
		p.leave(k.sequence)
	}
	p.kept = append(kept, keptSequence{q, session})
	p.trim(1, sequence{})
}

// trim lets the least recently used sequences go, but for some, until the
// others and one that is not kept yet are within the bounds.
func (p *prefixes) trim(least int, more sequence) {
	for len(p.kept) > least && (len(p.kept) > maxKept || size(p.kept, more) > maxKeptBytes) {
		p.leave(p.kept[0].sequence)
		p.kept = p.kept[1:]
	}
}

// leave sets the pages of a sequence free that no other has.
func (p *prefixes) leave(q sequence) {
	for _, pg := range q.pages {
		if pg.users.Add(-1) == 0 && len(p.free) < maxFree {
			p.free = append(p.free, pg)
		}
	}
}

// size is the bytes of the pages of sequences, those that several share once.
func size(kept []keptSequence, more sequence) int {
	seen, bytes := map[*page]bool{}, 0
	count := func(pages []*page) {
		for _, p := range pages {
			if !seen[p] {
				seen[p] = true
				bytes += 4 * (len(p.keys) + len(p.values))
			}
		}
	}
	for _, k := range kept {
		count(k.pages)
	}
	count(more.pages)
	return bytes
}

// common counts the tokens that two lists begin with.
func common(a, b []int) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
