package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
)

// What rollouts give does not depend on how many run at once, nor on the order
// of the questions. The model inside is asked with a temperature.
func TestOrderAndParallelismChangeNothing(t *testing.T) {
	m, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, c := range []struct {
		parallel int
		backward bool
	}{{1, false}, {8, false}, {3, true}} {
		s := server(t, "builtin", m)
		hot, all, none := 3.0, 1.0, 0.0 // so that even what the model is sure of differs
		s.Runner.Sampling = models.Sampling{Temperature: &hot, TopP: &all, MinP: &none}
		s.Runner.Limits = runner.Limits{Turns: 1, TurnTokens: 12}
		d := questions(4)
		if c.backward {
			slices.Reverse(d.Items)
		}
		b := newBatch(t, t.TempDir(), d, s)
		b.Parallel = c.parallel
		if _, err := finish(t, b); err != nil {
			t.Fatal(err)
		}
		got := told(t, b)
		for i := range got {
			got[i] += ledgerOf(t, b, i)
		}
		slices.Sort(got)
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Errorf("parallel %d, backward %v:\n%s\nfirst:\n%s", c.parallel, c.backward, strings.Join(got, "\n"), strings.Join(first, "\n"))
		}
	}
	if len(first) != 8 || first[0][strings.Index(first[0], ":"):] == first[1][strings.Index(first[1], ":"):] {
		t.Errorf("two seeds give the same, so that nothing was tested:\n%s", strings.Join(first, "\n"))
	}
}

// ledgerOf gives all texts of the n-th result's run.
func ledgerOf(t *testing.T, b *Batch, n int) string {
	t.Helper()
	text := ""
	err := b.Results(func(r Result) error {
		if n--; n != -1 {
			return nil
		}
		run, err := b.lastRun(r)
		if err != nil {
			return err
		}
		events, err := eventsOf(run)
		for _, ev := range events {
			if e, ok := ev.(runner.Text); ok {
				text += e.Text
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A question stays on its server, and servers share the questions.
func TestQuestionsStayOnTheirServer(t *testing.T) {
	begin := together(6)
	m := &oracle{asked: func(int, int) error { begin(); return nil }}
	b := newBatch(t, t.TempDir(), questions(12), server(t, "a", m), server(t, "b", m))
	b.Rollouts, b.Parallel = 3, 6
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	servers, load := map[string]string{}, map[string]int{}
	_ = b.Results(func(r Result) error {
		if was := servers[r.Item]; was != "" && was != r.Server {
			t.Errorf("%s was asked on %s and on %s", r.Item, was, r.Server)
		}
		servers[r.Item] = r.Server
		load[r.Server]++
		return nil
	})
	if load["a"] < 9 || load["b"] < 9 {
		t.Errorf("the servers had %v rollouts", load)
	}
}

// refused is how a server fails that is gone.
var refused = &models.UnreachableError{Server: "test", URL: "http://127.0.0.1:1", Err: syscall.ECONNREFUSED}

// When a server dies, the other one does its work, and nothing has failed.
func TestAServerDies(t *testing.T) {
	var requests atomic.Int64
	dead := func() error {
		if requests.Load() > 5 {
			return refused
		}
		return nil
	}
	begin := together(4)
	mortal := &oracle{asked: func(int, int) error { begin(); requests.Add(1); return dead() }, alive: dead}
	other := &oracle{asked: func(int, int) error { begin(); return nil }}
	b := newBatch(t, t.TempDir(), questions(10), server(t, "mortal", mortal), server(t, "other", other))
	b.Patience = 20 * time.Millisecond
	events, err := finish(t, b)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	if len(of[Down](events)) == 0 || len(of[Returned](events)) == 0 {
		t.Errorf("nobody says that the server is gone: %+v", events)
	}
	end := of[Ended](events)[0]
	if end.Done != 20 || end.Failed != 0 || end.Missing != 0 {
		t.Errorf("%+v", end)
	}
}

// When all servers are gone the batch ends, without counting what they cost as
// failed; it goes on when they are back.
func TestAllServersDie(t *testing.T) {
	dir := t.TempDir()
	var requests atomic.Int64
	dead := func() error {
		if requests.Load() > 9 {
			return refused
		}
		return nil
	}
	b := newBatch(t, dir, questions(6), server(t, "mortal", &oracle{asked: func(int, int) error { requests.Add(1); return dead() }, alive: dead}))
	b.Patience = 20 * time.Millisecond
	events, err := finish(t, b)
	if end := of[Ended](events)[0]; !is[*models.UnreachableError](err) || end.Missing == 0 || end.Failed != 0 {
		t.Fatalf("%+v, %v", end, err)
	}
	b.Servers = []*Server{server(t, "back", &oracle{})}
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	whole(t, b)
}

// A server that comes back, once it is known to be down, gets rollouts again.
func TestAServerComesBack(t *testing.T) {
	var down atomic.Bool
	var once atomic.Bool
	m := &oracle{}
	m.alive = func() error {
		if down.Load() {
			return refused
		}
		return nil
	}
	m.asked = func(_, turn int) error {
		if turn == 2 && once.CompareAndSwap(false, true) {
			down.Store(true)
		}
		return m.alive()
	}
	b := newBatch(t, t.TempDir(), questions(6), server(t, "m", m))
	b.Patience = time.Hour
	downs, ups := 0, 0
	for ev, err := range b.Run(t.Context()) {
		switch {
		case err != nil:
			t.Fatal(err)
		case len(of[Down]([]Event{ev})) > 0:
			downs++
			down.Store(false)
		case len(of[Up]([]Event{ev})) > 0:
			ups++
		}
	}
	if downs != 1 || ups != 1 {
		t.Errorf("it is said %d times that the server is down, and %d times that it is back", downs, ups)
	}
	whole(t, b)
}

// A rollout that fails is on the ledger as failed, and is made again only where
// that is wanted.
func TestRetryFailed(t *testing.T) {
	dir := t.TempDir()
	bad := &models.ServerError{Status: 400, Message: "no"}
	var count counter
	b := newBatch(t, dir, questions(3), server(t, "s", &oracle{asked: func(seed, turn int) error {
		_ = count.asked(seed, turn)
		if seed%2 == 0 {
			return bad
		}
		return nil
	}}))
	b.Rollouts = 6
	events, err := finish(t, b)
	if err != nil {
		t.Fatal(err)
	}
	first := of[Ended](events)[0]
	if first.Failed == 0 || first.Failed == first.Done || first.Done != 18 {
		t.Fatalf("%+v", first)
	}
	b.Servers = []*Server{server(t, "s", &oracle{asked: count.asked})}
	if events, err = finish(t, b); err != nil || len(of[Finished](events)) != 0 {
		t.Fatalf("%+v, %v", events, err)
	}
	b.RetryFailed = true
	if events, err = finish(t, b); err != nil || len(of[Finished](events)) != first.Failed {
		t.Fatalf("%d were made again, %d had failed, %v", len(of[Finished](events)), first.Failed, err)
	}
	if began := of[Began](events)[0]; began.Retrying != first.Failed || began.Done != 18-first.Failed {
		t.Errorf("%+v", began)
	}
	whole(t, b)
}

// A batch that is left, by its context or by its consumer, goes on where it was.
func TestLeft(t *testing.T) {
	var count counter
	d := questions(8)
	dir := t.TempDir()
	rounds := 0
	for round := 0; ; round++ {
		rounds++
		ctx, cancel := context.WithCancel(t.Context())
		var requests atomic.Int64
		b := newBatch(t, dir, d, server(t, "s", &oracle{pause: time.Millisecond, asked: func(seed, turn int) error {
			if requests.Add(1) == int64(8+round) && round%2 == 0 {
				cancel()
			}
			return count.asked(seed, turn)
		}}))
		seen := 0
		var last error
		for ev, err := range b.Run(ctx) {
			last = err
			if _, ok := ev.(Finished); ok {
				seen++
			}
			if round%2 == 1 && seen == 3 {
				break
			}
		}
		done := ctx.Err() == nil && last == nil && round%2 == 0
		cancel()
		if last != nil && !errors.Is(last, ErrLeft) {
			t.Fatal(last)
		}
		if len(told(t, b)) == 16 || done {
			whole(t, b)
			break
		}
		if err := b.Ledger.Close(); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, n := range count.seen {
		total += n
	}
	// Each time a worker loses the request under way, and may begin one more
	// before it hears of the end.
	if most := 32 + rounds*2*4; total > most || rounds < 2 {
		t.Errorf("%d requests, at most %d are due after %d rounds", total, most, rounds)
	}
}

// A folder is one batch's: of its questions and of its configuration.
func TestWhatChangedIsNoticed(t *testing.T) {
	dir := t.TempDir()
	s := server(t, "s", &oracle{})
	b := newBatch(t, dir, questions(2), s)
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(dir); !errors.Is(err, ErrBusy) && runtime.GOOS != "windows" {
		t.Errorf("a second process may work in the folder: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*Batch)
		says   string
	}{
		"question":    {func(b *Batch) { b.Data.Items[1].Question = "?" }, "dataset: line 2 (q1) was another"},
		"gold":        {func(b *Batch) { b.Data.Items[0].Answers = []string{"1"} }, "dataset: line 1 (q0) was another"},
		"more":        {func(b *Batch) { b.Data = questions(3) }, "dataset: line 3 (q2) is new"},
		"less":        {func(b *Batch) { b.Data = questions(1) }, "dataset: 1 questions are gone"},
		"temperature": {func(b *Batch) { b.Configuration["runner.Sampling"] = []byte(`{"temperature":1}`) }, `configuration: runner.Sampling was nothing and is {"temperature":1}`},
		"model":       {func(b *Batch) { b.Configuration["model"] = []byte(`"other"`) }, `configuration: model was "oracle" and is "other"`},
	} {
		other := *b
		other.Data = questions(2)
		other.Configuration = Configuration{}
		for k, v := range b.Configuration {
			other.Configuration[k] = v
		}
		c.change(&other)
		_, err := finish(t, &other)
		if !is[*ChangedError](err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.Rollouts = 3 // more of the same is no change
	if events, err := finish(t, b); err != nil || len(of[Finished](events)) != 2 {
		t.Errorf("%+v, %v", events, err)
	}
	whole(t, b)
}

// Where a journal cannot be written the batch ends, and nothing is lost that was
// there.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this machine has no /dev/full")
	}
	dir := t.TempDir()
	b := newBatch(t, dir, questions(4), server(t, "s", &oracle{}))
	b.Parallel = 1
	full := filepath.Join(dir, filepath.FromSlash(JournalName("q2", 1)))
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	events, err := finish(t, b)
	if !is[*FolderError](err) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	if end := of[Ended](events)[0]; end.Done != 4 || end.Failed != 0 {
		t.Errorf("%+v", end)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	whole(t, b)
}

// A folder that is none, or that nobody may write, is an error at once.
func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(file); !is[*FolderError](err) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(file+".db", []byte("no database, but some bytes of another kind of file"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Rename(file+".db", filepath.Join(dir, ledgerName)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(dir); !is[*FolderError](err) || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("%v", err)
	}
}

// A journal that another version wrote, or that is damaged, is no reason to stop.
func TestForeignJournals(t *testing.T) {
	dir := t.TempDir()
	b := newBatch(t, dir, questions(2), server(t, "s", &oracle{}))
	for k, text := range []string{"not a journal\nat all\n", "0000"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(JournalName("q0", k+1))), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	whole(t, b)
}

func TestSeed(t *testing.T) {
	if got := Seed("c", "item", 0); got != 1038970861 {
		t.Errorf("seeds are others than they were: %d", got)
	}
	seen := map[int]bool{}
	for _, source := range []string{"a", "b"} {
		for _, item := range []string{"x", "y"} {
			for k := range 100 {
				seen[Seed(source, item, k)] = true
			}
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d seeds of 400", len(seen))
	}
}

func TestJournalNames(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "A", "a/b", "a_b", "../x", ".hidden", "", "con", "ü", strings.Repeat("x", 300), strings.Repeat("x", 301), "a-1", "a~b"} {
		name := JournalName(id, 1)
		folded := strings.ToLower(name)
		if was, ok := seen[folded]; ok {
			t.Errorf("%q and %q are both %s", was, id, name)
		}
		seen[folded] = id
		if filepath.Dir(filepath.FromSlash(name)) != journalFolder || len(name) > 120 || strings.HasPrefix(filepath.Base(name), ".") {
			t.Errorf("%q is %s", id, name)
		}
	}
}

// The configuration has every field of a Runner that is data.
func TestConfigurationHasEverything(t *testing.T) {
	s := server(t, "s", &oracle{})
	bare, err := NewConfiguration("m", nil, s.Runner, s.Task)
	if err != nil {
		t.Fatal(err)
	}
	r := *s.Runner
	r.Strict, r.Limits.Turns, r.Reserved = true, 3, []string{"x"}
	c, err := NewConfiguration("m", nil, &r, s.Task)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(len(c.Changes(bare)), c.Hash() == bare.Hash()); got != "3 false" {
		t.Errorf("%s: %v", got, c.Changes(bare))
	}
	r = *s.Runner
	r.Session, r.Name, r.Context = "s", "n", 7
	if c, err = NewConfiguration("m", nil, &r, s.Task); err != nil || c.Hash() != bare.Hash() {
		t.Errorf("where a run is made is part of the configuration: %v, %v", c.Changes(bare), err)
	}
}
