package trace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// ErrKilled says that a run has no end: its process was killed, or is at work.
var ErrKilled = errors.New("the run has no end")

// A RefusedError says that a run never began.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "the run never began: " + e.Reason }

// A Rollout is a run from its beginning to its end: the ledger as the runner
// kept it, and what passed between it and the model.
type Rollout struct {
	Header *Header
	// Runner is what the run was made with, without a model. Its format is the
	// one that the turns are spelled in, also where a server chose that.
	Runner *runner.Runner
	// Tools are those that the model was told of.
	Tools []template.Tool
	// Before is the run that the question continues, a number of the deck; -1
	// for none.
	Before    int
	Outcome   runner.Outcome // with the ledger
	Turns     []Turn
	Exchanges []Exchange
	singles   map[string]int
}

// A Turn is one turn of the model and what came of it.
type Turn struct {
	// Texts are its spans. Joined they are what the ledger keeps of it.
	Texts   []runner.Text
	Read    template.Turn // as the format reads it; empty for a chat endpoint
	Stopped runner.Stopped
	Whole   bool // it has come to its end: there is a Stopped
	Called  []runner.Called
	// Returned are in the order of the turn's text. One without a call of its
	// index answers a problem in the place of a call.
	Returned []runner.Returned
	Notes    []string // of the runner, behind the results
}

// Text is what the ledger keeps of the turn.
func (t *Turn) Text() string {
	var b strings.Builder
	for _, s := range t.Texts {
		b.WriteString(s.Text)
	}
	return b.String()
}

// An Exchange is a request to the model and what it streamed.
type Exchange struct {
	Seq      int              // of the request's record
	Turn     int              // from 1
	Prompt   []models.Segment // all of it; nil for a chat endpoint
	Messages []models.Message // of a chat endpoint
	// Chunks are those of models.Stream; only a chat endpoint's have thoughts and
	// calls.
	Chunks []models.ChatChunk
}

// Rollout makes a run again from its journal, as Replay does, and gives all of
// it. The errors are ErrKilled, *RefusedError, *DivergedError where the run does
// not play as it was recorded, and those of Replay.
func (d *Deck) Rollout(ctx context.Context, i int) (*Rollout, error) {
	run := &d.runs[i]
	switch {
	case run.Refused() != "":
		return nil, &RefusedError{run.Refused()}
	case !run.Ended():
		return nil, ErrKilled
	}
	report, err := d.Replay(ctx, i)
	if err != nil {
		return nil, err
	}
	if len(report.Differences) > 0 {
		return nil, &DivergedError{report.Differences[0]}
	}
	t, err := newTape(run)
	if err != nil {
		return nil, err
	}
	r, _, err := run.Header.revive(d.format)
	if err != nil {
		return nil, err
	}
	out := &Rollout{
		Header: &run.Header, Runner: r, Tools: offered(r), Before: d.before(i), Outcome: report.Outcome, Exchanges: t.exchanges(), singles: map[string]int{},
	}
	for key, kept := range t.encodings {
		if last := kept[len(kept)-1]; key.special && len(last.IDs) == 1 {
			out.singles[key.sum] = last.IDs[0]
		}
	}
	if r.Format, err = t.settled(r.Format); err != nil {
		return nil, err
	}
	if r.Format.Opening == template.OpenOwn {
		r.Format = r.Format.WithCallsInThink(on(r.CallsInThink, r.Format.Think.Calls))
	}
	out.Turns, err = t.rolled(r, out.Tools)
	return out, err
}

// Single gives the one token that the model spells a text as, special tokens
// recognised, as far as the run asked for it.
func (r *Rollout) Single(text string) (id int, ok bool) {
	id, ok = r.singles[keyOf(text, true).sum]
	return id, ok
}

// before is the run that a run continues, or -1.
func (d *Deck) before(i int) int {
	h := &d.runs[i].Header
	for j := i - 1; j >= 0 && h.Continues != ""; j-- {
		if t, err := newTape(&d.runs[j]); err == nil && t.endsWith(h.Continues) {
			return j
		}
	}
	return -1
}

func on(s runner.Switch, format bool) bool { return s == runner.On || s == runner.AsFormat && format }

// exchanges are the requests with their whole prompts.
func (t *tape) exchanges() []Exchange {
	var out []Exchange
	var pieces []piece
	for _, x := range t.requests {
		pieces = slices.Concat(pieces[:min(x.Kept, len(pieces))], x.Append)
		e := Exchange{Seq: x.seq, Turn: x.Turn}
		for i := range pieces {
			if m := pieces[i].Message; m != nil {
				e.Messages = append(e.Messages, m.message())
			} else {
				e.Prompt = append(e.Prompt, models.Segment{Text: pieces[i].text(), Tokens: pieces[i].Tokens})
			}
		}
		if x.stream != nil {
			for i := range x.stream.Chunks {
				e.Chunks = append(e.Chunks, x.stream.Chunks[i].chatChunk())
			}
		}
		out = append(out, e)
	}
	return out
}

// rolled are the turns of a run, read as the runner read them.
func (t *tape) rolled(r *runner.Runner, offered []template.Tool) ([]Turn, error) {
	var out []Turn
	inThink := r.Format.Think.Opened
	for _, rec := range t.comparable {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return nil, err
		}
		if started, ok := ev.(runner.Started); ok && t.run.Header.Continues == "" && len(t.renders) > 0 {
			last := started.Prompt[len(started.Prompt)-1].Text
			open := r.Format.Think.Open
			inThink = open != "" && strings.HasSuffix(strings.TrimSpace(last), open)
		}
		if n := turnOf(ev); n > len(out) {
			if len(out) > 0 {
				inThink = out[len(out)-1].read(r, inThink, offered)
			}
			out = append(out, make([]Turn, n-len(out))...)
		}
		if len(out) > 0 {
			out[len(out)-1].take(ev)
		}
	}
	if len(out) > 0 {
		out[len(out)-1].read(r, inThink, offered)
	}
	return out, nil
}

// turnOf is the turn that an event begins or belongs to, zero for none.
func turnOf(ev runner.Event) int {
	switch ev := ev.(type) {
	case runner.Text:
		return ev.Turn
	case runner.Stopped:
		return ev.Turn
	}
	return 0
}

// take keeps what an event tells of the turn.
func (t *Turn) take(ev runner.Event) {
	switch ev := ev.(type) {
	case runner.Text:
		t.Texts = append(t.Texts, ev)
	case runner.Stopped:
		t.Stopped, t.Whole = ev, true
	case runner.Called:
		t.Called = append(t.Called, ev)
	case runner.Returned:
		t.Returned = append(t.Returned, ev)
	case runner.Nudged:
		if ev.Reason != runner.ThinkLimit { // that stands in the turn
			t.Notes = append(t.Notes, ev.Note)
		}
	}
}

// read parses the turn, and says whether the next one begins inside the
// thinking part.
func (t *Turn) read(r *runner.Runner, inThink bool, offered []template.Tool) bool {
	if r.Format.Opening == template.OpenChat {
		return false
	}
	t.Read = r.Format.Parse(t.Text(), template.Reading{
		InThink: inThink, Tools: offered, Strict: r.Strict, Ended: t.Stopped.Means == template.MeansCall,
		Cut: t.Stopped.Finish != "" && t.Stopped.Finish != models.FinishStop,
	})
	return r.Format.StartsInThink(template.Continuation{InThink: t.Read.InThink, Note: strings.Join(t.Notes, "")})
}
