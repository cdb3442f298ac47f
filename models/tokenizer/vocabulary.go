package tokenizer

import "strings"

// A vocabulary is what every description of byte-level BPE comes to. Tokens and
// merges are spelled in the alphabet of bytes, special tokens as they are.
type vocabulary struct {
	tokens []string // by id; empty where there is none, or where nothing spells it
	types  []Type   // by id; zero where there is none
	merges [][2]string
	pre    preTokenizer
	bos    int
	addBOS bool
	eog    []int
}

// tokenizer checks the vocabulary and makes the tables of it. The encoder still
// lacks what it knows of special tokens.
func (v *vocabulary) tokenizer() (*Tokenizer, *bpe, error) {
	e := &bpe{merges: make(map[pair]merged, len(v.merges)), split: newSplitter(v.pre.steps)}
	if v.pre.ignoreMerges {
		e.words = make(map[string]int32, len(v.tokens))
	}
	for b := range e.octets {
		e.octets[b] = -1
	}
	t := &Tokenizer{pieces: make([]string, len(v.tokens)), types: v.types, encoder: e}
	ids := make(map[string]int32, len(v.tokens)) // by spelling
	for i, token := range v.tokens {
		id := int32(i)
		if v.types[i] == 0 || token == "" {
			continue
		}
		if first, twice := ids[token]; twice {
			return nil, nil, broken("token %d is %q, as token %d is", id, token, first)
		}
		ids[token] = id
		t.pieces[i] = token
		if v.types[i].special() {
			continue
		}
		if octets, ok := fromLetters(token); ok {
			t.pieces[i] = octets
			if e.words != nil {
				e.words[octets] = id
			}
			if len(octets) == 1 {
				e.octets[octets[0]] = id
			}
		}
	}
	for rank, m := range v.merges {
		if err := e.learn(ids, m, int32(rank)); err != nil {
			return nil, nil, err
		}
	}
	t.name(v, ids)
	return t, e, nil
}

// learn puts a merge into the table.
func (e *bpe) learn(ids map[string]int32, m [2]string, rank int32) error {
	left, okLeft := ids[m[0]]
	right, okRight := ids[m[1]]
	whole, okWhole := ids[m[0]+m[1]]
	if !okLeft || !okRight || !okWhole {
		return broken("merge %d, of %q and %q, has a token that is not in the vocabulary", rank, m[0], m[1])
	}
	p := pair{left, right}
	if first, twice := e.merges[p]; twice {
		return broken("merge %d, of %q and %q, is merge %d", rank, m[0], m[1], first.rank)
	}
	e.merges[p] = merged{rank, whole}
	return nil
}

// endings are the spellings of tokens that end a generation whatever the file
// says (llama.cpp's src/llama-vocab.cpp).
const endings = `<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <end_of_turn> <|endoftext|> <|eom_id|> <EOT> _<EOT>
	<|end_of_text|> <end_of_utterance> <｜end▁of▁sentence｜> <|fim_pad|> <fim-pad> <fim_pad> <PAD>
	<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame> <|file_sep|>`

// name fills in what tokens are known for.
func (t *Tokenizer) name(v *vocabulary, ids map[string]int32) {
	t.ids = make(map[string]int32, len(ids))
	for _, special := range []bool{false, true} { // special tokens last: they count
		for id, typ := range t.types {
			if typ != 0 && typ.special() == special && t.pieces[id] != "" {
				t.ids[t.pieces[id]] = int32(id)
			}
		}
	}
	t.bos, t.addBOS = -1, v.addBOS
	if t.Type(v.bos) != 0 {
		t.bos = int32(v.bos)
	}
	t.eog = make(map[int32]bool)
	for _, id := range v.eog {
		t.eog[int32(id)] = true
	}
	for spelling := range strings.FieldsSeq(endings) {
		if id, ok := ids[spelling]; ok {
			t.eog[id] = true
		}
	}
	// In the harmony format <|end|> ends a message, not the generation.
	_, returns := ids["<|return|>"]
	_, calls := ids["<|call|>"]
	if end, ok := ids["<|end|>"]; ok && returns && calls {
		delete(t.eog, end)
	}
}
