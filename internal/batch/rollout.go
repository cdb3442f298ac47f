package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"strings"
	"time"

	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
)

// rollout makes a rollout, goes on with it, or finds its result in its journal.
// The error is what ended the run; ErrLeft where the batch was left, and a
// *FolderError where the journal cannot be written.
func (w *work) rollout(worker int, j Job, s *Server) (Result, error) {
	name := JournalName(j.Item, j.Rollout)
	file := filepath.Join(w.Dir, filepath.FromSlash(name))
	jn, err := trace.OpenJournal(file)
	if err != nil {
		return Result{}, &FolderError{w.Dir, err}
	}
	defer func() { _ = jn.Close() }() // its error stands in Err
	item := &w.Data.Items[j.item]
	r := *s.Runner
	seed := j.Seed
	r.Sampling.Seed, r.Session = &seed, fmt.Sprintf("%s-%d", w.session, worker)
	task := s.Task
	task.Question = item.Question
	equipped := item.Equip(&r, &task)
	result := func(o runner.Outcome, made []Call, err error) Result {
		res := newResult(j, s.Name, name, o, err)
		if r.CallsEnd {
			res.Made, res.Underscores = made, underscores(&r)
		}
		return res
	}
	if o, ok := ended(jn.Runs); ok {
		made, err := madeCalls(&jn.Runs[trace.Last(jn.Runs)])
		return result(o, made, err), nil
	}
	if equipped != nil {
		return result(runner.Outcome{}, nil, equipped), equipped
	}

	// What runs is left as a kill would leave it: nothing more is written, and
	// then it is ended.
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.left))
	defer cancel()
	stop := context.AfterFunc(w.left, func() { _ = jn.Close(); cancel() })
	defer stop()

	p := &player{work: w, worker: worker, calls: r.CallsEnd}
	i := jn.Unfinished()
	w.events <- Started{worker, j, task.Question, s.Name, i >= 0}
	var o runner.Outcome
	if i >= 0 {
		live := trace.Live{Model: r.Model, Version: s.About.Version}
		if r.Tools != nil {
			live.Tools, live.Approve = r.Tools.Tools(), r.Tools.Options().Approve
		}
		o, err = p.follow(trace.NewDeck(jn.Runs).Resume(ctx, jn.Writer, i, live))
		if trace.Unplayable(err) {
			w.events <- Anew{worker, j, err.Error()}
			i, p.made = -1, nil
		}
	}
	jn.Runs = nil // they are as large as the run
	if i < 0 {
		o, err = p.follow(jn.Run(ctx, s.About, &r, task))
	}
	switch fault := jn.Err(); {
	case w.left.Err() != nil && (fault != nil || o.Termination == "" || o.Termination == runner.TermCancelled):
		return Result{}, ErrLeft
	case fault != nil:
		return Result{}, &FolderError{w.Dir, bare(fault)}
	}
	return result(o, p.made, err), err
}

// A player follows a run.
type player struct {
	*work
	worker int
	calls  bool // are kept, and nobody makes them
	turn   int
	pieces int
	told   time.Time
	made   []Call
}

// movedTime is how often a rollout tells what it does.
const movedTime = 100 * time.Millisecond

// follow gives the outcome of a run. There is none where it never began.
func (p *player) follow(events iter.Seq2[runner.Event, error]) (runner.Outcome, error) {
	var o runner.Outcome
	for ev, err := range events {
		if err != nil {
			return o, err
		}
		switch ev := ev.(type) {
		case runner.Waiting:
			p.move(ev.Turn, string(ev.Phase), false)
		case runner.Text:
			p.pieces++
			doing := "writing"
			if ev.Span == template.SpanThink {
				doing = "thinking"
			}
			p.move(ev.Turn, doing, false)
		case runner.Called:
			if !p.calls {
				p.move(ev.Turn, "running "+ev.Name, true)
				continue
			}
			p.made = append(p.made, Call{ev.Name, ev.Arguments, ev.Repairs})
		case runner.Ended:
			o = ev.Outcome
			o.Ledger = nil
		}
	}
	return o, nil
}

// move tells what the rollout does, at most so often. What takes long is told
// at once.
func (p *player) move(turn int, doing string, long bool) {
	if turn != p.turn {
		p.turn, p.pieces = turn, 0
	}
	now := time.Now()
	if !long && now.Sub(p.told) < movedTime {
		return
	}
	p.told = now
	p.tell(Moved{p.worker, turn, doing, p.pieces})
}

// ended gives the outcome of a run that has its end, and is a result: its process was
// killed before the ledger had it.
func ended(runs []trace.Run) (runner.Outcome, bool) {
	i := trace.Last(runs)
	if i < 0 || !runs[i].Ended() {
		return runner.Outcome{}, false
	}
	o, ok := outcomeOf(&runs[i])
	return o, ok && o.Error == "" && o.Termination != runner.TermCancelled
}

// outcomeOf is how a run ended.
func outcomeOf(run *trace.Run) (runner.Outcome, bool) {
	ev, err := run.Records[len(run.Records)-1].RunnerEvent()
	ended, ok := ev.(runner.Ended)
	return ended.Outcome, ok && err == nil
}

// JournalName is where the journal of a rollout is, below the batch's folder,
// with slashes.
func JournalName(item string, rollout int) string {
	return path.Join(journalFolder, fmt.Sprintf("%s-%d.trace", fileName(item), rollout))
}

// fileName makes a name of an id that every file system takes and keeps apart
// from others.
func fileName(id string) string {
	const most = 60 // bytes
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' {
			return c
		}
		return '_'
	}, strings.ToLower(id))
	if plain == id && len(id) <= most && !strings.HasPrefix(id, ".") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.TrimLeft(plain[:min(len(plain), most)], ".") + "~" + hex.EncodeToString(sum[:4])
}
