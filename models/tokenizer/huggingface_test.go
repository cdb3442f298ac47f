package tokenizer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

type object = map[string]any

// split is a step of a pre-tokenizer.
func split(expression string) object {
	return object{"type": "Split", "pattern": object{"Regex": expression}, "behavior": "Isolated", "invert": false}
}

// byteLevel is the last step of a pre-tokenizer.
func byteLevel(regex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
}

// asJSON writes metadata as a tokenizer.json, with the steps of a
// pre-tokenizer in place of its name.
func asJSON(info map[string]any, steps ...object) object {
	m := metadata(info)
	vocab := make(map[string]int)
	added := []object{}
	types := m.integers("token_type")
	for id, token := range m.texts("tokens") {
		typ := Normal
		if types != nil {
			typ = Type(types[id])
		}
		vocab[token] = id // special ones too: the library numbers others anew
		if typ != Normal {
			added = append(added, object{"id": id, "content": token, "special": typ != UserDefined, "normalized": false,
				"single_word": false, "lstrip": false, "rstrip": false})
		}
	}
	return object{
		"version": "1.0", "added_tokens": added, "normalizer": nil, "post_processor": nil,
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": steps},
		"decoder":       object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model":         object{"type": "BPE", "vocab": vocab, "merges": m.texts("merges"), "unk_token": nil, "dropout": nil},
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// edited gives a small tokenizer.json after a change.
func edited(t testing.TB, edit func(f, model object)) []byte {
	t.Helper()
	f := asJSON(small(), split(qwen2), byteLevel(false))
	if edit != nil {
		edit(f, f["model"].(object))
	}
	return marshal(t, f)
}

func fromJSON(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// A tokenizer.json and a GGUF file of the same vocabulary agree.
func TestFromJSON(t *testing.T) {
	want := from(t, small())
	texts := []string{"abc the 中<|im_end|>", "<tool_call>abc<tool", "\n\n don't\u00a0", "\xff\x00"}
	for name, data := range map[string][]byte{
		"texts": edited(t, nil),
		"pairs": edited(t, func(_, model object) {
			var pairs [][]string
			for _, m := range model["merges"].([]string) {
				pairs = append(pairs, strings.Split(m, " "))
			}
			model["merges"] = pairs
		}),
		"no type": edited(t, func(_, model object) { delete(model, "type") }),
		"one step in a sequence in a sequence": edited(t, func(f, _ object) {
			f["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{f["pre_tokenizer"]}}
		}),
	} {
		tok := fromJSON(t, data)
		if _, ok := tok.encoder.(*bpe); !ok {
			t.Errorf("%s: not read here", name)
		}
		for _, text := range texts {
			for _, special := range []bool{true, false} {
				if a, b := tok.Encode(text, special), want.Encode(text, special); !slices.Equal(a, b) {
					t.Errorf("%s: %q: %v, want %v", name, text, a, b)
				}
			}
		}
		if id, _ := tok.Lookup("<|im_end|>"); tok.Type(id) != Control || !tok.EOG(id) {
			t.Errorf("%s: <|im_end|> is %v", name, tok.Type(id))
		}
	}
}

// The parts around the model.
func TestJSONParts(t *testing.T) {
	added := func(f object, content string) object {
		for _, a := range f["added_tokens"].([]object) {
			if a["content"] == content {
				return a
			}
		}
		t.Fatalf("no token %s", content)
		return nil
	}
	for _, test := range []struct {
		name string
		edit func(f, model object)
		text string
		want []string
	}{
		{"NFC", func(f, _ object) { f["normalizer"] = object{"type": "NFC"} }, "e\u0301", []string{"\xc3", "\xa9"}},
		{"no NFC", nil, "e\u0301", []string{"e", "\xcc", "\x81"}},
		{"a token before NFC", func(f, _ object) { f["normalizer"] = object{"type": "NFC"} }, "<tool\u0338", []string{"<tool", "\xcc", "\xb8"}},
		{"a token in what NFC makes", func(f, model object) {
			delete(model["vocab"].(map[string]int), "<tool")
			f["normalizer"] = object{"type": "Sequence", "normalizers": []object{{"type": "NFC"}}}
			added(f, "<tool")["content"], added(f, "<tool_call>")["normalized"] = "ŕ", true
			added(f, "ŕ")["normalized"] = true
		}, "r\u0301<tool_call>", []string{"ŕ", "<tool_call>"}},
		{"white space before a token", func(f, _ object) { added(f, "<tool")["lstrip"] = true }, "x \n<tool x", []string{"x", "<tool", " ", "x"}},
		{"white space after a token", func(f, _ object) { added(f, "<tool")["rstrip"] = true }, "x <tool \u3000x", []string{"x", " ", "<tool", "x"}},
		{"the token for what is unknown", func(_, model object) {
			delete(model["vocab"].(map[string]int), "Ŀ")
			model["unk_token"] = "x"
		}, "\x9d\x9d", []string{"x", "x"}},
		{"a byte without a token", func(_, model object) { delete(model["vocab"].(map[string]int), "Ŀ") }, "a\x9db", []string{"a", "b"}},
		{"a whole piece", func(_, model object) {
			model["ignore_merges"] = true
			model["vocab"].(map[string]int)["xyz"] = 300
		}, "xyz xyz", []string{"xyz", " ", "x", "y", "z"}},
		{"digits alone", func(f, _ object) {
			f["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []object{{"type": "Digits", "individual_digits": true}, byteLevel(true)}}
		}, "the12", []string{"the", "1", "2"}},
	} {
		tok := fromJSON(t, edited(t, test.edit))
		if got := spelled(tok, test.text, true); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q: %q, want %q", test.name, test.text, got, test.want)
		}
	}
	tok := fromJSON(t, edited(t, func(f, _ object) {
		f["post_processor"] = object{"type": "Sequence", "processors": []object{
			{"type": "ByteLevel"},
			{"type": "TemplateProcessing", "single": []object{{"SpecialToken": object{"id": "<|im_start|>"}}, {"Sequence": object{"id": "A"}}}},
		}}
	}))
	if bos, add := tok.BOS(); string(tok.Bytes(bos)) != "<|im_start|>" || !add {
		t.Errorf("bos %d %v", bos, add)
	}
}

func TestBrokenJSON(t *testing.T) {
	for _, test := range []struct {
		want string
		data []byte
	}{
		{"not a tokenizer.json", nil},
		{"not a tokenizer.json", []byte("{")},
		{"not a tokenizer.json", []byte("[]")},
		{"not a tokenizer.json: its vocabulary", []byte("{}")},
		{"not a tokenizer.json", edited(t, func(_, model object) { model["merges"] = []string{"ab"} })},
		{"not a tokenizer.json", edited(t, func(_, model object) { model["merges"] = []string{"a b c"} })},
		{"not a tokenizer.json", edited(t, func(_, model object) { model["merges"] = [][]string{{"a", "b", "c"}} })},
		{"not a tokenizer.json", edited(t, func(_, model object) { model["merges"] = []any{1} })},
		{"not a tokenizer.json: its vocabulary", edited(t, func(_, model object) { model["vocab"] = "a" })},
		{"there are no tokens", edited(t, func(f, model object) { model["vocab"], f["added_tokens"] = object{}, nil })},
		{`merge 0, of "q" and "q", has a token that is not in the vocabulary`, edited(t, func(_, model object) { model["merges"] = []string{"q q"} })},
		{`token "zz" has the id 4000000000, in a vocabulary of 272`, edited(t, func(_, model object) { model["vocab"].(map[string]int)["zz"] = 4e9 })},
		{`token "zz" has the id -1, in a vocabulary of 272`, edited(t, func(_, model object) { model["vocab"].(map[string]int)["zz"] = -1 })},
		{`the tokens "abc" and "<tool" have the same id, 257`, edited(t, func(f, _ object) {
			added := f["added_tokens"].([]object)
			added[len(added)-1]["id"] = 257
		})},
	} {
		_, err := FromJSON(test.data)
		var format *FormatError
		if !errors.As(err, &format) || format.Reason != test.want {
			t.Errorf("%.100s: %v, want %s", test.data, err, test.want)
		}
	}
}

// unknownKinds are whole files that are not read here.
func unknownKinds(t testing.TB) map[string][]byte {
	return map[string][]byte{
		`a model of the type "WordPiece"`: marshal(t, object{
			"model":         object{"type": "WordPiece", "vocab": object{"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
			"pre_tokenizer": object{"type": "BertPreTokenizer"},
		}),
		`a model of the type "Unigram"`: marshal(t, object{
			"model": object{"type": "Unigram", "unk_id": 0, "vocab": []any{[]any{"<unk>", 0}, []any{"▁a", -1.5}, []any{"b", -2}}, "byte_fallback": false},
		}),
		"BPE that falls back to bytes (SentencePiece)": edited(t, func(_, model object) { model["byte_fallback"] = true }),
		"BPE with dropout": edited(t, func(_, model object) { model["dropout"] = 0.1 }),
		"BPE with marks inside or at the end of words": edited(t, func(_, model object) { model["end_of_word_suffix"] = "</w>" }),
		`the normalizer "Lowercase"`:                   edited(t, func(f, _ object) { f["normalizer"] = object{"type": "Lowercase"} }),
		"the pre-tokenizer's step 1, Split,":           edited(t, func(f, _ object) { f["pre_tokenizer"].(object)["pretokenizers"].([]object)[0] = split(`(a+)+$`) }),
		"the pre-tokenizer's step 1, ByteLevel,": edited(t, func(f, _ object) {
			prefixed := byteLevel(true)
			prefixed["add_prefix_space"] = true
			f["pre_tokenizer"] = prefixed
		}),
		"a pre-tokenizer that is not byte-level at its end": edited(t, func(f, _ object) { f["pre_tokenizer"] = object{"type": "Whitespace"} }),
		`the token "<tool", which is recognised as a word only,`: edited(t, func(f, _ object) {
			added := f["added_tokens"].([]object)
			added[len(added)-1]["single_word"] = true
		}),
	}
}

func FuzzFromJSON(f *testing.F) {
	f.Add(edited(f, nil))
	f.Add(edited(f, func(f, _ object) { f["normalizer"] = object{"type": "NFC"} }))
	for _, data := range unknownKinds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var file jsonFile
		if json.Unmarshal(data, &file) != nil {
			return
		}
		tok, err := file.tokenizer() // the library is not under test
		if err != nil {
			return
		}
		const text = "abc <|im_end|> the 中\xff"
		if got := tok.Decode(tok.Encode(text, true)); len(got) > len(text)*len(data) {
			t.Errorf("%q comes back as %d bytes", text, len(got))
		}
	})
}
