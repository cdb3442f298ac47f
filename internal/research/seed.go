package research

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// seedOf gives the seed of a part of a research: the same wherever and whenever
// it runs, and another one for another base.
func seedOf(base *int, question string, of ...string) int {
	source := "-"
	if base != nil {
		source = strconv.Itoa(*base)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", source, question, strings.Join(of, "\x00")))
	return int(binary.BigEndian.Uint32(sum[:4]) >> 1) // servers take 31 bits
}
