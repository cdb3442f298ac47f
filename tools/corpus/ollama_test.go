package corpus_test

import (
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/internal/tinymodel"
	"stopgap/tools/corpus"
)

// TestOllama gets real vectors from a real Ollama: those of a model with random
// weights, which mean nothing, but the same for the same text and others for
// another one.
func TestOllama(t *testing.T) {
	s := ollamatest.Start(t)
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(file, strings.Repeat("the island of the lantern and the sea. ", 50), tinymodel.Options{Pooling: 1}); err != nil {
		t.Fatal(err)
	}
	s.Create(t, "tiny", file, nil)
	e, err := corpus.NewEmbedder("ollama:tiny", corpus.EmbedOptions{OllamaHost: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.Embed(t.Context(), []string{"the lantern", "the sea", "the lantern"}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(list), len(list[0]), list[0][:4], list[1][:4], list[2][:4])
	_ = sample.Documents
}
