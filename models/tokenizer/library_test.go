//go:build hftokenizers

package tokenizer

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the sums of what Hugging Face's library says")

// Every id that Hugging Face's library gives, asked now.
func TestLibrary(t *testing.T) {
	for _, ref := range references {
		t.Run(ref.name, func(t *testing.T) {
			tok, data := ref.open(t)
			library, err := newLibrary(data)
			if err != nil {
				t.Fatal(err)
			}
			sums := againstLibrary(t, tok, library, texts())
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", ref.name+".sums"), sums, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// againstLibrary compares all ids, and gives the sums of the library's.
func againstLibrary(t *testing.T, tok *Tokenizer, library *library, texts []string) []byte {
	t.Helper()
	var sums bytes.Buffer
	wrong := 0
	for _, text := range texts {
		for i, special := range []bool{true, false} {
			want := library.encode(text, special)
			if got := tok.Encode(text, special); !slices.Equal(got, want) {
				if wrong++; wrong <= 5 {
					t.Errorf("%q, %v\n%v, want\n%v", text, special, got, want)
				}
			}
			sums.WriteString(sum(want))
			sums.WriteByte(" \n"[i])
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d differ", wrong, 2*len(texts))
	}
	return sums.Bytes()
}

// The library runs the same expressions on Oniguruma. StarCoder's vocabulary
// stands in for those of the models.
func TestExpressionsInTheLibrary(t *testing.T) {
	info := vocabularyInfo(t, "starcoder")
	tried := make(map[string]bool)
	for name, pre := range preTokenizers {
		key := strings.Join(pre.steps, "\n")
		if tried[key] {
			continue
		}
		tried[key] = true
		t.Run(name, func(t *testing.T) {
			var steps []object
			for _, expression := range pre.steps {
				if expression == spaceAtEnd {
					expression = `\s+$`
				}
				steps = append(steps, split(expression))
			}
			data := asJSON(info, append(steps, byteLevel(false))...)
			data["model"].(object)["ignore_merges"] = pre.ignoreMerges
			library, err := newLibrary(marshal(t, data))
			if err != nil {
				t.Fatal(err)
			}
			againstLibrary(t, from(t, with(info, "pre", name)), library, texts()[:500])
		})
	}
}

// SentencePiece in a GGUF file: every id that llama.cpp expects.
func TestSentencePiece(t *testing.T) {
	texts, want := goldens(t, "phi-3")
	tok := openVocabulary(t, "phi-3")
	compare(t, tok, texts, want)
	for i, ids := range want {
		if got := tok.Decode(ids); texts[i] != "" && got != " "+texts[i] {
			t.Errorf("%v stand for %q, want %q", ids, got, texts[i])
		}
	}
	if bos, add := tok.BOS(); bos != 1 || !add {
		t.Errorf("bos %d %v", bos, add)
	}
	if id, _ := tok.Lookup("<|end|>"); tok.Type(id) != Control || !tok.EOG(id) {
		t.Errorf("<|end|> is %d", id)
	}
	if got := spelled(tok, "<|user|>\nHi<|end|>", true); !slices.Equal(got, []string{"<|user|>", " Hi", "<|end|>"}) {
		t.Errorf("%q", got)
	}
}

// What is not read natively is read by the library.
func TestUnknownKinds(t *testing.T) {
	for kind, data := range unknownKinds(t) {
		if strings.Contains(kind, "marks inside") || strings.Contains(kind, "dropout") {
			continue // the small vocabulary does not fit the first, the second is random
		}
		tok, err := FromJSON(data)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if _, ok := tok.encoder.(*library); !ok {
			t.Errorf("%s: not the library", kind)
		}
		if ids := tok.Encode("a b\x00\xff", true); len(ids) == 0 {
			t.Errorf("%s: no ids", kind)
		}
	}
}

// WordPiece: real vocabularies, the file's truncation and padding left out.
func TestWordPiece(t *testing.T) {
	dir := filepath.Join(module(t, "github.com/daulet/tokenizers"), "test/data")
	for _, name := range []string{"bert-base-uncased.json", "all-minilm-l6-v2.json"} {
		tok, err := Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := spelled(tok, "Tokenizers count [SEP]", true); !slices.Equal(got, []string{"token", "izer", "s", "count", "[SEP]"}) {
			t.Errorf("%s: %q", name, got)
		}
		if got := tok.Encode(strings.Repeat("a ", 1000), true); len(got) != 1000 {
			t.Errorf("%s: %d ids", name, len(got))
		}
		if bos, add := tok.BOS(); string(tok.Bytes(bos)) != "[CLS]" || !add {
			t.Errorf("%s: bos %d", name, bos)
		}
	}
}
