// Package batch asks many questions, each several times, and keeps what came of
// it in a folder.
//
// The folder has a journal for each rollout and a ledger (SQLite) of those that
// have come to their end. Both only grow, so that a batch whose process was
// killed goes on where it was: a rollout that is on the ledger is never made
// again, one whose journal has its end is taken from there, and one whose
// journal has none goes on from its last whole record. What a rollout gives
// follows from its question, the configuration and its number, never from the
// order or from what else runs.
//
// The package never prints, never opens a model, and never asks a question that
// its folder was not begun with.
package batch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"stopgap/internal/trace"
	"stopgap/runner"
)

// A Server is one of those that rollouts are made on. All of a batch have the
// same model.
type Server struct {
	Name   string // for events, without secrets
	Runner *runner.Runner
	Task   runner.Task // without the question
	About  trace.About
}

// A Batch is a dataset, a configuration and the servers that work on it.
type Batch struct {
	Dir           string // of the ledger
	Ledger        *Ledger
	Data          *Dataset
	Configuration Configuration
	Servers       []*Server
	// First is how many of the questions are asked; zero means all.
	First    int
	Rollouts int // of each question
	Parallel int // rollouts at once, on all servers
	// RetryFailed makes rollouts again that ended by an error.
	RetryFailed bool
	// Seeds is what seeds follow from, beside the item and the rollout; empty
	// means the hash of the configuration. Configurations that are to be compared
	// pair for pair have the same.
	Seeds string
	// Patience is how long a server that is down is asked again; zero means
	// DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is enough for a server to be started again by hand.
const DefaultPatience = 2 * time.Minute

// tries is how often a rollout is begun whose server did not last. A prompt may
// be what brings the server down.
const tries = 3

// GCPercent is how much garbage a process with many rollouts at once lets gather
// (debug.SetGCPercent): 64 of them then take about 50 MB, and a token some
// microseconds more.
const GCPercent = 50

// ErrLeft says that a batch was left before its end: rollouts are missing.
var ErrLeft = errors.New("the batch was left before its end")

// A work is a batch under way.
type work struct {
	*Batch
	hash     string
	session  string
	schedule *schedule
	events   chan Event
	left     context.Context // done when the batch is to be left
	leave    context.CancelCauseFunc
	done     int
	failed   int
	mu       sync.Mutex // of done and failed
}

// Run works on what the ledger does not have yet. It yields what happens: Began
// first and Ended last, unless the folder is another batch's, which gives a
// *ChangedError alone. When the context is done, or the range is left, rollouts
// under way are left as a kill would leave them, to be gone on with. The error
// that follows Ended is ErrLeft, a *FolderError where the folder cannot be
// written, or what the last server said before it was given up.
func (b *Batch) Run(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		began := time.Now()
		w, first, err := b.begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer w.leave(nil)
		stopped := !yield(first, nil)
		if stopped {
			w.leave(ErrLeft)
		}
		for ev := range w.start() {
			if !stopped && !yield(ev, nil) {
				stopped = true
				w.leave(ErrLeft)
			}
		}
		if stopped {
			return
		}
		missing := first.Rollouts - w.done
		if !yield(Ended{Done: w.done, Failed: w.failed, Missing: missing, Duration: time.Since(began)}, nil) {
			return
		}
		if err := w.outcome(ctx, missing); err != nil {
			yield(nil, err)
		}
	}
}

// outcome is the error of a batch that has come to its end, or was left.
func (w *work) outcome(ctx context.Context, missing int) error {
	switch err := context.Cause(w.left); {
	case missing == 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrLeft, ctx.Err())
	case err != nil:
		return err
	case w.schedule.lost != nil:
		return w.schedule.lost
	}
	return ErrLeft
}

// begin looks at what there is to do.
func (b *Batch) begin(ctx context.Context) (*work, Began, error) {
	if err := b.Ledger.settle(b.Data, b.Configuration, b.date()); err != nil {
		return nil, Began{}, &FolderError{b.Dir, err}
	}
	w := &work{Batch: b, hash: b.Configuration.Hash(), session: rand.Text(), events: make(chan Event, 64)}
	w.left, w.leave = context.WithCancelCause(ctx)
	jobs, first, err := w.plan()
	if err != nil {
		w.leave(nil)
		return nil, first, &FolderError{b.Dir, err}
	}
	w.schedule = newSchedule(jobs, len(b.Servers))
	return w, first, nil
}

func (b *Batch) date() string {
	if len(b.Servers) == 0 {
		return ""
	}
	return b.Servers[0].Task.Date
}

// plan gives the rollouts that are missing, by item.
func (w *work) plan() ([][]Job, Began, error) {
	items := w.Data.Items
	if w.First > 0 && w.First < len(items) {
		items = items[:w.First]
	}
	first := Began{Dir: w.Dir, Configuration: w.hash, Items: len(items), Rollouts: len(items) * w.Rollouts}
	type key struct {
		item string
		seed int
	}
	failed := map[key]bool{} // of those that are on the ledger
	err := w.Ledger.results(w.hash, func(r Result) error {
		failed[key{r.Item, r.Seed}] = r.Failed()
		return nil
	})
	if err != nil {
		return nil, first, err
	}
	source := w.Seeds
	if source == "" {
		source = w.hash
	}
	jobs := make([][]Job, len(items))
	for i := range items {
		used := map[int]bool{}
		for k := range w.Rollouts {
			seed := Seed(source, items[i].ID, k)
			for used[seed] {
				seed = (seed + 1) & (1<<31 - 1)
			}
			used[seed] = true
			bad, done := failed[key{items[i].ID, seed}]
			switch {
			case bad && w.RetryFailed:
				first.Retrying++
			case done:
				w.done++
				if bad {
					w.failed++
				}
				continue
			}
			jobs[i] = append(jobs[i], Job{Item: items[i].ID, Rollout: k + 1, Seed: seed, item: i})
		}
	}
	first.Done, first.Failed = w.done, w.failed
	return jobs, first, nil
}

// start lets workers work and gives what they tell, until all have ended.
func (w *work) start() <-chan Event {
	stop := context.AfterFunc(w.left, w.schedule.stop)
	var all sync.WaitGroup
	for n := range min(max(w.Parallel, 1), max(w.schedule.left, 1)) {
		all.Go(func() { w.worker(n + 1) })
	}
	go func() {
		all.Wait()
		stop()
		w.schedule.stop() // ends who looks after servers
		w.schedule.keepers.Wait()
		close(w.events)
	}()
	return w.events
}

// worker makes rollouts until there are none left.
func (w *work) worker(n int) {
	last := -1
	for {
		j, server, ok := w.schedule.take(last)
		if !ok || w.left.Err() != nil { // the schedule is told a moment later
			return
		}
		last = j.item
		w.work(n, j, server)
	}
}

// work makes one rollout and says what becomes of it.
func (w *work) work(n int, j Job, server int) {
	s := w.Servers[server]
	result, err := w.rollout(n, j, s)
	switch folder := (*FolderError)(nil); {
	case errors.As(err, &folder):
		w.leave(err)
		w.schedule.leave(server)
		return
	case w.left.Err() != nil && errors.Is(err, ErrLeft):
		w.schedule.leave(server)
		return
	case serverFault(err) && j.tries+1 < tries:
		w.events <- Returned{n, j, s.Name, err.Error()}
		j.tries++
		w.spoiled(server, j)
		return
	}
	if err := w.Ledger.put(w.hash, &result); err != nil {
		w.leave(&FolderError{w.Dir, err})
		w.schedule.leave(server)
		return
	}
	w.mu.Lock()
	w.done++
	if result.Failed() {
		w.failed++
	}
	w.mu.Unlock()
	w.schedule.finish(server)
	w.events <- Finished{n, result}
}
