package trace

import (
	"context"
	"fmt"
	"slices"

	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A Fork leaves a run after some of its turns, for another way on.
type Fork struct {
	// At is how many turns are played, with their calls; zero asks the question
	// anew.
	At int
	// Model says that the model is another one, whose tokens are not the run's.
	Model bool
	// Format is another prompt format; nil for the same.
	Format *template.Format
	// Response, where it is not nil, is what the call Call of turn At gave. The
	// calls of a turn are counted from 1.
	Response *string
	Call     int
}

// A ForkError says that a run cannot be left as it was asked for.
type ForkError struct {
	Turn   int // that stands in the way; zero for none
	Reason string
}

func (e *ForkError) Error() string {
	if e.Turn == 0 {
		return e.Reason
	}
	return fmt.Sprintf("turn %d: %s", e.Turn, e.Reason)
}

// Fork gives the Runner and the Task of another way on: the first turns answer
// as they are recorded, the rest is live. The recorded turns are read by the
// run's format and, where another one is given, spelled by that one. A turn that
// does not read there as it did here gives a *ForkError before anything is
// asked; the other errors are those of Resume.
func (d *Deck) Fork(ctx context.Context, i int, f Fork, live Live) (*runner.Runner, runner.Task, error) {
	fail := func(err error) (*runner.Runner, runner.Task, error) { return nil, runner.Task{}, err }
	run := &d.runs[i]
	t, err := newTape(run)
	if err != nil {
		return fail(err)
	}
	t.whole()
	r, task, err := d.revive(ctx, i)
	if err != nil {
		return fail(err)
	}
	if err := f.check(t); err != nil {
		return fail(err)
	}
	if r.Tools, err = run.Header.equip(live); err != nil {
		return fail(err)
	}
	if r.CountTokens, err = live.counter(t); err != nil {
		return fail(err)
	}
	p := &player{tape: t, turns: f.At, live: live.Model, foreign: f.Model, spells: d.speller}
	if f.At == 0 {
		p.renders = nil
	}
	if f.Format != nil && f.Format.Name != run.Header.Format.Name {
		if p.spelled, err = f.translate(t, r); err != nil {
			return fail(err)
		}
		r.Format, p.foreign = f.Format, true
	}
	r.Model = p.model(abilitiesOf(live.Model))
	if r.Tools != nil {
		r.Tools = r.Tools.With(f.handler(p, r.Tools.Specs()))
	}
	return r, task, nil
}

// check refuses turns and calls that the run does not have.
func (f *Fork) check(t *tape) error {
	turns := t.turns
	if t.ended != nil && turns > 0 {
		turns-- // after its last turn a run is over
	}
	if f.At < 0 || f.At > turns {
		return &ForkError{Reason: fmt.Sprintf("the run can be left after 0 to %d turns, not %d", turns, f.At)}
	}
	if f.Response == nil {
		return nil
	}
	calls := t.calls(f.At)
	if f.Call < 1 || f.Call > len(calls) {
		return &ForkError{Turn: f.At, Reason: fmt.Sprintf("it has no call number %d (calls: %d)", f.Call, len(calls))}
	}
	return nil
}

// handler answers the calls of the turns that are played.
func (f *Fork) handler(p *player, specs []tools.Spec) tools.Handler {
	return func(_ context.Context, at int, call tools.Call, run func() tools.Result) tools.Result {
		turn := p.turn()
		here := place{Turn: turn, Call: at}
		if f.Response != nil && turn == f.At && at == f.Call-1 {
			return tools.Result{Status: tools.OK, Content: *f.Response}
		}
		if res, ok := p.result(here); ok && turn > 0 {
			return res
		}
		effects := slices.ContainsFunc(specs, func(s tools.Spec) bool { return s.Name == call.Name && s.SideEffects })
		if _, ran := p.running[here]; ran && effects && turn > 0 {
			return interrupted(call.Name)
		}
		return run()
	}
}

// turn is the one that is played, from 1, or 0 where it is live.
func (p *player) turn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked || p.next == 0 {
		return 0
	}
	return p.requests[p.next-1].Turn
}
