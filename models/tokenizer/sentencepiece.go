//go:build hftokenizers

package tokenizer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// longestToken is more than any SentencePiece vocabulary has; each token is cut
// at each of its places.
const longestToken = 1 << 10 // bytes

// other reads a GGUF file that is no byte-level BPE: SentencePiece's BPE, which
// has scores in place of merges, is written as the tokenizer.json that Hugging
// Face's converter makes of it.
func (m metadata) other(model string) (*Tokenizer, error) {
	if model != "llama" {
		return nil, unsupportedModel(model, jsonHint)
	}
	v := vocabulary{bos: -1, addBOS: true}
	if err := m.tokens(&v); err != nil {
		return nil, err
	}
	scores := m.numbers("scores")
	if len(scores) != len(v.tokens) {
		return nil, broken("there are %d tokens, but %d scores", len(v.tokens), len(scores))
	}
	m.named(&v)
	for id, token := range v.tokens {
		if len(token) > longestToken {
			return nil, broken("token %d has %d bytes", id, len(token))
		}
	}
	data, err := json.Marshal(m.sentencePiece(&v, scores))
	if err != nil {
		return nil, err
	}
	l, err := newLibrary(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{pieces: make([]string, len(v.tokens)), types: v.types, encoder: l}
	ids := make(map[string]int32, len(v.tokens))
	for id, token := range v.tokens {
		ids[token], t.pieces[id] = int32(id), token
		if b, ok := octet(token); ok && v.types[id] == Byte {
			t.pieces[id] = string([]byte{b})
		} else if !v.types[id].special() {
			t.pieces[id] = strings.ReplaceAll(token, "▁", " ")
		}
	}
	t.name(&v, ids)
	return t, nil
}

// sentencePiece is a tokenizer.json.
func (m metadata) sentencePiece(v *vocabulary, scores []float64) any {
	type object = map[string]any
	ids := make(map[string]int, len(v.tokens))
	var added []jsonAdded
	for id, token := range v.tokens {
		ids[token] = id
		if v.types[id].special() {
			added = append(added, jsonAdded{ID: id, Content: token, Special: v.types[id] != UserDefined, RStrip: m.strips(token)})
		}
	}
	unknown, ok := integer(m[prefix+"unknown_token_id"])
	if !ok || unknown < 0 || unknown >= len(v.tokens) {
		unknown = 0 // as llama.cpp has it
	}
	normalizers := []object{{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}}
	if space, ok := m[prefix+"add_space_prefix"].(bool); !ok || space {
		normalizers = slices.Insert(normalizers, 0, object{"type": "Prepend", "prepend": "▁"})
	}
	return object{
		"added_tokens": added,
		"normalizer":   object{"type": "Sequence", "normalizers": normalizers},
		"model": object{
			"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": v.tokens[unknown],
			"vocab": ids, "merges": mergesByScore(v, ids, scores),
		},
	}
}

// mergesByScore gives each pair of tokens that is a third one, those with the
// best scores first. What nothing leads to takes no part.
func mergesByScore(v *vocabulary, ids map[string]int, scores []float64) [][2]string {
	type scored struct {
		pair        [2]string
		score       float64
		left, right int
	}
	var all []scored
	for id, token := range v.tokens {
		if v.types[id] != Normal {
			continue
		}
		for i := range token {
			left, okLeft := ids[token[:i]]
			right, okRight := ids[token[i:]]
			if okLeft && okRight && v.types[left] == Normal && v.types[right] == Normal {
				all = append(all, scored{[2]string{token[:i], token[i:]}, scores[id], left, right})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right))
	})
	merges := make([][2]string, len(all))
	for i, m := range all {
		merges[i] = m.pair
	}
	return merges
}

// strips reports whether a special token takes the white space after it. GGUF
// files do not say; llama.cpp knows it of the models named Phi-3.
func (m metadata) strips(token string) bool {
	name, _ := m["general.name"].(string)
	name = strings.ToLower(name)
	return (strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")) &&
		token != "<unk>" && token != "<s>" && token != "<|endoftext|>"
}

// numbers gives an array of numbers.
func (m metadata) numbers(key string) []float64 {
	switch list := m[prefix+key].(type) {
	case []float32:
		numbers := make([]float64, len(list))
		for i, n := range list {
			numbers[i] = float64(n)
		}
		return numbers
	case []any:
		numbers := make([]float64, len(list))
		for i, n := range list {
			numbers[i], _ = n.(float64)
		}
		return numbers
	}
	return nil
}
