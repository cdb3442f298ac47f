package bank

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// made opens a bank in which each moment is the same.
func made(t testing.TB, path string) *Bank {
	t.Helper()
	b, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	b.now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	return b
}

// reading is a summary, and the page that it is of.
func reading(n int) (Summary, string) {
	return Summary{
		Source: fmt.Sprintf("notes/%d.md", n), Title: fmt.Sprintf("Note %d", n), Goal: "How tall is the tower?",
		Rational: "The second paragraph tells.", Evidence: fmt.Sprintf("The tower is %d metres tall.", n),
		Summary: fmt.Sprintf("%d metres.", n), Tokens: 20 + n, Question: "What is known of the tower?", Call: fmt.Sprintf("run-1/%d", n),
	}, fmt.Sprintf("# Note %d\n\nThe tower is %d metres tall.\n", n, n)
}

func add(t testing.TB, b *Bank, s Summary, page string) Summary {
	t.Helper()
	got, err := b.Add(t.Context(), s, page)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBank(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	b := made(t, path)
	for n := 1; n <= 3; n++ {
		s, page := reading(n)
		got := add(t, b, s, page)
		s.Number, s.Time, s.Page = n, b.now(), got.Page
		if got != s || len(got.Page) != 64 {
			t.Errorf("%+v\nwant %+v", got, s)
		}
	}
	// Again, as after a kill, with what another generation says of the same page.
	s, page := reading(2)
	s.Summary = "otherwise"
	if again := add(t, b, s, page); again.Number != 2 || again.Summary != "2 metres." {
		t.Errorf("added again: %+v", again)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := filepath.Glob(path + "*"); err != nil || len(list) != 1 {
		t.Errorf("a closed bank is %q, %v", list, err)
	}

	b = made(t, path) // for another question
	s, page = reading(4)
	s.Question = "Who built the tower?"
	if got := add(t, b, s, page); got.Number != 4 {
		t.Errorf("numbers go on at %d", got.Number)
	}
	found, unknown, err := b.Get(t.Context(), 3, 17, 1, 3, -1)
	if err != nil || len(found) != 2 || found[0].Number != 3 || found[1].Title != "Note 1" || !slices.Equal(unknown, []int{17, -1}) {
		t.Errorf("got %+v, unknown %v, %v", found, unknown, err)
	}
	since, err := b.Since(t.Context(), 2)
	if err != nil || len(since) != 2 || since[0].Number != 3 || since[1].Question != "Who built the tower?" {
		t.Errorf("since 2: %+v, %v", since, err)
	}
	if s, err := b.Of(t.Context(), "run-1/2"); err != nil || s.Number != 2 {
		t.Errorf("of a call: %+v, %v", s, err)
	}
	if _, err := b.Of(t.Context(), "run-1/9"); !errors.Is(err, ErrNoSummary) {
		t.Errorf("of no call: %v", err)
	}
	if last, err := b.Last(t.Context()); last != 4 || err != nil {
		t.Errorf("last %d, %v", last, err)
	}
	p, err := b.Page(t.Context(), found[1].Page)
	if err != nil || p.Text != "# Note 1\n\nThe tower is 1 metres tall.\n" || p.Bytes != len(p.Text) {
		t.Errorf("page %+v, %v", p, err)
	}
	if _, err := b.Page(t.Context(), "none"); !errors.Is(err, ErrNoPage) {
		t.Errorf("no page: %v", err)
	}
}

// A page is kept once, however often and for whatever it was read.
func TestPageOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	b := made(t, path)
	page := strings.Repeat("The same page. ", 40_000) + "ä" // 600 kB
	var first Summary
	for n := range 20 {
		s, _ := reading(n)
		got := add(t, b, s, page)
		if n == 0 {
			first = got
		} else if got.Page != first.Page {
			t.Errorf("page %s, then %s", first.Page, got.Page)
		}
	}
	long := strings.Repeat("ä", MaxPage) // twice as many bytes
	s, _ := reading(100)
	got := add(t, b, s, long)
	p, err := b.Page(t.Context(), got.Page)
	if err != nil || len(p.Text) != MaxPage || p.Bytes != 2*MaxPage || !strings.HasPrefix(long, p.Text) {
		t.Errorf("a long page: %d bytes of %d, %v", len(p.Text), p.Bytes, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > MaxPage+2*int64(len(page)) || st.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes, mode %v, %v", st.Size(), st.Mode(), err)
	}
	s, _ = reading(101)
	if got := add(t, b, s, " \n"); got.Page != "" {
		t.Errorf("no page has the hash %s", got.Page)
	}
}

// What cannot be kept is refused, and takes no number.
func TestRefused(t *testing.T) {
	b := made(t, filepath.Join(t.TempDir(), "bank.db"))
	for name, change := range map[string]func(*Summary){
		"the summary is empty":                                             func(s *Summary) { s.Evidence, s.Summary = " ", "\n" },
		`"evidence" has 262145 bytes, and 262144 is the most`:              func(s *Summary) { s.Evidence = strings.Repeat("a", MaxField+1) },
		`"goal" has 8193 bytes, and 8192 is the most`:                      func(s *Summary) { s.Goal = strings.Repeat("a", MaxName+1) },
		`"call" is empty: it tells a summary from one that is added again`: func(s *Summary) { s.Call = "" },
	} {
		s, page := reading(1)
		change(&s)
		if _, err := b.Add(t.Context(), s, page); err == nil || err.Error() != name {
			t.Errorf("%q, want %q", err, name)
		}
	}
	s, page := reading(1)
	s.Title = strings.Repeat("ä", MaxName)
	s.Summary, s.Evidence = "a\x00b\xff\x1b[2J", "<script>\u202e"
	got := add(t, b, s, page)
	if got.Number != 1 || got.Title != strings.Repeat("ä", MaxName/2) {
		t.Errorf("number %d, title of %d bytes", got.Number, len(got.Title))
	}
	list, err := b.Since(t.Context(), 0)
	if err != nil || len(list) != 1 || list[0] != got || got.Summary != "a\x00b\uFFFD\x1b[2J" {
		t.Errorf("kept %+v, %v", list, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := made(t, filepath.Join(t.TempDir(), "bank.db"))
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			s, page := reading(n / 2) // each of them twice
			if _, err := b.Add(context.Background(), s, page); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	inOrder(t, b, 12)
}

// inOrder makes sure that the numbers have no gap, that each call is there
// once, and that each summary has its page.
func inOrder(t *testing.T, b *Bank, want int) {
	t.Helper()
	list, err := b.Since(t.Context(), 0)
	if err != nil || len(list) != want {
		t.Fatalf("%d summaries, not %d: %v", len(list), want, err)
	}
	calls := map[string]bool{}
	for i, s := range list {
		p, err := b.Page(t.Context(), s.Page)
		if s.Number != i+1 || calls[s.Call] || err != nil || !strings.Contains(p.Text, s.Evidence) {
			t.Errorf("place %d: number %d of %s, page %q, %v", i, s.Number, s.Call, p.Text, err)
		}
		calls[s.Call] = true
	}
}

func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	b := made(t, path)
	s, page := reading(1)
	add(t, b, s, page)
	if _, err := Open(t.Context(), path); !errors.Is(err, ErrBusy) || err.Error() != "cannot use bank "+path+": another process adds to it" {
		t.Errorf("a second one: %v", err)
	}
	r, err := Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	inOrder(t, r, 1)
	s, page = reading(2)
	add(t, b, s, page)
	inOrder(t, r, 2)
	if _, err := r.Add(t.Context(), s, page); err == nil {
		t.Error("one that only reads has added")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	made(t, path)
}

// Files that are no banks are refused, and not a byte of them changes.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	b := made(t, whole)
	for n := range 60 {
		s, page := reading(n)
		add(t, b, s, page+strings.Repeat("text ", 300))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	altered := func(change func(file []byte) []byte) []byte { return change(slices.Clone(good)) }
	execute := func(statements string) []byte {
		path := filepath.Join(t.TempDir(), "made.db")
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", dataSource(path, true))
		if err == nil {
			_, err = db.Exec(statements)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		made, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"text":             {[]byte("a list of things to do"), ErrForeign},
		"long text":        {[]byte(strings.Repeat("things to do\n", 1000)), ErrForeign},
		"an index":         {altered(func(f []byte) []byte { copy(f[68:], "stgp"); return f }), ErrForeign},
		"newer":            {altered(func(f []byte) []byte { f[63] = 2; return f }), ErrVersion},
		"half":             {good[:len(good)/2], ErrDamaged},
		"only the head":    {good[:100], ErrDamaged},
		"zeroes inside":    {altered(func(f []byte) []byte { clear(f[8192:40960]); return f }), ErrDamaged},
		"a trigger":        {execute("CREATE TRIGGER a AFTER INSERT ON summaries BEGIN DELETE FROM summaries; END"), ErrForeign},
		"a view":           {execute("CREATE VIEW zz AS SELECT 1"), ErrForeign},
		"a table too few":  {execute("DROP TABLE pages"), ErrForeign},
		"a huge text":      {execute("PRAGMA ignore_check_constraints = 1; UPDATE summaries SET summary = replace(hex(zeroblob(200000)), '0', 'a') WHERE number = 7"), ErrDamaged},
		"a number below 1": {execute("PRAGMA ignore_check_constraints = 1; UPDATE summaries SET number = -5 WHERE number = 7"), ErrDamaged},
	} {
		path := filepath.Join(dir, "file.db")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(context.Context, string) (*Bank, error){Open, Read} {
			var typed *Error
			if _, err := open(t.Context(), path); !errors.Is(err, c.want) || !errors.As(err, &typed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, c.file) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
	}
	for name, path := range map[string]string{"a folder": dir, "nowhere": filepath.Join(dir, "no", "where"), "a device": os.DevNull} {
		var typed *Error
		if _, err := Open(t.Context(), path); !errors.As(err, &typed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Whatever bytes a bank has, it is refused, or read as far as it can be.
func TestMutated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	b := made(t, path)
	for n := range 24 {
		s, page := reading(n)
		add(t, b, s, page+strings.Repeat("text ", 400))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused, read := 0, 0
	for round := range 40 {
		bad := slices.Clone(good)
		for range 1 + random.IntN(20) {
			at := random.IntN(len(bad))
			if round%2 == 0 { // where the tables and the first pages' structure are
				at = random.IntN(4096) + 4096*random.IntN(3)
			}
			bad[at] = byte(random.Uint32())
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var typed *Error
		b, err := Read(t.Context(), path)
		if err != nil {
			if refused++; !errors.As(err, &typed) {
				t.Errorf("round %d: %v", round, err)
			}
			continue
		}
		read++
		list, err := b.Since(t.Context(), 0)
		for _, s := range list {
			if err == nil {
				if _, err = b.Page(t.Context(), s.Page); errors.Is(err, ErrNoPage) {
					err = nil
				}
			}
		}
		if err != nil && !errors.As(err, &typed) {
			t.Errorf("round %d: %v", round, err)
		}
		_ = b.Close()
	}
	if refused == 0 || read == 0 {
		t.Errorf("%d refused, %d read", refused, read)
	}
}

func TestCancelled(t *testing.T) {
	b := made(t, filepath.Join(t.TempDir(), "bank.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, page := reading(1)
	if _, err := b.Add(ctx, s, page); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	inOrder(t, b, 0)
}
