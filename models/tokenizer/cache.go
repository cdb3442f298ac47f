package tokenizer

import (
	"strings"
	"sync"
)

const (
	longestCached = 64      // bytes of a piece; longer ones hardly come again
	generation    = 1 << 13 // pieces of one half of a cache
)

// A cache remembers the tokens of pieces, at most two generations of them: when
// the young one is full it becomes the old one, and what was not asked for
// since is forgotten.
type cache struct {
	mu         sync.RWMutex
	young, old map[string][]int32
}

func (c *cache) get(piece string) ([]int32, bool) {
	c.mu.RLock()
	tokens, ok := c.young[piece]
	if ok {
		c.mu.RUnlock()
		return tokens, true
	}
	tokens, ok = c.old[piece]
	c.mu.RUnlock()
	if ok {
		c.keep(strings.Clone(piece), tokens)
	}
	return tokens, ok
}

func (c *cache) put(piece string, ids []int) {
	tokens := make([]int32, len(ids))
	for i, id := range ids {
		tokens[i] = int32(id)
	}
	c.keep(strings.Clone(piece), tokens) // the piece is a part of a whole text
}

func (c *cache) keep(piece string, tokens []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= generation {
		c.young, c.old = make(map[string][]int32), c.young
	}
	c.young[piece] = tokens
}
