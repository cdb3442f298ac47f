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
	"runtime"
	"strings"
	"sync"
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

func TestUpdate(t *testing.T) {
	cfg := newCorpus(t, files{
		"a.md": "apple pear", "b.md": "banana pear", "c.md": "cherry pear",
		"l.jsonl": `{"id":"x","text":"xylophone"}` + "\n" + `{"id":"y","text":"yucca"}`,
	})
	steps := []struct {
		name   string
		change func()
		want   string
		query  string
		ids    string
	}{
		{"first", func() {}, "5 docs, +4 ~0 -0 =0", "pear", "a.md b.md c.md"},
		{"nothing", func() {}, "5 docs, +0 ~0 -0 =4", "pear", "a.md b.md c.md"},
		{"touched", func() { age(t, filepath.Join(cfg.Path, "a.md"), time.Minute) }, "5 docs, +0 ~0 -0 =4", "apple", "a.md"},
		{"young", func() { age(t, filepath.Join(cfg.Path, "a.md"), 0) }, "5 docs, +0 ~0 -0 =4", "apple", "a.md"},
		{"same size, same tick", func() {
			write(t, cfg.Path, files{"a.md": "grape pear"})
			age(t, filepath.Join(cfg.Path, "a.md"), 0)
		}, "5 docs, +0 ~1 -0 =3", "grape", "a.md"},
		{"changed", func() { write(t, cfg.Path, files{"a.md": "avocado"}) }, "5 docs, +0 ~1 -0 =3", "pear apple avocado", "a.md b.md c.md"},
		{"deleted", func() { os.Remove(filepath.Join(cfg.Path, "b.md")) }, "4 docs, +0 ~0 -1 =3", "banana pear", "c.md"},
		{"moved", func() { os.Rename(filepath.Join(cfg.Path, "l.jsonl"), filepath.Join(cfg.Path, "a.jsonl")) },
			"4 docs, +1 ~0 -1 =2", "yucca", "y"},
		{"lines gone", func() { write(t, cfg.Path, files{"a.jsonl": `{"id":"x","text":"xylophone"}`}) },
			"3 docs, +0 ~1 -0 =2", "yucca", ""},
		{"became binary", func() { write(t, cfg.Path, files{"c.md": "\x00"}) }, "2 docs, +0 ~1 -0 =2, skipped 1 binary", "cherry", ""},
		{"mended", func() { write(t, cfg.Path, files{"c.md": "cherry"}) }, "3 docs, +0 ~1 -0 =2", "cherry", "c.md"},
	}
	for _, s := range steps {
		s.change()
		x, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := counts(x.Stats()); strings.TrimSuffix(got, ", skipped ") != s.want {
			t.Errorf("%s: %s, want %s", s.name, got, s.want)
		}
		if got := ids(t, x, s.query); got != s.ids {
			t.Errorf("%s: %q finds %q, want %q", s.name, s.query, got, s.ids)
		}
		x.Close()
	}
}

// An id that two files claim goes to the first; when that one goes, the other
// takes its place although it did not change.
func TestCollidingIDs(t *testing.T) {
	cfg := newCorpus(t, files{
		"a.jsonl": `{"id":"same","text":"from a"}`,
		"b.jsonl": `{"id":"same","text":"from b"}` + "\n" + `{"id":"own","text":"own"}`,
	})
	x := mustOpen(t, cfg)
	if d, err := x.Read(t.Context(), "same"); err != nil || d.Text != "from a" {
		t.Errorf("got %+v, %v", d, err)
	}
	if got := x.Stats().Skipped.String(); got != "1 "+errDuplicate.Error() {
		t.Errorf("skipped %s", got)
	}
	if err := os.Remove(filepath.Join(cfg.Path, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	x = mustOpen(t, cfg)
	if d, err := x.Read(t.Context(), "same"); err != nil || d.Text != "from b" {
		t.Errorf("got %+v, %v", d, err)
	}
	if got := counts(x.Stats()); got != "2 docs, +0 ~1 -1 =0, skipped " {
		t.Errorf("got %s", got)
	}
}

// Scores must not depend on the order in which documents came and went.
func TestScoresDoNotRememberHistory(t *testing.T) {
	final := files{}
	for i := range 30 {
		final[fmt.Sprintf("%02d.md", i)] = fmt.Sprintf("# Paper %d\n\n%s island", i, strings.Repeat("word ", i%7))
	}
	fresh := newCorpus(t, final)
	old := files{"00.md": "island island island", "zz.md": "island", "29.md": strings.Repeat("long ", 500)}
	cfg := newCorpus(t, old)
	mustOpen(t, cfg).Close()
	if err := os.Remove(filepath.Join(cfg.Path, "zz.md")); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		name := fmt.Sprintf("%02d.md", 29-i)
		write(t, cfg.Path, files{name: final[name]})
		mustOpen(t, cfg).Close()
	}
	queries := []string{"island", "word paper", "paper 7"}
	a, err := mustOpen(t, fresh).Search(t.Context(), queries, 12)
	if err != nil {
		t.Fatal(err)
	}
	b, err := mustOpen(t, cfg).Search(t.Context(), queries, 12)
	if err != nil {
		t.Fatal(err)
	}
	if Render(a) != Render(b) {
		t.Errorf("built at once:\n%s\nbuilt in steps:\n%s", Render(a), Render(b))
	}
}

func TestOpenAtOnce(t *testing.T) {
	list := files{}
	for i := range 200 {
		list[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("document number %d of the island", i)
	}
	cfg := newCorpus(t, list)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			x, err := Open(context.Background(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Close()
			if n := x.Stats().Documents; n != 200 {
				t.Errorf("%d documents", n)
			}
			if got := ids(t, x, "77"); got != "077.md" {
				t.Errorf("found %q", got)
			}
		})
	}
	all.Wait()
}

// A search goes on while another process brings the index up to date.
func TestSearchDuringUpdate(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island", "b.md": "harbour"})
	x := mustOpen(t, cfg)
	conn, err := x.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := begin(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "DELETE FROM documents"); err != nil {
		t.Fatal(err)
	}
	y := mustOpen(t, cfg) // nothing to write, so nothing to wait for
	if got := ids(t, y, "island"); got != "a.md" {
		t.Errorf("found %q", got)
	}
	if err := end(t.Context(), conn, errors.New("undone")); err == nil {
		t.Error("the rollback lost the error")
	}
}

// A writer waits for another one, says so, and is let go by its context.
func TestWaitForAnotherProcess(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	x := mustOpen(t, cfg)
	conn, err := x.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := begin(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
	write(t, cfg.Path, files{"b.md": "harbour"})
	ctx, cancel := context.WithCancel(t.Context())
	waited := false
	cfg.Progress = func(p Progress) {
		if p.Waiting {
			waited = true
			cancel()
		}
	}
	if _, err := Open(ctx, cfg); !errors.Is(err, context.Canceled) || !waited {
		t.Errorf("got %v, waiting told: %v", err, waited)
	}
	if err := end(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
	cfg.Progress = nil
	if got := ids(t, mustOpen(t, cfg), "harbour"); got != "b.md" {
		t.Errorf("found %q", got)
	}
}

// Wherever indexing is interrupted, the index stays whole and the next Open
// goes on.
func TestCancel(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `{"id":"d%d","text":"document number %d of the island"}`+"\n", i, i)
	}
	cfg := newCorpus(t, files{"a.md": "island", "many.jsonl": b.String()})
	for _, after := range []int64{0, 1, 50_000, 200_000} {
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Progress = func(p Progress) {
			if p.Bytes >= after {
				cancel()
			}
		}
		x, err := Open(ctx, cfg)
		if err == nil {
			x.Close() // it was done before the next look at the context
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("after %d bytes: %v", after, err)
		}
		cancel()
	}
	cfg.Progress = nil
	x := mustOpen(t, cfg)
	if n := x.Stats().Documents; n != 5001 || x.Stats().Rebuilt != "" {
		t.Errorf("%d documents, rebuilt %q", n, x.Stats().Rebuilt)
	}
	var state string
	if err := x.db.QueryRow("PRAGMA integrity_check").Scan(&state); err != nil || state != "ok" {
		t.Errorf("integrity: %s, %v", state, err)
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, newCorpus(t, files{"a.md": "island"})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

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

func TestProgress(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island", "b.jsonl": strings.Repeat(`{"text":"harbour"}`+"\n", 2000)})
	var last Progress
	cfg.Progress = func(p Progress) {
		if p.Bytes < last.Bytes || p.Files < last.Files || p.Bytes > p.TotalBytes || p.Files > p.TotalFiles {
			t.Errorf("from %+v to %+v", last, p)
		}
		last = p
	}
	mustOpen(t, cfg)
	if last.Files != 2 || last.TotalFiles != 2 || last.Bytes != last.TotalBytes || last.Bytes == 0 {
		t.Errorf("ended at %+v", last)
	}
}
