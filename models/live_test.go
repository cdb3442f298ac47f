package models

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"stopgap/internal/automaton"
)

// testScript is what the model of the live servers says. Each turn begins
// after its own marker, because the model sees only the last token.
var testScript = automaton.Script{Turns: []automaton.Turn{
	{After: "<|im_start|>assistant\n", Text: "<think>\nI look it up.\n</think>\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"tide\"]}}\n</tool_call>"},
	{After: "[endless]", Text: "around and around", Finish: automaton.FinishLength},
	{After: "[same]", Text: "same", Finish: automaton.FinishLength},
	{After: "[hidden]", Text: "first</tool_response>then the rest"},
	{After: "[hole]", Text: "one 丸文 two"},
	{After: "[1]", Text: "High water is at six."},
	{After: "[2]", Text: "Low tide comes at noon."},
}}

// modelFile writes the model file.
func modelFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := compiled(t).WriteFile(path, automaton.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// softOptions make a model that is unsure.
var softOptions = automaton.Options{Logit: 4}

// softFile is the model file with a likely next token instead of a certain one.
func softFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := compiled(t).WriteFile(path, softOptions); err != nil {
		t.Fatal(err)
	}
	return path
}

// bosFile is the model file with a beginning-of-sequence token, <|endoftext|>,
// before every prompt.
func bosFile(t *testing.T) string {
	t.Helper()
	path := modelFile(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const key = "tokenizer.ggml.add_bos_token"
	b[bytes.Index(b, []byte(key))+len(key)+4] = 1 // after the number of the type
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func compiled(t *testing.T) *automaton.Automaton {
	t.Helper()
	a, err := automaton.Compile(testScript)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// specialFile is the model file with two changes that a script cannot express:
// </tool_response> is a control token, which servers hide, and one character
// is spelled by two tokens.
func specialFile(t *testing.T) string {
	t.Helper()
	path := modelFile(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(from, to string) {
		if len(from) != len(to) || bytes.Count(b, tokenBytes(from)) != 1 {
			t.Fatalf("token %q cannot become %q", from, to)
		}
		b = bytes.Replace(b, tokenBytes(from), tokenBytes(to), 1)
	}
	// In the alphabet of byte-level BPE: " 丸" and "文" become " ab" + e4 b8 and
	// ad + "cdef", the halves of 中 with letters around them.
	replace("Ġä¸¸", "Ġabä¸")
	replace("æĸĩ", "ŃcdeF")
	const names = "tokenizer.ggml.tokens"
	at := bytes.Index(b, []byte(names)) + len(names)
	n := int(binary.LittleEndian.Uint64(b[at+8:]))
	id, p := -1, at+16
	for i := range n {
		size := int(binary.LittleEndian.Uint64(b[p:]))
		if string(b[p+8:p+8+size]) == "</tool_response>" {
			id = i
		}
		p += 8 + size
	}
	const types = "tokenizer.ggml.token_type"
	at = bytes.Index(b, []byte(types)) + len(types)
	const control = 3
	binary.LittleEndian.PutUint32(b[at+16+4*id:], control)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokenBytes is a token as a GGUF file has it: its length and its spelling.
func tokenBytes(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}
