package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// files are a corpus for a test: contents by path.
type files map[string]string

// write puts files into a folder, with times old enough to be trusted.
func write(tb testing.TB, dir string, list files) {
	tb.Helper()
	for name, text := range list {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
		age(tb, path, time.Hour)
	}
}

func age(tb testing.TB, path string, by time.Duration) {
	tb.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(path, then, then); err != nil {
		tb.Fatal(err)
	}
}

// newCorpus makes a folder and says where its index goes.
func newCorpus(tb testing.TB, list files) Config {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, dir, list)
	return Config{Path: dir, Index: filepath.Join(tb.TempDir(), "index.db")}
}

func mustOpen(tb testing.TB, cfg Config) *Index {
	tb.Helper()
	x, err := Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	return x
}

// ids gives the ids of the hits of a query.
func ids(tb testing.TB, x *Index, query string) string {
	tb.Helper()
	found, err := x.Search(context.Background(), []string{query}, 10)
	if err != nil {
		tb.Fatalf("search %q: %v", query, err)
	}
	var list []string
	for _, h := range found[0].Hits {
		list = append(list, h.ID)
	}
	return strings.Join(list, " ")
}

func counts(s Stats) string {
	return fmt.Sprintf("%d docs, +%d ~%d -%d =%d, skipped %s",
		s.Documents, s.Added, s.Updated, s.Removed, s.Unchanged, s.Skipped)
}

func TestOpenFolder(t *testing.T) {
	cfg := newCorpus(t, files{
		"a.md":              "# Alpha\n\nThe first letter.",
		"sub/deep/b.txt":    "The second letter.",
		"c.markdown":        "---\ntitle: \"Gamma\"\n---\nThe third letter.",
		"d.rst":             "=====\nDelta\n=====\n\nThe fourth letter.",
		"e.org":             "#+TITLE: Epsilon\nThe fifth letter.",
		"list.jsonl":        `{"id":"z","title":"Zeta","text":"The sixth letter."}` + "\n",
		".hidden/x.md":      "secret",
		".dotfile.md":       "secret",
		"picture.png":       "\x89PNG",
		"Makefile":          "all:",
		"binary.txt":        "a\x00b",
		"latin.txt":         strings.Repeat("\xe4\xf6\xfc ", 100),
		"empty.md":          " \n",
		"huge.txt":          strings.Repeat("x", maxTextBytes+1),
		"quote'and*star.md": "The letter with an odd name.",
		"bom.txt":           "\xef\xbb\xbf# Eta\nThe seventh letter.",
		"utf16.txt":         "\xff\xfeT\x00h\x00e\x00 \x00e\x00i\x00g\x00h\x00t\x00h\x00",
	})
	x := mustOpen(t, cfg)
	const want = "9 docs, +12 ~0 -0 =0, skipped 2 hidden, 1 binary, 1 empty, 1 larger than 10 MiB, " +
		"1 neither UTF-8 nor UTF-16, 1 not read (.png), 1 not read (no extension)"
	if got := counts(x.Stats()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for id, title := range map[string]string{
		"a.md": "Alpha", "sub/deep/b.txt": "b", "c.markdown": "Gamma", "d.rst": "Delta", "e.org": "Epsilon",
		"z": "Zeta", "quote'and*star.md": "quote'and*star", "bom.txt": "Eta", "utf16.txt": "utf16",
	} {
		d, err := x.Read(t.Context(), id)
		if err != nil || d.Title != title || !strings.HasPrefix(d.Text, "The ") {
			t.Errorf("read %s: %+v, %v; want title %q", id, d, err, title)
		}
	}
	// Nothing has changed, and what was skipped is told again.
	again := mustOpen(t, cfg)
	if got := counts(again.Stats()); got != strings.Replace(want, "+12 ~0 -0 =0", "+0 ~0 -0 =12", 1) {
		t.Errorf("the second time: %s", got)
	}
	if !reflect.DeepEqual(again.Stats().Skipped.ByReason, x.Stats().Skipped.ByReason) {
		t.Errorf("the reasons changed: %v, %v", x.Stats().Skipped, again.Stats().Skipped)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, files{"secret.md": "secret word"})
	cfg := newCorpus(t, files{"a.md": "plain word"})
	for to, name := range map[string]string{
		outside: "folder", filepath.Join(outside, "secret.md"): "link.md", ".": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(cfg.Path, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	x := mustOpen(t, cfg)
	if got := counts(x.Stats()); got != "1 docs, +1 ~0 -0 =0, skipped 3 symbolic link" {
		t.Errorf("got %s", got)
	}
	if got := ids(t, x, "secret"); got != "" {
		t.Errorf("found %s", got)
	}
	// The corpus itself may be a link, and its index is that of the folder.
	link := filepath.Join(t.TempDir(), "corpus")
	if err := os.Symlink(cfg.Path, link); err != nil {
		t.Fatal(err)
	}
	y := mustOpen(t, Config{Path: link, Index: cfg.Index})
	if got := counts(y.Stats()); !strings.HasPrefix(got, "1 docs, +0 ~0 -0 =1") {
		t.Errorf("through a link: %s", got)
	}
}

func TestPipesAreNotOpened(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "word"})
	if err := exec.Command("mkfifo", filepath.Join(cfg.Path, "pipe.md")).Run(); err != nil {
		t.Skipf("no mkfifo here: %v", err)
	}
	if got := counts(mustOpen(t, cfg).Stats()); got != "1 docs, +1 ~0 -0 =0, skipped 1 no regular file" {
		t.Errorf("got %s", got)
	}
}

func TestOpenFile(t *testing.T) {
	cfg := newCorpus(t, files{
		"other.md": "not this one",
		"wiki.jsonl": `{"id":"0","contents":"\"Evan\"\nEvan is a name."}` + "\n" +
			`{"id":7,"title":"Seven","text":"A number.\u0000"}` + "\n\n" +
			`{"text":"# No id\nat all"}` + "\r\n" +
			`{"id":"0","text":"again"}` + "\n" +
			`{"id":"no text"}` + "\n" +
			`{"id":["x"],"text":"odd id"}` + "\n" +
			`{"id":"a\nb","text":"odd id"}` + "\n" +
			`not JSON` + "\n" +
			`{"id":"last","contents":"one line, no title"}`,
	})
	cfg.Path = filepath.Join(cfg.Path, "wiki.jsonl")
	x := mustOpen(t, cfg)
	const want = "4 docs, +1 ~0 -0 =0, skipped 2 id that is neither a short line of text nor a number, " +
		`1 id that another document has, 1 no JSON object, 1 no text: neither "text" nor "contents"`
	if got := counts(x.Stats()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := x.Stats().Skipped.First[0].String(); got != "wiki.jsonl:5: id that another document has" {
		t.Errorf("got %s", got)
	}
	for id, want := range map[string]Document{
		"0":            {"0", "Evan", "Evan is a name."},
		"7":            {"7", "Seven", "A number. "},
		"wiki.jsonl:4": {"wiki.jsonl:4", "wiki.jsonl:4", "# No id\nat all"},
		"last":         {"last", "last", "one line, no title"},
	} {
		if d, err := x.Read(t.Context(), id); err != nil || d != want {
			t.Errorf("read %s: %+v, %v", id, d, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "notes.txt")
	write(t, dir, files{"notes.txt": strings.Repeat("dear diary ", 100), "docs/a.md": "word"})
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", dataSource(other))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE precious(x); INSERT INTO precious VALUES(1)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	bad := newCorpus(t, files{"a.jsonl": strings.Repeat("no JSON\n", 5000), "b.png": "x"}).Path
	tests := []struct {
		name, path, index string
		target            any
		has               string
	}{
		{"no such folder", filepath.Join(dir, "none"), "", new(*ReadError), "cannot read corpus"},
		{"empty folder", t.TempDir(), "", new(*NoDocumentsError), "it has no files"},
		{"nothing readable", bad, "", new(*NoDocumentsError), "1001 no JSON object, 1 not read (.png) (first: b.png: not read (.png))"},
		{"wrong type of file", filepath.Join(bad, "b.png"), "", new(*NoDocumentsError), "not read (.png)"},
		{"index is a file of the user", filepath.Join(dir, "docs"), foreign, new(*IndexError), "is no index"},
		{"index is another database", filepath.Join(dir, "docs"), other, new(*IndexError), "is no index"},
		{"index is a folder", filepath.Join(dir, "docs"), dir, new(*IndexError), "cannot use index"},
		{"index below a file", filepath.Join(dir, "docs"), filepath.Join(foreign, "i.db"), new(*IndexError), "cannot use index"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			index := tt.index
			if index == "" {
				index = filepath.Join(t.TempDir(), "index.db")
			}
			_, err := Open(t.Context(), Config{Path: tt.path, Index: index})
			if !errors.As(err, tt.target) || !strings.Contains(err.Error(), tt.has) {
				t.Errorf("got %T %v, want %T with %q", err, err, tt.target, tt.has)
			}
		})
	}
	if data, err := os.ReadFile(foreign); err != nil || !strings.HasPrefix(string(data), "dear diary") {
		t.Errorf("the user's file was touched: %q, %v", data, err)
	}
}

func TestUnreadableParts(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "word", "locked/b.md": "word", "c.md": "word"})
	for _, name := range []string{"locked", "c.md"} {
		path := filepath.Join(cfg.Path, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	}
	if f, err := os.Open(filepath.Join(cfg.Path, "c.md")); err == nil {
		f.Close()
		t.Skip("permissions do not hold for this user")
	}
	if got := counts(mustOpen(t, cfg).Stats()); got != "1 docs, +1 ~0 -0 =0, skipped 2 permission denied" {
		t.Errorf("got %s", got)
	}
	if err := os.Chmod(cfg.Path, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(cfg.Path, 0o755) })
	var read *ReadError
	if _, err := Open(t.Context(), cfg); !errors.As(err, &read) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
