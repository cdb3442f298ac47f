package corpus_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
	"stopgap/internal/tinymodel"
	"stopgap/tools/corpus"
)

// TestOllama gets vectors from a real Ollama. The model has random weights, so
// that a vector says little more than which tokens a text has; but the same text
// has the same vector, and one like it a close one.
func TestOllama(t *testing.T) {
	s := ollamatest.Start(t)
	dir := t.TempDir()
	names := []string{"lantern", "harbour", "orchard", "glacier", "saddle", "violin", "furnace", "meadow"}
	var text strings.Builder
	said := func(n string) string { return strings.Repeat("The "+n+" and the "+n+" again. ", 3) + "End." }
	for i, n := range names {
		text.WriteString(said(n))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.md", i)), []byte("# "+n+"\n\n"+said(n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	for model, pooling := range map[string]uint32{"tiny-embed": 1, "tiny-chat": 0} {
		if err := tinymodel.Write(file, strings.Repeat(text.String(), 20), tinymodel.Options{Pooling: pooling, Tokens: 400}); err != nil {
			t.Fatal(err)
		}
		s.Create(t, model, file, nil)
	}
	open := func(model string) (*corpus.Index, error) {
		e, err := corpus.NewEmbedder("ollama:"+model, corpus.EmbedOptions{OllamaHost: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		return corpus.Open(t.Context(), corpus.Config{
			Path: dir, Index: filepath.Join(filepath.Dir(file), "index.db"), Embedder: e,
			Notice: func(err error) { t.Errorf("searched by words alone: %v", err) },
		})
	}
	for _, embedded := range []int{len(names), 0} {
		x, err := open("tiny-embed")
		if err != nil {
			t.Fatal(err)
		}
		if st := x.Stats(); st.Embedded != embedded || st.Rebuilt != "" {
			t.Errorf("%+v, %d new vectors expected", st, embedded)
		}
		for i, n := range names {
			// As it was embedded: first by words and by vectors.
			found, err := x.Search(t.Context(), []string{n + "\n" + said(n)}, 3)
			if err != nil {
				t.Fatal(err)
			}
			if h := found[0].Hits; len(h) != 3 || h[0].ID != fmt.Sprintf("%d.md", i) || h[0].Score != 1 || h[1].Score >= 1 {
				t.Errorf("%q: %+v", n, h)
			}
		}
		x.Close()
	}
	var bad *corpus.EmbedError
	for model, want := range map[string]string{"tiny-chat": "does not support embeddings (HTTP 501)", "nothing": "not found"} {
		if _, err := open(model); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", model, err)
		}
	}
}
