package trace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A Report is what became of a run that was played again.
type Report struct {
	// Compared counts the records that the playing gave again.
	Compared    int          `json:"compared"`
	Differences []Difference `json:"differences"`
	// Cut says that the run was killed: it was played as far as it is whole.
	Cut bool `json:"cut,omitempty"`
	// Outcome is that of the playing; empty where the run was cut off.
	Outcome runner.Outcome `json:"-"`
}

// A ContinuesError says that a run continues another one that is not there.
type ContinuesError struct{ Run string }

func (e *ContinuesError) Error() string {
	return "the run continues a conversation whose earlier part is not in the journal"
}

// A Deck plays the runs of a journal. A question that continues a conversation
// needs the runs before it, which are played once.
type Deck struct {
	runs     []Run
	reports  map[int]*Report
	formats  map[Format]*template.Format
	spellers []deckSpeller
	heard    spellers // of those, as recorders hand them on
}

// NewDeck takes the runs of one journal, in their order.
func NewDeck(runs []Run) *Deck {
	return &Deck{runs: runs, reports: map[int]*Report{}, formats: map[Format]*template.Format{}}
}

// format gives a format of the deck. Most runs have the same.
func (d *Deck) format(f *Format) (*template.Format, error) {
	if compiled := d.formats[*f]; compiled != nil {
		return compiled, nil
	}
	compiled, err := f.compile()
	if err == nil {
		d.formats[*f] = compiled
	}
	return compiled, err
}

// Replay makes a run again through the real runner, without its server and its
// tools: both answer as they are recorded to have answered. It compares every
// event, every request with its whole prompt, and the ledger at the end. Only
// measured durations are not compared. The errors are *HeaderError, *RecordError,
// *ContinuesError, and the context's.
func (d *Deck) Replay(ctx context.Context, i int) (*Report, error) {
	if r := d.reports[i]; r != nil {
		return r, nil
	}
	t, err := newTape(&d.runs[i])
	if err != nil {
		return nil, err
	}
	t.whole()
	r, task, err := d.revive(ctx, i)
	if err != nil {
		return nil, err
	}
	p := &player{tape: t, turns: everyTurn, spells: d.speller}
	r.Model = p.model(t.abilities(r.Format.Opening == template.OpenChat && d.runs[i].Refused() == ""))
	if d.runs[i].Header.Counts {
		r.CountTokens = t.count(nil)
	}
	outer, cancel := p.clock(ctx, r)
	defer cancel()
	c := &comparer{tape: t, last: p.last}
	rec := &recorder{sink: c, now: time.Now, answer: p.answer, spellers: &d.heard}
	report := &Report{Cut: !d.runs[i].Ended(), Differences: []Difference{}}
	for ev, err := range rec.run(outer, r, task) {
		if ended, ok := ev.(runner.Ended); ok {
			report.Outcome = ended.Outcome
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.lost || report.Cut && c.through() {
			break
		}
		if err == nil || report.Outcome.Termination != "" {
			continue
		}
		refused := d.runs[i].Refused()
		if refused == "" {
			return nil, err
		}
		if err.Error() != refused {
			c.part(Difference{Seq: 1, Kind: kindFailed, Field: "error", Recorded: refused, Played: err.Error()})
		}
	}
	if !c.lost && !c.through() {
		next := t.comparable[c.at]
		c.part(Difference{Seq: next.Seq, Kind: next.Kind, Recorded: next.Kind, Played: "nothing"})
	}
	report.Compared, report.Differences = c.at, append(report.Differences, c.differences...)
	d.reports[i] = report
	return report, nil
}

// everyTurn plays a tape to its end.
const everyTurn = int(^uint(0) >> 1)

// revive gives the Runner and the Task of a run, with the ledger that it
// continues.
func (d *Deck) revive(ctx context.Context, i int) (*runner.Runner, runner.Task, error) {
	h := &d.runs[i].Header
	r, task, err := h.revive(d.format)
	if err != nil || h.Continues == "" {
		return r, task, err
	}
	j := d.before(i)
	if j < 0 {
		return nil, task, &ContinuesError{h.ID}
	}
	report, err := d.Replay(ctx, j)
	if err != nil {
		return nil, task, fmt.Errorf("the run that it continues: %w", err)
	}
	if task.Ledger = report.Outcome.Ledger; task.Ledger == nil || Ledger(task.Ledger) != h.Continues {
		return nil, task, &ContinuesError{h.ID}
	}
	return r, task, nil
}

// answer is what a tool gave, or that nothing is known of it.
func (p *player) answer(_ context.Context, at place, _ tools.Call) (tools.Result, bool) {
	r, ok := p.result(at)
	if !ok {
		r = tools.Result{Status: tools.Cancelled, Content: errOver.Error()}
	}
	return r, true
}

// A passedDeadline is a context that was cancelled in place of a deadline.
type passedDeadline struct{ context.Context }

// Err implements context.Context.
func (c passedDeadline) Err() error {
	if errors.Is(c.Context.Err(), context.Canceled) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// clock gives the context of a playing, and the Runner a time limit that no
// clock ends. p.stop ends the one that ended the recorded run.
func (p *player) clock(ctx context.Context, r *runner.Runner) (context.Context, context.CancelFunc) {
	outer, end := context.WithCancelCause(ctx)
	stop := func() { end(nil) }
	if p.ended != nil && p.ended.Termination == runner.TermHandedOver {
		stop = func() { end(runner.ErrHandedOver) }
	}
	p.stop = stop
	r.WithTimeout = func(parent context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
		return context.WithCancel(parent)
	}
	if p.ended == nil || p.ended.Termination != runner.TermDeadline {
		return outer, stop
	}
	if p.ended.Error != "" {
		return passedDeadline{outer}, stop
	}
	r.WithTimeout = func(parent context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
		limited, stop := context.WithCancel(parent)
		p.stop = stop
		return limited, stop
	}
	return outer, stop
}

// last is called before the recorded run's end: a context that ended between
// two steps, where neither the model nor a tool saw it, ends here.
func (p *player) last() {
	if p.ended == nil {
		return
	}
	switch p.ended.Termination {
	case runner.TermCancelled, runner.TermDeadline, runner.TermHandedOver:
		p.stop()
	}
}
