package compare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"stopgap/internal/eval/cite"
	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// facts are what a journal tells of a run beside its outcome.
type facts struct {
	attempts int // calls, with those that could not be read
	strict   int // calls that are spelled as the format asks and fit
	valid    int // the same after repairs
	problems map[template.ProblemKind]int
	seen     []cite.Document
	calls    map[place]called
	faulty   map[int]bool // turns with a call that does not fit
	results  []string
}

// A place is that of a call in its run.
type place struct{ turn, index int }

// A called is a call that was read.
type called struct {
	repaired bool
	status   tools.Status // empty where nobody makes calls, see runner.Runner.CallsEnd
}

// errNoRun says that a journal has no run with an end.
var errNoRun = errors.New("it has no run that ended")

// lastRun gives the run of a journal that counts. A rollout that was made again has
// several.
func lastRun(file string) ([]trace.Run, int, error) {
	runs, err := trace.ReadFile(file)
	if err != nil {
		return nil, 0, pathless(err)
	}
	i := trace.Last(runs)
	if i < 0 || !runs[i].Ended() {
		return nil, 0, errNoRun
	}
	return runs, i, nil
}

// readFacts reads a journal.
func readFacts(file string) (*facts, error) {
	runs, at, err := lastRun(file)
	if err != nil {
		return nil, err
	}
	f := &facts{problems: map[template.ProblemKind]int{}, calls: map[place]called{}, faulty: map[int]bool{}}
	for _, rec := range runs[at].Records {
		if rec.Kind == (runner.Text{}).Kind() { // most of them
			continue
		}
		ev, err := rec.RunnerEvent()
		if err != nil {
			return nil, err
		}
		f.take(ev)
	}
	f.attempts += len(f.calls)
	for at, c := range f.calls {
		if c.status == tools.UnknownTool || c.status == tools.BadArguments || c.status == "" && f.faulty[at.turn] {
			continue
		}
		f.valid++
		if !c.repaired {
			f.strict++
		}
	}
	f.seen, f.results = cite.Seen(f.results), nil
	return f, nil
}

// take takes what an event tells.
func (f *facts) take(ev runner.Event) {
	switch ev := ev.(type) {
	case runner.Stopped:
		for _, p := range ev.Problems {
			f.problems[p.Kind]++
			if slices.Contains(unread, p.Kind) {
				f.attempts++
			}
			if p.Kind == template.UnknownTool || p.Kind == template.BadArguments {
				f.faulty[ev.Turn] = true
			}
		}
	case runner.Called:
		f.calls[place{ev.Turn, ev.Index}] = called{repaired: len(ev.Repairs) > 0}
	case runner.Returned:
		f.results = append(f.results, ev.Content)
		if c, ok := f.calls[place{ev.Turn, ev.Index}]; ok {
			c.status = ev.Status
			f.calls[place{ev.Turn, ev.Index}] = c
		}
	}
}

// unread are the problems that stand in the place of a call.
var unread = []template.ProblemKind{template.UnclosedCall, template.BadJSON, template.MissingName}

// A Segment is a piece of a run's text and who wrote it.
type Segment struct {
	// Source is template, user, tool, model or runner.
	Source template.Source `json:"source"`
	Text   string          `json:"text"`
	// Cut is how many bytes were left out of the text, at Text[At:].
	Cut int `json:"cut,omitempty"`
	At  int `json:"at,omitempty"`
}

// Segments gives the text of a run of a comparison, from the beginning of the
// prompt to the last word of the model: the ledger, as the run is made again
// from its journal. Texts of tools and users are as they were, before reserved
// strings in them were escaped. A text of more than most bytes is cut in its
// middle; zero means that none is.
//
// The error says why the journal cannot be played.
func Segments(ctx context.Context, dir string, r *Run, most int) ([]Segment, error) {
	runs, at, err := lastRun(filepath.Join(dir, filepath.FromSlash(r.Journal)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Journal, err)
	}
	report, err := trace.NewDeck(runs).Replay(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Journal, err)
	}
	if len(report.Differences) > 0 {
		return nil, fmt.Errorf("%s: %w", r.Journal, &trace.DivergedError{Difference: report.Differences[0]})
	}
	if report.Outcome.Ledger == nil {
		return nil, nil
	}
	var out []Segment
	for _, s := range report.Outcome.Ledger.Segments() {
		text := s.Text
		if s.Original != "" {
			text = s.Original
		}
		if n := len(out); n > 0 && out[n-1].Source == s.Source {
			out[n-1].Text += text
			continue
		}
		out = append(out, Segment{Source: s.Source, Text: text})
	}
	for i := range out {
		out[i].shorten(most)
	}
	return out, nil
}

// shorten leaves out the middle of a text that is too long, between characters.
func (s *Segment) shorten(most int) {
	if most <= 0 || len(s.Text) <= most {
		return
	}
	head, tail := most/2, len(s.Text)-(most-most/2)
	for head > 0 && !utf8.RuneStart(s.Text[head]) {
		head--
	}
	for tail < len(s.Text) && !utf8.RuneStart(s.Text[tail]) {
		tail++
	}
	s.Cut, s.At = tail-head, head
	s.Text = s.Text[:head] + s.Text[tail:]
}
