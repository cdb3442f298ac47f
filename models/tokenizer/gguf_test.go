package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"
)

// vocabularies are the files that llama.cpp tests itself with. They are not
// part of the project.
const vocabularies = "../../../shared/testdata/vocab"

// goldens gives the texts of a vocabulary's .inp file and the ids that
// llama.cpp's own test expects of them, without special tokens.
func goldens(t *testing.T, name string) (texts []string, want [][]int) {
	t.Helper()
	path := filepath.Join(vocabularies, "ggml-vocab-"+name+".gguf")
	inp, err := os.ReadFile(path + ".inp")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("llama.cpp's vocabularies are not there: no ../shared/testdata/vocab beside the project")
	}
	out, err2 := os.ReadFile(path + ".out")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	texts = strings.Split(strings.TrimSuffix(string(inp), "\n__ggml_vocab_test__\n"), "\n__ggml_vocab_test__\n")
	for line := range strings.Lines(string(out)) {
		ids := []int{}
		for _, field := range strings.Fields(line) {
			id, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		want = append(want, ids)
	}
	if len(texts) != len(want) || len(texts) < 40 {
		t.Fatalf("%d texts, %d lists of ids", len(texts), len(want))
	}
	return texts, want
}

func openVocabulary(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Open(filepath.Join(vocabularies, "ggml-vocab-"+name+".gguf"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("llama.cpp's vocabularies are not there: no ../shared/testdata/vocab beside the project")
	}
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// compare encodes texts and compares the ids.
func compare(t *testing.T, tok *Tokenizer, texts []string, want [][]int) {
	t.Helper()
	for i, text := range texts {
		got := tok.Encode(text, true) // user-defined tokens count
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q\n%v, want\n%v", text, got, want[i])
		}
	}
}

// Every id that llama.cpp expects.
func TestGoldens(t *testing.T) {
	for _, name := range []string{"starcoder", "deepseek-llm"} {
		t.Run(name, func(t *testing.T) {
			texts, want := goldens(t, name)
			tok := openVocabulary(t, name)
			compare(t, tok, texts, want)
			for i, ids := range want {
				if got := tok.Decode(ids); got != texts[i] {
					t.Errorf("%v stand for %q, want %q", ids, got, texts[i])
				}
			}
		})
	}
}

// file gives the bytes of a GGUF file.
func file(t testing.TB, info map[string]any) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kv := ggml.KV{"general.architecture": "qwen3"}
	for key, value := range info {
		kv[key] = value
	}
	tensor := &ggml.Tensor{Name: "token_embd.weight", Kind: 0, Shape: []uint64{2}, WriterTo: bytes.NewReader(make([]byte, 8))}
	if err := ggml.WriteGGUF(f, kv, []*ggml.Tensor{tensor}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file and its metadata make the same tokenizer, wherever the reader stands.
func TestFromGGUF(t *testing.T) {
	want := from(t, small())
	r := bytes.NewReader(file(t, with(small(), "eos_token_ids", []int32{7, 8})))
	if _, err := r.Seek(9, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	got, err := FromGGUF(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() || !got.EOG(7) || !got.EOG(8) {
		t.Errorf("%d tokens, ends %v", got.Len(), got.eog)
	}
	for id := range want.Len() {
		if got.Type(id) != want.Type(id) || !bytes.Equal(got.Bytes(id), want.Bytes(id)) {
			t.Fatalf("token %d is %q", id, got.Bytes(id))
		}
	}
	const text = "<|im_start|>abc the 中 \u00a0x"
	if a, b := got.Encode(text, true), want.Encode(text, true); !slices.Equal(a, b) {
		t.Errorf("%v, want %v", a, b)
	}
}

// What a file must have, and what it must not.
func TestBrokenMetadata(t *testing.T) {
	tokens := small()[prefix+"tokens"].([]string)
	types := small()[prefix+"token_type"].([]int32)
	changed := func(at int, token string) []string {
		list := slices.Clone(tokens)
		list[at] = token
		return list
	}
	for _, test := range []struct {
		key   string
		value any
		want  string // of the error
	}{
		{"model", nil, "there is no tokenizer.ggml.model"},
		{"model", 7, "there is no tokenizer.ggml.model"},
		{"tokens", nil, "there are no tokenizer.ggml.tokens"},
		{"tokens", []any{"a", 1}, "there are no tokenizer.ggml.tokens"},
		{"tokens", changed(3, "abc"), `token 257 is "abc", as token 3 is`},
		{"tokens", tokens[:9], "there are 9 tokens, but 271 types"},
		{"token_type", types[:9], "there are 271 tokens, but 9 types"},
		{"token_type", slices.Concat(types[:270], []int32{7}), "token 270 has the type 7"},
		{"merges", nil, "there are no tokenizer.ggml.merges"},
		{"merges", []string{"a b", "ab"}, `merge 1, "ab", is no pair`},
		{"merges", []string{""}, `merge 0, "", is no pair`},
		{"merges", []string{"a b", "q q"}, `merge 1, of "q" and "q", has a token that is not in the vocabulary`},
		{"merges", []string{"a zz"}, `merge 0, of "a" and "zz", has a token that is not in the vocabulary`},
		{"merges", []string{"a b", "a b"}, `merge 1, of "a" and "b", is merge 0`},
	} {
		_, err := FromMetadata(with(small(), test.key, test.value))
		var format *FormatError
		if !errors.As(err, &format) || format.Reason != test.want {
			t.Errorf("%s %v: %v", test.key, test.value, err)
		}
	}
	for _, test := range []struct{ key, value, want string }{
		{"pre", "unheard-of", `pre-tokenizer "unheard-of"`},
		{"pre", "", "a GGUF file that does not name its pre-tokenizer"},
		{"model", "rwkv", `model "rwkv" (RWKV)`},
		{"model", "other", `model "other"`},
	} {
		_, err := FromMetadata(with(small(), test.key, test.value))
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != test.want || unsupported.Hint == "" {
			t.Errorf("%s %s: %v", test.key, test.value, err)
		}
	}
	// Places without a token are left out.
	holes := changed(3, "")
	holes[4] = ""
	if tok := from(t, with(small(), "tokens", holes)); tok.Type(3) != Unused || len(tok.Bytes(4)) != 0 || len(tok.Encode("\x03\x04", true)) != 0 {
		t.Error("a token without a spelling is found")
	}
	// A place that is out of the vocabulary names no token.
	tok := from(t, with(with(small(), "bos_token_id", uint32(1<<20)), "eos_token_id", -4))
	if bos, _ := tok.BOS(); bos != -1 || tok.EOG(-4) || tok.EOG(1<<20) {
		t.Error("a token that is not there is named")
	}
}

// One header, cut and changed in each of its places, gives an error or a
// tokenizer, and takes no more memory than the file.
func TestBrokenGGUF(t *testing.T) {
	whole := file(t, small())
	for n := range len(whole) {
		if n > 2000 && n%97 != 0 {
			continue
		}
		if _, err := FromGGUF(bytes.NewReader(whole[:n])); n < len(whole)-40 && err == nil {
			t.Fatalf("%d of %d bytes are a file", n, len(whole))
		}
	}
	huge := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for at := 8; at+8 <= len(whole); at++ {
		if at > 2000 && at%97 != 0 {
			continue
		}
		b := slices.Clone(whole)
		copy(b[at:], huge)
		_, _ = FromGGUF(bytes.NewReader(b)) // must come back
	}
	for name, b := range map[string][]byte{
		"text": []byte("not a model, but long enough to be one"),
		"alignment": []byte( // zero, which Ollama's reader divides by
			"GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 8) + "\x01" + strings.Repeat("\x00", 7) +
				"\x11" + strings.Repeat("\x00", 7) + "general.alignment" + "\x04\x00\x00\x00" + "\x00\x00\x00\x00"),
	} {
		_, err := FromGGUF(bytes.NewReader(b))
		var format *FormatError
		if !errors.As(err, &format) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzFromGGUF(f *testing.F) {
	whole := file(f, small())
	f.Add(whole)
	f.Add(whole[:1000])
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := FromGGUF(bytes.NewReader(b))
		if err != nil {
			return
		}
		const text = "abc <|im_end|> the 中\xff"
		got := tok.Decode(tok.Encode(text, false))
		if len(got) > len(text)*64 {
			t.Errorf("%q comes back as %q", text, got)
		}
	})
}
