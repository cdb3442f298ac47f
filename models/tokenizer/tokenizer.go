// Package tokenizer turns text into a model's token ids, and ids into bytes:
// byte-level byte-pair encoding, as the Qwen, Llama 3, GPT, StarCoder and
// DeepSeek models have it, read from a GGUF file, from what Ollama tells of a
// model, or from a tokenizer.json.
//
// Other kinds (SentencePiece, WordPiece, Unigram) are left to Hugging Face's
// library, which is linked with the build tag hftokenizers; without it they
// give an *UnsupportedError. The package never guesses: a file whose ids it
// could not give exactly is refused. It never applies a chat template.
package tokenizer

import "strings"

// A Type is what a token is for, with the numbers of GGUF's
// tokenizer.ggml.token_type. Zero is no token.
type Type int

// The types of GGUF.
const (
	Normal      Type = 1 + iota
	Unknown          // stands for what has no token
	Control          // a special token, such as <|im_end|>
	UserDefined      // recognised whole, such as <tool_call>
	Unused           // a place in the vocabulary that nothing leads to
	Byte             // one byte, in vocabularies that are not byte-level
)

var typeNames = [...]string{Normal: "normal", Unknown: "unknown", Control: "control", UserDefined: "user-defined", Unused: "unused", Byte: "byte"}

// String gives the type's name in GGUF's description, with a hyphen.
func (t Type) String() string {
	if t < Normal || t > Byte {
		return "none"
	}
	return typeNames[t]
}

// special reports whether tokens of the type are recognised in a text by their
// spelling, as llama.cpp does.
func (t Type) special() bool { return t == Control || t == UserDefined || t == Unknown }

// A Tokenizer knows the tokens of one model. It is immutable, apart from a
// bounded cache, and safe for concurrent use.
type Tokenizer struct {
	pieces []string // by id, the bytes it stands for
	types  []Type   // by id
	ids    map[string]int32
	bos    int32 // -1 where there is none
	addBOS bool
	eog    map[int32]bool
	encoder
}

// An encoder turns text into ids.
type encoder interface {
	encode(text string, special bool) []int
}

// Encode gives the ids of a text. With special, control and user-defined
// tokens in it are recognised; without, the text is only text, and what looks
// like such a token is spelled out. No token is added at the beginning or the
// end. Bytes that are not UTF-8 keep their own tokens. A byte that the
// vocabulary has no token for becomes the token for what is unknown, or
// nothing where there is none.
func (t *Tokenizer) Encode(text string, special bool) []int { return t.encode(text, special) }

// Bytes gives the bytes that a token stands for; for a special token, its own
// spelling. A token may end inside a UTF-8 sequence. The result is nil for an
// id that the vocabulary does not have.
func (t *Tokenizer) Bytes(id int) []byte {
	if t.Type(id) == 0 {
		return nil
	}
	return []byte(t.pieces[id])
}

// Decode gives the text that ids stand for, one after the other. Ids that the
// vocabulary does not have add nothing.
func (t *Tokenizer) Decode(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		if t.Type(id) != 0 {
			b.WriteString(t.pieces[id])
		}
	}
	return b.String()
}

// Type gives the type of a token, or zero where the vocabulary has none of
// that id.
func (t *Tokenizer) Type(id int) Type {
	if id < 0 || id >= len(t.types) {
		return 0
	}
	return t.types[id]
}

// Specials lists the spellings of the control and user-defined tokens, in the
// order of their ids.
func (t *Tokenizer) Specials() []string {
	var out []string
	for id, typ := range t.types {
		if typ.special() && t.pieces[id] != "" {
			out = append(out, t.pieces[id])
		}
	}
	return out
}

// Len is the number of ids: they go from 0 to Len()-1. A tokenizer.json may
// leave some out; their type is zero.
func (t *Tokenizer) Len() int { return len(t.types) }

// BOS gives the token that begins a text, -1 where there is none, and whether
// the model wants it in front of each prompt.
func (t *Tokenizer) BOS() (id int, add bool) { return int(t.bos), t.addBOS && t.bos >= 0 }

// EOG reports whether a token ends a generation: the tokens that the file names
// (eos, eot, eom), as for Ollama, and those with a spelling that llama.cpp
// knows.
func (t *Tokenizer) EOG(id int) bool { return id >= 0 && id < t.Len() && t.eog[int32(id)] }

// Lookup gives the id of the token that stands for exactly these bytes. Where
// there are two, it is the special one.
func (t *Tokenizer) Lookup(spelling string) (id int, ok bool) {
	found, ok := t.ids[spelling]
	return int(found), ok
}
