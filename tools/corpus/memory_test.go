package corpus

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/fstest"
)

// brought are documents that a program brings along.
func brought() Config {
	return Config{Path: "the sample", FS: fstest.MapFS{
		"a.md":       {Data: []byte("# Alpha\n\nThe first letter.")},
		"deep/b.txt": {Data: []byte("The second letter.")},
		"list.jsonl": {Data: []byte(`{"id":"a.md","text":"Another first letter."}` + "\n" + `{"id":"z","title":"Zeta","text":"The sixth letter."}` + "\n")},
		".hidden.md": {Data: []byte("The secret letter.")},
		"c.png":      {Data: []byte("\x89PNG")},
	}}
}

func TestOpenFS(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cfg := brought()
	cfg.Index = t.TempDir() // would be refused if it were used
	x := mustOpen(t, cfg)
	const want = "3 docs, +3 ~0 -0 =0, skipped 1 hidden, 1 id that another document has, 1 not read (.png)"
	if got := counts(x.Stats()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := ids(t, x, "letter second"); got != "deep/b.txt a.md z" {
		t.Errorf("found %s", got)
	}
	if d, err := x.Read(t.Context(), "a.md"); err != nil || d.Title != "Alpha" || d.Text != "The first letter." {
		t.Errorf("read %+v, %v", d, err)
	}
	if left, err := os.ReadDir(os.Getenv("XDG_CACHE_HOME")); err != nil || len(left) > 0 {
		t.Errorf("files were made: %v, %v", left, err)
	}
}

// The documents outlive searches that are given up, and serve several at once.
func TestFSIsKept(t *testing.T) {
	x := mustOpen(t, brought())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := x.Search(gone, []string{"letter"}, 5); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
			if got := ids(t, x, "sixth"); got != "z" {
				t.Errorf("found %q", got)
			}
		})
	}
	wg.Wait()
}

func TestOpenFSErrors(t *testing.T) {
	var none *NoDocumentsError
	if _, err := Open(t.Context(), Config{Path: "the sample", FS: fstest.MapFS{}}); !errors.As(err, &none) || none.Path != "the sample" {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(gone, brought()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
