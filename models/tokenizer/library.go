//go:build hftokenizers

package tokenizer

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"

	hf "github.com/daulet/tokenizers"
)

// A library is a tokenizer of Hugging Face's library.
//
// Texts go to it as C's and Rust's strings: a zero byte, and what is not UTF-8,
// is replaced by U+FFFD. Tokens that were added but are not special are
// recognised in every text; the library knows no other way.
type library struct {
	special *hf.Tokenizer
	plain   *hf.Tokenizer // reads special tokens as text
}

func newLibrary(data []byte) (*library, error) {
	special, err := hf.FromBytes(data)
	if err != nil {
		return nil, &FormatError{"Hugging Face's library refuses it", err}
	}
	plain, err := hf.FromBytes(data, hf.WithEncodeSpecialTokens())
	if err != nil {
		special.Close()
		return nil, &FormatError{"Hugging Face's library refuses it", err}
	}
	l := &library{special, plain}
	runtime.AddCleanup(l, func(both [2]*hf.Tokenizer) {
		both[0].Close()
		both[1].Close()
	}, [2]*hf.Tokenizer{special, plain})
	return l, nil
}

func (l *library) encode(text string, special bool) []int {
	defer runtime.KeepAlive(l)
	t := l.plain
	if special {
		t = l.special
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
	found := t.EncodeWithOptions(text, false).IDs
	ids := make([]int, len(found))
	for i, id := range found {
		ids[i] = int(id)
	}
	return ids
}

// fromLibrary lets the library read the file. What a file says of truncation
// and padding is for batches, and would change counts.
func fromLibrary(data []byte, f *jsonFile, _ *UnsupportedError) (*Tokenizer, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, &FormatError{"not a tokenizer.json", err}
	}
	delete(parts, "truncation")
	delete(parts, "padding")
	data, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	v, err := f.vocabulary()
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
		if v.types[id] != 0 {
			ids[token] = int32(id)
			t.pieces[id] = f.spell(token, v.types[id])
		}
	}
	t.name(v, ids)
	return t, nil
}

// spell gives what a token stands for inside a text, after the file's decoder.
func (f *jsonFile) spell(token string, typ Type) string {
	if typ.special() {
		return token
	}
	for _, d := range f.Decoder.steps() {
		switch d.Type {
		case "ByteLevel":
			if octets, ok := fromLetters(token); ok {
				return octets
			}
		case "ByteFallback":
			if b, ok := octet(token); ok {
				return string([]byte{b})
			}
		case "Metaspace", "Replace":
			token = strings.ReplaceAll(token, "▁", " ")
		case "WordPiece":
			token = strings.TrimPrefix(token, "##")
		}
	}
	return token
}

// octet reads the token of one byte, such as <0x0A>.
func octet(token string) (byte, bool) {
	digits, ok := strings.CutPrefix(token, "<0x")
	digits, closed := strings.CutSuffix(digits, ">")
	if !ok || !closed || len(digits) != 2 {
		return 0, false
	}
	b, err := strconv.ParseUint(digits, 16, 8)
	return byte(b), err == nil
}
