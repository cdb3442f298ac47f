package tokenizer

import (
	"math"
	"reflect"
	"strings"
)

const prefix = "tokenizer.ggml."

// FromMetadata reads the tokenizer from the metadata of a GGUF file by their
// keys, as they stand in model_info of Ollama's /api/show, asked with verbose:
// without it the arrays are empty. Numbers may be of any type, arrays slices of
// any type.
func FromMetadata(info map[string]any) (*Tokenizer, error) {
	m := metadata(info)
	model := m.text("model")
	switch {
	case model == "":
		return nil, broken("there is no %smodel", prefix)
	case model == "gpt2":
		return m.bpe()
	}
	return m.other(model)
}

// Specials lists the spellings of the control and user-defined tokens, whatever
// the kind of tokenizer; nil where the metadata does not tell them.
func Specials(info map[string]any) []string {
	var v vocabulary
	if metadata(info).tokens(&v) != nil {
		return nil
	}
	var out []string
	for id, token := range v.tokens {
		if v.types[id].special() {
			out = append(out, token)
		}
	}
	return out
}

// metadata are the keys and values of a GGUF file.
type metadata map[string]any

func (m metadata) bpe() (*Tokenizer, error) {
	pre := m.text("pre")
	kind, ok := preTokenizers[pre]
	if !ok && pre != "" {
		return nil, &UnsupportedError{What: "pre-tokenizer \"" + pre + "\"", Hint: jsonHint}
	} else if !ok {
		return nil, &UnsupportedError{What: "a GGUF file that does not name its pre-tokenizer", Hint: jsonHint}
	}
	v := vocabulary{pre: kind, bos: -1, addBOS: kind.addBOS}
	if err := m.tokens(&v); err != nil {
		return nil, err
	}
	for i, merge := range m.texts("merges") {
		left, right, ok := cutMerge(merge)
		if !ok {
			return nil, broken("merge %d, %q, is no pair", i, merge)
		}
		v.merges = append(v.merges, [2]string{left, right})
	}
	if len(v.merges) == 0 {
		return nil, broken("there are no %smerges", prefix)
	}
	m.named(&v)
	t, e, err := v.tokenizer()
	if err != nil {
		return nil, err
	}
	for id, typ := range t.types {
		if typ.special() {
			e.special = e.special.add(t.pieces[id], int32(id), trim{})
		}
	}
	return t, nil
}

const jsonHint = "take the model's tokenizer.json, or ask a server that has the model"

// tokens reads the tokens and their types.
func (m metadata) tokens(v *vocabulary) error {
	v.tokens = m.texts("tokens")
	if len(v.tokens) == 0 {
		return broken("there are no %stokens", prefix)
	}
	types := m.integers("token_type")
	if types != nil && len(types) != len(v.tokens) {
		return broken("there are %d tokens, but %d types", len(v.tokens), len(types))
	}
	v.types = make([]Type, len(v.tokens))
	for id := range v.types {
		v.types[id] = Normal
		if types != nil {
			v.types[id] = Type(types[id])
		}
		if v.types[id] < Normal || v.types[id] > Byte {
			return broken("token %d has the type %d", id, v.types[id])
		}
		if v.tokens[id] == "" { // some files have them; llama.cpp gives them names
			v.types[id] = Unused
		}
	}
	return nil
}

// named reads what single tokens are for.
func (m metadata) named(v *vocabulary) {
	if id, ok := integer(m[prefix+"bos_token_id"]); ok {
		v.bos = id
	}
	if add, ok := m[prefix+"add_bos_token"].(bool); ok {
		v.addBOS = add
	}
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if id, ok := integer(m[prefix+key]); ok {
			v.eog = append(v.eog, id)
		}
	}
	v.eog = append(v.eog, m.integers("eos_token_ids")...)
}

// cutMerge cuts a merge into its two tokens. A token may begin with a space.
func cutMerge(merge string) (left, right string, ok bool) {
	if merge == "" {
		return "", "", false
	}
	left, right, ok = strings.Cut(merge[1:], " ")
	return merge[:1] + left, right, ok && right != ""
}

func (m metadata) text(key string) string {
	s, _ := m[prefix+key].(string)
	return s
}

// texts gives an array of texts, nil where one of them is none.
func (m metadata) texts(key string) []string {
	switch list := m[prefix+key].(type) {
	case []string:
		return list
	case []any:
		texts := make([]string, len(list))
		for i, v := range list {
			var ok bool
			if texts[i], ok = v.(string); !ok {
				return nil
			}
		}
		return texts
	}
	return nil
}

// integers gives an array of whole numbers, nil where one of them is none.
func (m metadata) integers(key string) []int {
	list := reflect.ValueOf(m[prefix+key])
	if list.Kind() != reflect.Slice || list.Len() == 0 {
		return nil
	}
	numbers := make([]int, list.Len())
	for i := range numbers {
		var ok bool
		if numbers[i], ok = integer(list.Index(i).Interface()); !ok {
			return nil
		}
	}
	return numbers
}

// integer reads a number that fits an id.
func integer(v any) (int, bool) {
	var n float64
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		n = float64(r.Int())
	case r.CanUint():
		n = float64(r.Uint())
	case r.CanFloat():
		n = r.Float()
	default:
		return 0, false
	}
	if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// kinds are what llama.cpp calls the kinds of tokenizers in GGUF files.
var kinds = map[string]string{
	"llama": "SentencePiece", "bert": "WordPiece", "t5": "Unigram", "rwkv": "RWKV", "plamo2": "PLaMo 2",
}

// unsupportedModel refuses a GGUF file that is no byte-level BPE.
func unsupportedModel(model, hint string) error {
	what := "model \"" + model + "\""
	if kind, ok := kinds[model]; ok {
		what += " (" + kind + ")"
	}
	return &UnsupportedError{What: what, Hint: hint}
}
