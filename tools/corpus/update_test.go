package corpus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

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

// A document that moves to another file while both change must not get lost,
// whichever of them is read first.
func TestMovedID(t *testing.T) {
	for _, names := range [][2]string{{"a.jsonl", "b.jsonl"}, {"b.jsonl", "a.jsonl"}} {
		from, to := names[0], names[1]
		const moved = `{"id":"moved","text":"banana"}` + "\n"
		cfg := newCorpus(t, files{from: moved, to: `{"id":"one","text":"apple"}`})
		mustOpen(t, cfg)
		write(t, cfg.Path, files{from: `{"id":"two","text":"cherry"}`, to: moved + `{"id":"one","text":"apple"}`})
		x := mustOpen(t, cfg)
		if got := ids(t, x, "banana"); got != "moved" {
			t.Errorf("from %s to %s: found %q", from, to, got)
		}
		if got := counts(x.Stats()); got != "3 docs, +0 ~2 -0 =0, skipped " {
			t.Errorf("got %s", got)
		}
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
	for i := range 2000 {
		fmt.Fprintf(&b, `{"id":"d%d","text":"document number %d of the island"}`+"\n", i, i)
	}
	cfg := newCorpus(t, files{"a.md": "island", "many.jsonl": b.String()})
	for _, after := range []int64{0, 1, 30_000, 90_000} {
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
	if n := x.Stats().Documents; n != 2001 || x.Stats().Rebuilt != "" {
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

// TestCancelInsideAFile: of a long file, what was committed stays, and the next
// time goes on behind it; unless the file has changed there.
func TestCancelInsideAFile(t *testing.T) {
	const n = 3000
	lines := func(word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"id":"d%d","text":"%s number n%d of the island"}`+"\n", i, word, i)
			if i%1000 == 500 {
				b.WriteString("broken\n")
			}
		}
		return b.String()
	}
	for _, c := range []struct{ name, now, want string }{
		{"the same", lines("document"), "3000 docs, +1 ~0 -0 =0, skipped 3 no JSON object"},
		{"longer", lines("document") + `{"text":"the last one"}`, "3001 docs, +1 ~0 -0 =0, skipped 3 no JSON object"},
		{"changed", lines("article"), "3000 docs, +0 ~1 -0 =0, skipped 3 no JSON object"},
		{"cut", lines("document")[:2000], ""},
	} {
		cfg := newCorpus(t, files{"many.jsonl": lines("document")})
		cfg.batch = 20_000
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Progress = func(p Progress) {
			if p.Bytes > 0 {
				cancel()
			}
		}
		// The reader is ahead of the documents by its buffer, and asks the context
		// when it fills it again; so one that ends here has committed something.
		if _, err := Open(ctx, cfg); !errors.Is(err, context.Canceled) && err != nil {
			t.Fatal(err)
		}
		cfg.Progress = nil
		write(t, cfg.Path, files{"many.jsonl": c.now})
		x := mustOpen(t, cfg)
		if got := counts(x.Stats()); got != c.want && c.want != "" {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		fresh := newCorpus(t, files{"many.jsonl": c.now})
		queries := []string{"number n2999", "island n7", "article", "document", "n1501"}
		a, err := x.Search(t.Context(), queries, 5)
		if err != nil {
			t.Fatal(err)
		}
		b, err := mustOpen(t, fresh).Search(t.Context(), queries, 5)
		if err != nil || Render(a) != Render(b) {
			t.Errorf("%s, %v:\n%s\nat once:\n%s", c.name, err, Render(a), Render(b))
		}
		if got := counts(mustOpen(t, cfg).Stats()); !strings.Contains(got, "=1") {
			t.Errorf("%s, again: %s", c.name, got)
		}
	}
}
