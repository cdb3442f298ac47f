package runner

import (
	"crypto/sha256"
	"encoding/binary"
)

// A guard sees when a run goes in circles: the same calls with the same
// results three times in a row, or a cycle of two to five turns three times
// over.
type guard struct {
	seen   [][sha256.Size]byte
	nudged bool
}

const (
	guardRepeats  = 3
	guardLongest  = 5
	guardFieldSep = 8 // bytes of the length in front of each hashed field
)

// add records a turn's calls and results and reports whether the run repeats
// itself. After a report it counts from anew.
func (g *guard) add(fields ...string) bool {
	h := sha256.New()
	var size [guardFieldSep]byte
	for _, f := range fields {
		binary.LittleEndian.PutUint64(size[:], uint64(len(f)))
		h.Write(size[:])
		h.Write([]byte(f))
	}
	g.seen = append(g.seen, [sha256.Size]byte(h.Sum(nil)))
	for period := 1; period <= guardLongest; period++ {
		if g.cycles(period) {
			g.seen = g.seen[:0]
			return true
		}
	}
	return false
}

// cycles reports whether the last turns are one cycle of that length, three times over.
func (g *guard) cycles(period int) bool {
	n := guardRepeats * period
	if len(g.seen) < n {
		return false
	}
	last := g.seen[len(g.seen)-n:]
	for i := period; i < n; i++ {
		if last[i] != last[i-period] {
			return false
		}
	}
	return true
}
