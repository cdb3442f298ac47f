package research

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"sync"
	"time"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// A part is what a leg is made of.
type part struct {
	phase  Phase
	script Script
	tools  []tools.Tool
	texts  map[string]string
	ends   []string // the tools that end a leg by their success
	turns  int      // at most
	tokens int      // generated, at most; zero for no limit
	time   time.Duration
	result int // tokens of what a tool gives
	write  int // tokens of a turn
	// heard is told of what happened beside the state; nil for nobody.
	heard func(happening)
}

// run makes a leg, goes on with it, or reads what became of it.
func (s *state) run(p part) (ending, error) {
	s.leg++
	j, err := trace.OpenJournal(s.folder.journal(s.leg, p.phase))
	if err != nil {
		return ending{}, &FolderError{s.folder.path, bare(err)}
	}
	defer func() { _ = j.Close() }() // its error stands in Err
	task := runner.Task{Question: s.Question, Date: s.Date, Texts: p.texts}
	last := lastRun(j)
	if last != nil && !same(last.Header, p.script, task) {
		_ = j.Close() // what it holds is forgotten
		if err := s.folder.forget(s.leg); err != nil {
			return ending{}, &FolderError{s.folder.path, bare(err)}
		}
		if j, err = trace.OpenJournal(s.folder.journal(s.leg, p.phase)); err != nil {
			return ending{}, &FolderError{s.folder.path, bare(err)}
		}
		last = nil
	}
	whole := last != nil && s.whole(last, p)
	if err := s.begun(p, whole || happened(unfinished(j)) > 0); err != nil {
		return ending{}, err
	}
	if whole {
		return s.replay(last, p)
	}
	r, err := s.runner(p)
	if err != nil {
		return ending{}, err
	}
	return s.play(j, r, task, p)
}

// begun says that a leg begins, or that it goes on from here.
func (s *state) begun(p part, replayed bool) error {
	return s.emit(PhaseBegan{Phase: p.phase, Leg: s.leg, Replayed: replayed})
}

// unfinished are the records of the run that may be gone on with.
func unfinished(j *trace.Journal) []trace.Record {
	if i := j.Unfinished(); i >= 0 {
		return j.Runs[i].Records
	}
	return nil
}

// lastRun is the run of a leg that counts, nil for none.
func lastRun(j *trace.Journal) *trace.Run {
	if i := trace.Last(j.Runs); i >= 0 {
		return &j.Runs[i]
	}
	return nil
}

// same reports whether a journal is of a leg: it was asked the same in the same
// format.
func same(h trace.Header, script Script, task runner.Task) bool {
	sum := sha256.Sum256(script.Text)
	return h.Task.Question == task.Question && h.Task.Date == task.Date && maps.Equal(h.Task.Texts, task.Texts) &&
		h.Format.SHA256 == hex.EncodeToString(sum[:])
}

// runner makes the runner of a leg.
func (s *state) runner(p part) (*runner.Runner, error) {
	r := *s.Runner
	r.Format, r.Choice, r.Criteria, r.Constrain = p.script.Format, runner.Choice{}, nil, false
	r.Sampling = s.sampling("leg", strconv.Itoa(s.leg))
	r.Limits = runner.Limits{Turns: p.turns, Tokens: s.context, TurnTokens: p.write, Time: p.time, Resumes: r.Limits.Resumes, Think: r.Limits.Think}
	r.Tools = nil
	if len(p.tools) == 0 {
		return &r, nil
	}
	var err error
	// One call after the other: numbers follow the order of the calls.
	r.Tools, err = tools.NewSet(p.tools, tools.Options{MaxTokens: p.result, CountTokens: r.CountTokens, Parallel: 1})
	return &r, err
}

// play makes a leg, or goes on with it. The journal is closed before the leg is
// ended by ctx, so that it is left as a kill would leave it.
func (s *state) play(j *trace.Journal, r *runner.Runner, task runner.Task, p part) (ending, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer cancel(nil)
	handOver := func() { cancel(runner.ErrHandedOver) }
	leave := func() { _ = j.Close(); cancel(nil) }
	stop := context.AfterFunc(s.ctx, leave)
	defer stop()
	s.reading.set(leave)
	about := s.About
	about.Format, about.Text = p.script.Name, p.script.Text
	if i := j.Unfinished(); i >= 0 {
		before := s.snapshot()
		live := trace.Live{Model: r.Model, Tools: p.tools, Version: about.Version, CountTokens: r.CountTokens}
		end, err := s.follow(trace.NewDeck(j.Runs).Resume(ctx, j.Writer, i, live), p, j.Runs[i].Records, handOver)
		if !trace.Unplayable(err) {
			return s.played(j, end, err)
		}
		s.restore(before)
		if err := s.begun(p, false); err != nil {
			return ending{}, err
		}
	}
	end, err := s.follow(j.Run(ctx, about, r, task), p, nil, handOver)
	return s.played(j, end, err)
}

// played tells what ended a leg that cannot go on.
func (s *state) played(j *trace.Journal, end ending, err error) (ending, error) {
	failed := s.reading.set(nil)
	switch fault := j.Err(); {
	case errors.Is(err, errLeft):
		return end, err
	case s.ctx.Err() != nil:
		return end, s.ctx.Err()
	case failed != nil:
		return end, failed
	case fault != nil:
		return end, &FolderError{s.folder.path, bare(fault)}
	case err != nil && end.reason == runner.TermTokenLimit && errors.As(err, new(*models.OverflowError)):
		return end, nil // the server has less room than it said: the next leg is shorter
	}
	return end, err
}

// follow follows a leg until it ends, or until it has what it is for: then it is
// handed over. What stands in the records before is told as what it is, done
// before.
func (s *state) follow(events iter.Seq2[runner.Event, error], p part, before []trace.Record, handOver func()) (ending, error) {
	w := s.watch(p)
	w.took = s.take
	old, over := happened(before), false
	s.of(p.phase).duration += took(before)
	for ev, err := range events {
		if err != nil {
			return w.end, err
		}
		if last, ok := ev.(runner.Ended); ok {
			s.of(p.phase).duration += last.Duration
		}
		if old == 0 {
			if err := s.emit(Ran{ev}); err != nil {
				return w.end, err
			}
		}
		if over {
			continue
		}
		if over, err = w.see(ev); err != nil {
			return w.end, err
		}
		if over {
			handOver()
		}
		if old > 0 && happens(ev.Kind()) {
			if old--; old == 0 {
				if err := s.begun(p, false); err != nil {
					return w.end, err
				}
			}
		}
	}
	return w.end, nil
}

// whole reports whether a journal has all of its leg.
func (s *state) whole(run *trace.Run, p part) bool {
	w := s.watch(p)
	for _, rec := range run.Records {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return false
		}
		if over, err := w.see(ev); err != nil || over {
			return err == nil
		}
	}
	return false
}

// replay takes up what became of a leg from its journal.
func (s *state) replay(run *trace.Run, p part) (ending, error) {
	w := s.watch(p)
	w.took = s.take
	s.of(p.phase).duration += took(run.Records)
	for _, rec := range run.Records {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return w.end, err
		}
		if over, err := w.see(ev); err != nil || over {
			return w.end, err
		}
	}
	return w.end, fmt.Errorf("the journal of leg %d has no end", s.leg) // whole has said that it has
}

// A reading is what stands between the pages that are read in a leg and the
// leg: a model that cannot be asked for a summary is no fault of the page. It
// ends the leg, as a kill would, and the planner is told nothing.
type reading struct {
	mu    sync.Mutex
	leave func()
	err   error
}

// set says how a leg is left, and gives what has failed in the one before.
func (r *reading) set(leave func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	r.leave, r.err = leave, nil
	return err
}

// fail leaves the leg.
func (r *reading) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leave != nil && r.err == nil {
		r.err = err
		r.leave()
	}
}
