// Package tokenizer turns text into a model's token ids and back: byte-level
// byte-pair encoding, read from a GGUF file.
package tokenizer

import (
	"errors"
	"io"
)

// A Type is what a token is for, with the numbers of GGUF's
// tokenizer.ggml.token_type.
type Type int

// The types of GGUF.
const (
	Normal      Type = 1 + iota
	Unknown          // stands for text that has no token
	Control          // a special token, such as <|im_end|>
	UserDefined      // recognised whole, such as <tool_call>
	Unused
	Byte // one byte, in vocabularies that are not byte-level
)

// A Tokenizer knows the tokens of one model. It is immutable and safe for
// concurrent use.
type Tokenizer struct{}

// FromGGUF reads the tokenizer of a model file.
func FromGGUF(r io.ReadSeeker) (*Tokenizer, error) {
	return nil, errors.New("tokenizer: not written yet")
}

// Encode gives the ids of a text. With special, control and user-defined
// tokens in it are recognised; without, the text is only text. No token is
// added at the beginning or the end.
func (t *Tokenizer) Encode(text string, special bool) []int { return nil }

// Bytes gives the bytes that a token stands for; for a special token, its own
// spelling. It is nil for an id that the vocabulary does not have.
func (t *Tokenizer) Bytes(id int) []byte { return nil }

// Type gives the type of a token, or zero where the vocabulary has none of
// that id.
func (t *Tokenizer) Type(id int) Type { return 0 }

// Len is the number of ids: they go from 0 to Len()-1.
func (t *Tokenizer) Len() int { return 0 }

// BOS gives the token that begins a text, -1 where there is none, and whether
// the model wants it in front of each prompt.
func (t *Tokenizer) BOS() (id int, add bool) { return -1, false }

// EOG reports whether a token ends a generation.
func (t *Tokenizer) EOG(id int) bool { return false }

// Lookup gives the id of the token with a spelling.
func (t *Tokenizer) Lookup(spelling string) (id int, ok bool) { return 0, false }
