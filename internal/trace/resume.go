package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// ErrEnded says that a run has come to its end: there is nothing to go on with.
var ErrEnded = errors.New("the run has ended")

// A ToolError says that the tools are not those of the run.
type ToolError struct {
	Name   string
	Reason string
}

func (e *ToolError) Error() string { return fmt.Sprintf("tool %q: %s", e.Name, e.Reason) }

// A DivergedError says that a run that is gone on with does not play as it was
// recorded, before anything new was asked or written.
type DivergedError struct{ Difference Difference }

func (e *DivergedError) Error() string {
	return "the run does not play as it was recorded: " + e.Difference.String()
}

// A Live is what a run that goes on works with.
type Live struct {
	Model models.Model
	Tools []tools.Tool // with the specs of the run
	// Approve is asked before a tool with side effects runs, as in tools.Options;
	// nil approves of all.
	Approve func(context.Context, tools.Call) error
	Version string // of stopgap
	// CountTokens is that of the run's Runner, where it had one.
	CountTokens func(string) int
}

// Resume goes on with a run whose process was killed, in its journal, to which w
// is opened. What has been whole is played, event by event, and compared; then
// the model is asked again for the request that was under way. A tool that was
// under way runs again only where it has no side effects; else the model is told
// that nobody knows whether it did its work. Run i must be of this journal.
//
// The errors before the first event are ErrEnded, ErrCounter, *ToolError, *DivergedError and
// those of Replay.
func (d *Deck) Resume(ctx context.Context, w *Writer, i int, live Live) iter.Seq2[runner.Event, error] {
	return func(yield func(runner.Event, error) bool) {
		rec, r, task, err := d.resumption(ctx, w, i, live)
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c := rec.sink.(*continuation)
		c.cancel = cancel
		for ev, err := range rec.run(ctx, r, task) {
			if len(c.differences) > 0 {
				yield(nil, &DivergedError{c.differences[0]})
				return
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// resumption makes the parts of Resume.
func (d *Deck) resumption(ctx context.Context, w *Writer, i int, live Live) (*recorder, *runner.Runner, runner.Task, error) {
	fail := func(err error) (*recorder, *runner.Runner, runner.Task, error) { return nil, nil, runner.Task{}, err }
	run := &d.runs[i]
	t, err := newTape(run)
	switch {
	case err != nil:
		return fail(err)
	case run.Ended():
		return fail(ErrEnded)
	}
	from := t.whole()
	r, task, err := d.revive(ctx, i)
	if err != nil {
		return fail(err)
	}
	if r.Tools, err = run.Header.equip(live); err != nil {
		return fail(err)
	}
	if r.CountTokens, err = live.counter(t); err != nil {
		return fail(err)
	}
	p := &player{tape: t, turns: everyTurn, live: live.Model, spells: d.speller}
	r.Model = p.model(abilitiesOf(live.Model))
	c := &continuation{comparer: comparer{tape: t}, w: w, begin: revived{Run: run.Header.ID, From: from, Version: live.Version}}
	rec := &recorder{sink: c, now: w.now, spellers: &d.heard}
	rec.answer = func(_ context.Context, at place, call tools.Call) (tools.Result, bool) {
		if res, ok := p.result(at); ok {
			return res, true
		}
		if _, ran := t.running[at]; !ran || !rec.effects[call.Name] {
			return tools.Result{}, false
		}
		res := interrupted(call.Name)
		rec.give(newResult(at, call.Name, res, 0, false))
		return res, true
	}
	return rec, r, task, nil
}

// interrupted is what the model is told of a tool that was under way when its
// process was killed.
func interrupted(name string) tools.Result {
	return tools.Result{Status: tools.Interrupted, Content: fmt.Sprintf(
		"Error: the process ended while %s ran. Nobody knows whether it did its work. It was not run again.", name)}
}

// equip gives the set of the header's tools with those that do the work. One
// that is missing, or is another than it was, gives a *ToolError.
func (h *Header) equip(live Live) (*tools.Set, error) {
	for _, want := range h.Tools {
		found := false
		for _, l := range live.Tools {
			s := l.Spec()
			if s.Name != want.Name {
				continue
			}
			found = true
			if s.Description != want.Description || !sameSchema(s.Parameters, want.Parameters) || s.SideEffects != want.SideEffects {
				return nil, &ToolError{want.Name, "it is not described as it was"}
			}
		}
		if !found {
			return nil, &ToolError{want.Name, "it is not there"}
		}
	}
	return h.tools(live)
}

func sameSchema(a, b json.RawMessage) bool {
	compact := func(raw json.RawMessage) string {
		var out bytes.Buffer
		if json.Compact(&out, raw) != nil {
			return string(raw)
		}
		return out.String()
	}
	return compact(a) == compact(b)
}

// A continuation compares what is played with the tape, and writes what comes
// after it into the journal.
type continuation struct {
	mu sync.Mutex // tools that run at once give their results at once
	comparer
	w     *Writer
	begin revived
	begun bool
	// cancel ends the run where it is not played as it was: it cannot be gone on
	// with.
	cancel func()
}

// append implements sink.
func (c *continuation) append(kind string, v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	played := !c.through()
	if played {
		if err := c.comparer.append(kind, v); err != nil {
			return err
		}
	}
	switch {
	case len(c.differences) > 0:
		c.cancel()
		return &DivergedError{c.differences[0]}
	case played, !c.begun && c.tape.has(kind):
		return nil
	}
	return c.write(kind, v)
}

// write goes on with the run in the journal.
func (c *continuation) write(kind string, v any) error {
	if !c.begun {
		c.begun = true
		if err := c.w.section(c.begin.From+1, KindRevived, c.begin); err != nil {
			return err
		}
	}
	return c.w.append(kind, v)
}

func (c *continuation) sync() error {
	c.mu.Lock()
	begun := c.begun
	c.mu.Unlock()
	if !begun {
		return nil
	}
	return c.w.sync()
}
