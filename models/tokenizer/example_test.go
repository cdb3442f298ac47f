package tokenizer_test

import (
	"fmt"
	"os"

	"stopgap/models/tokenizer"
)

// show prints what becomes of a text.
func show(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := tokenizer.FromGGUF(f) // or FromJSON, FromMetadata, Open
	if err != nil {
		return err // *tokenizer.UnsupportedError, *tokenizer.FormatError
	}
	ids := t.Encode("Who is it?<|im_end|>", true)
	fmt.Println(t.EOG(ids[len(ids)-1]), t.Decode(ids))
	return nil
}

func ExampleFromGGUF() {
	if err := show("../builtin/model.gguf"); err != nil {
		fmt.Println(err)
	}
	// Output: true Who is it?<|im_end|>
}

func ExampleFromJSON() {
	t, err := tokenizer.FromJSON([]byte(`{
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]},
		"added_tokens": [{"id": 4, "content": "<|end|>", "special": true}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Encode("ab ba<|end|>", true))
	fmt.Println(t.Type(4), t.EOG(4))
	// Output:
	// [2 3 1 0 4]
	// control true
}
