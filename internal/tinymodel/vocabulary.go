package tinymodel

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"stopgap/internal/automaton"
)

// A vocabulary is that of a byte-level byte-pair encoding.
type vocabulary struct {
	tokens []string // in the alphabet of printable characters
	types  []int32
	merges []string
}

// special are Qwen's special tokens; the first three are control tokens.
var special = []string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>",
	"<tool_response>", "</tool_response>", "<think>", "</think>",
}

// learn makes a vocabulary of at most so many tokens: the special ones, the
// bytes, and what the most frequent pair of neighbours in the text becomes,
// again and again. Words keep the space before them.
func learn(text string, size int) vocabulary {
	var v vocabulary
	for i, s := range special {
		v.tokens, v.types = append(v.tokens, s), append(v.types, 4)
		if i < 3 {
			v.types[i] = 3 // control, not user-defined
		}
	}
	for b := range 256 {
		v.tokens, v.types = append(v.tokens, automaton.Spell(string([]byte{byte(b)}))), append(v.types, 1)
	}
	counts := map[string]int{}
	for _, w := range strings.Fields(text) {
		counts[" "+w]++
	}
	type word struct {
		parts []string
		count int
	}
	var words []word
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		parts := make([]string, len(w))
		for i := range len(w) {
			parts[i] = automaton.Spell(w[i : i+1])
		}
		words = append(words, word{parts, counts[w]})
	}
	known := map[string]bool{}
	for len(v.tokens) < size {
		pairs := map[[2]string]int{}
		for _, w := range words {
			for i := range len(w.parts) - 1 {
				pairs[[2]string{w.parts[i], w.parts[i+1]}] += w.count
			}
		}
		if len(pairs) == 0 {
			break
		}
		best := slices.MaxFunc(slices.Collect(maps.Keys(pairs)), func(a, b [2]string) int {
			return cmp.Or(cmp.Compare(pairs[a], pairs[b]), slices.Compare(b[:], a[:]))
		})
		if joined := best[0] + best[1]; !known[joined] { // "a"+"bc" may be there as "ab"+"c"
			known[joined] = true
			v.tokens, v.types = append(v.tokens, joined), append(v.types, 1)
		}
		v.merges = append(v.merges, best[0]+" "+best[1])
		for i := range words {
			words[i].parts = merge(words[i].parts, best)
		}
	}
	return v
}

// merge joins the neighbours that are the pair.
func merge(parts []string, pair [2]string) []string {
	out := parts[:0]
	for i := 0; i < len(parts); i++ {
		if i+1 < len(parts) && parts[i] == pair[0] && parts[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
			continue
		}
		out = append(out, parts[i])
	}
	return out
}
