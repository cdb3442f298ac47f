package endtoend

import (
	"os"
	"slices"
	"testing"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/models/tokenizer"
)

// What the real Ollama tells of a model is the tokenizer of the model's file.
func TestOllamaTellsTheFilesVocabulary(t *testing.T) {
	s := ollamatest.Start(t)
	turns := []automaton.Turn{{Text: "It is blue.", After: "<|im_start|>assistant\n"}}
	file := modelFile(t, turns, automaton.Options{})
	s.Create(t, "vocabulary", file, nil)
	m, err := models.Open("ollama:vocabulary", models.Options{OllamaHost: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	told, err := m.(models.VocabularyTeller).Vocabulary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	if told.Len() != read.Len() {
		t.Fatalf("%d tokens, the file has %d", told.Len(), read.Len())
	}
	for id := range read.Len() {
		if told.Type(id) != read.Type(id) || told.EOG(id) != read.EOG(id) || !slices.Equal(told.Bytes(id), read.Bytes(id)) {
			t.Errorf("token %d is %v %q, in the file %v %q", id, told.Type(id), told.Bytes(id), read.Type(id), read.Bytes(id))
		}
	}
	bos, add := read.BOS()
	if gotBOS, gotAdd := told.BOS(); gotBOS != bos || gotAdd != add {
		t.Errorf("begins with %d %v, the file's with %d %v", gotBOS, gotAdd, bos, add)
	}
	const text = "<|im_start|>user\nWhy is the sky blue?  中\u00a0<|im_end|>"
	if got, want := told.Encode(text, true), read.Encode(text, true); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
