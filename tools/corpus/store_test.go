package corpus

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestDamagedIndex(t *testing.T) {
	tests := []struct {
		name    string
		damage  func(data []byte) []byte
		rebuilt string
	}{
		{"cut short", func(d []byte) []byte { return d[:len(d)/3] }, noteDamaged},
		{"cut in the header", func(d []byte) []byte { return d[:50] }, ""},
		{"tables overwritten", func(d []byte) []byte {
			for i := 4096; i < len(d); i++ {
				d[i] = byte(i * 7)
			}
			return d
		}, noteDamaged},
		{"first page overwritten", func(d []byte) []byte {
			for i := 100; i < 4096; i++ {
				d[i] = 0xff
			}
			return d
		}, noteDamaged},
		{"emptied", func([]byte) []byte { return nil }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := newCorpus(t, files{"a.md": "island", "b.md": "harbour"})
			mustOpen(t, cfg).Close()
			data, err := os.ReadFile(cfg.Index)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cfg.Index, tt.damage(data), 0o644); err != nil {
				t.Fatal(err)
			}
			write(t, cfg.Path, files{"c.md": "mountain"})
			x, err := Open(t.Context(), cfg)
			if tt.name == "cut in the header" {
				// Nobody can tell whose file this was.
				if !errors.Is(err, errForeign) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			if s := x.Stats(); s.Documents != 3 || s.Rebuilt != tt.rebuilt {
				t.Errorf("%d documents, rebuilt %q, want %q", s.Documents, s.Rebuilt, tt.rebuilt)
			}
		})
	}
}

func TestIndexOfAnotherVersionOrCorpus(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	x := mustOpen(t, cfg)
	if _, err := x.db.Exec("PRAGMA user_version = 0"); err != nil {
		t.Fatal(err)
	}
	x.Close()
	if s := mustOpen(t, cfg).Stats(); s.Rebuilt != noteVersion || s.Added != 1 {
		t.Errorf("other version: %+v", s)
	}
	other := newCorpus(t, files{"a.md": "harbour"})
	other.Index = cfg.Index
	y := mustOpen(t, other)
	if s := y.Stats(); s.Rebuilt != noteCorpus || s.Documents != 1 {
		t.Errorf("other corpus: %+v", s)
	}
	if got := ids(t, y, "island harbour"); got != "a.md" {
		t.Errorf("found %q", got)
	}
}

// TestForeignDatabase: a database of somebody else is not touched, not even one
// whose tables stand in the log beside it.
func TestForeignDatabase(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	db, err := sql.Open("sqlite", dataSource(cfg.Index))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0",
		"CREATE TABLE documents(name TEXT)", "INSERT INTO documents VALUES('dear')",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(cfg.Index); err != nil || info.Size() > 4096 {
		t.Fatalf("the log is in the file: %v", err)
	}
	_, err = Open(t.Context(), cfg)
	if _, ok := errors.AsType[*IndexError](err); !ok || !errors.Is(err, errForeign) {
		t.Errorf("got %v", err)
	}
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT name FROM documents").Scan(&name); err != nil || name != "dear" {
		t.Errorf("%q, %v", name, err)
	}
}

func TestDefaultIndex(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache folder is set by an environment variable of Linux")
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	cfg := newCorpus(t, files{"a.md": "island"})
	cfg.Index = ""
	x := mustOpen(t, cfg)
	if !strings.HasPrefix(x.Path(), filepath.Join(cache, "stopgap", "corpus")) {
		t.Errorf("the index is %s", x.Path())
	}
	x.Close()
	// In the cache folder the file is ours, whatever is in it.
	if err := os.WriteFile(x.Path(), []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := mustOpen(t, cfg).Stats(); s.Rebuilt != noteDamaged || s.Documents != 1 {
		t.Errorf("got %+v", s)
	}
}

// The index file may have any name, and a relative one.
func TestIndexNames(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	t.Chdir(t.TempDir())
	for _, name := range []string{"plain.db", "a b?c#d%41&e=f.db", "文档/索引.db", "./y.db"} {
		cfg.Index = name
		mustOpen(t, cfg).Close()
		if _, err := os.Stat(name); err != nil {
			t.Errorf("no index under its name: %v", err)
		}
		if s := mustOpen(t, cfg).Stats(); s.Unchanged != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestIndexOfALongName(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("ä", 120))
	write(t, dir, files{"a.txt": "hello"})
	x := mustOpen(t, Config{Path: dir})
	if got := ids(t, x, "hello"); got != "a.txt" {
		t.Errorf("found %q", got)
	}
}

func TestIndexInsideTheCorpus(t *testing.T) {
	cfg := newCorpus(t, files{"a.txt": "hello"})
	cfg.Index = filepath.Join(cfg.Path, "index.txt")
	for _, want := range []string{"1 docs, +1 ~0 -0 =0", "1 docs, +0 ~0 -0 =1"} {
		x := mustOpen(t, cfg)
		if got := counts(x.Stats()); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		if x.Stats().Skipped.ByReason[skipIndex] != 1 {
			t.Errorf("skipped %s", x.Stats().Skipped)
		}
	}
}
