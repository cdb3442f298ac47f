package runner

import (
	"crypto/sha256"
	"encoding/binary"
)

// A guard sees when a run goes in circles: the same call with the same result
// three times in a row, or a cycle of two to five calls three times over,
// within turns or across them; and the same for turns as a whole, which may
// have more calls than that.
type guard struct {
	calls, turns circle
	nudged       bool
}

const (
	guardRepeats  = 3
	guardLongest  = 5
	guardFieldSep = 8 // bytes of the length in front of each hashed field
)

// add records a turn's calls, each followed by its result, and reports whether
// the run repeats itself. After a report it counts from anew.
func (g *guard) add(fields ...string) bool {
	over := g.turns.add(fingerprint(fields))
	for ; len(fields) >= 2; fields = fields[2:] {
		over = g.calls.add(fingerprint(fields[:2])) || over
	}
	if over {
		g.calls, g.turns = nil, nil
	}
	return over
}

// fingerprint tells lists of texts apart.
func fingerprint(fields []string) [sha256.Size]byte {
	h := sha256.New()
	var size [guardFieldSep]byte
	for _, f := range fields {
		binary.LittleEndian.PutUint64(size[:], uint64(len(f)))
		h.Write(size[:])
		h.Write([]byte(f))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// A circle is what happened, in order, to be looked at for cycles.
type circle [][sha256.Size]byte

// add reports whether the list ends, with what is added, in a cycle that has
// come three times.
func (c *circle) add(f [sha256.Size]byte) bool {
	*c = append(*c, f)
	for period := 1; period <= guardLongest; period++ {
		if c.cycles(period) {
			return true
		}
	}
	return false
}

func (c circle) cycles(period int) bool {
	n := guardRepeats * period
	if len(c) < n {
		return false
	}
	last := c[len(c)-n:]
	for i := period; i < n; i++ {
		if last[i] != last[i-period] {
			return false
		}
	}
	return true
}
