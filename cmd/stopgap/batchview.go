package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"stopgap/internal/batch"
	"stopgap/internal/eval/match"
	"stopgap/runner"
)

// A batchView shows the events of a batch. What is written to it is told beside
// them, a line at a time.
type batchView interface {
	io.Writer
	Event(batch.Event) error
	Close()
}

// newBoard chooses how a batch is shown: as JSON, on a terminal, or in lines.
func (a *app) newBoard(s *settings, asJSON bool) batchView {
	screen := a.screen(a.stderr, s.color)
	switch {
	case asJSON:
		return batchJSON{a.stderr, a.stdout}
	case screen.cursor && !s.quiet:
		return newBatchBoard(a.stderr, screen)
	}
	return &batchLines{Writer: a.stderr, quiet: s.quiet}
}

// batchJSON prints the events for other programs; what a rollout does between
// its beginning and its end stands in its journal.
type batchJSON struct {
	io.Writer
	out io.Writer
}

// Event prints one event on one line.
func (v batchJSON) Event(ev batch.Event) error {
	if _, ok := ev.(batch.Moved); ok {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ev); err != nil {
		return fmt.Errorf("event %s: %w", ev.Kind(), err)
	}
	_, err := fmt.Fprintf(v.out, `{"event":%q,%s`, ev.Kind(), b.Bytes()[1:])
	return err
}

// Close does nothing.
func (batchJSON) Close() {}

// batchLines tells each rollout's end in a line.
type batchLines struct {
	io.Writer
	quiet bool
	done  int
	of    int
}

// Event tells one event, or nothing.
func (v *batchLines) Event(ev batch.Event) error {
	switch ev := ev.(type) {
	case batch.Began:
		v.done, v.of = ev.Done, ev.Rollouts
	case batch.Finished:
		v.done++
	}
	if v.quiet {
		return nil
	}
	if _, ok := ev.(batch.Finished); ok {
		fmt.Fprintf(v, "[%d/%d] ", v.done, v.of)
	}
	if words := batchWords(ev); words != "" {
		fmt.Fprintln(v, words)
	}
	return nil // standard error has nowhere to report to
}

// Close does nothing.
func (*batchLines) Close() {}

// batchWords tells an event in a line; empty for what is not worth one.
func batchWords(ev batch.Event) string {
	switch ev := ev.(type) {
	case batch.Began:
		words := fmt.Sprintf("stopgap: %d %s, %d %s, into %s", ev.Items, plural(ev.Items, "question"), ev.Rollouts, plural(ev.Rollouts, "rollout"), ev.Dir)
		if ev.Done > 0 {
			words += fmt.Sprintf("; %d done before", ev.Done)
		}
		if ev.Failed > 0 {
			words += fmt.Sprintf(", of which %d failed", ev.Failed)
		}
		if ev.Retrying > 0 {
			words += fmt.Sprintf("; %d failed before and are made again", ev.Retrying)
		}
		return printable(words)
	case batch.Finished:
		return finishedWords(&ev.Result)
	case batch.Returned:
		return printable(fmt.Sprintf("stopgap: %s is made again: %s", jobWords(ev.Job), ev.Error))
	case batch.Anew:
		return printable(fmt.Sprintf("stopgap: %s begins anew: its journal cannot be gone on with: %s", jobWords(ev.Job), ev.Reason))
	case batch.Down:
		if ev.GaveUp {
			return printable(fmt.Sprintf("stopgap: %s is given up: %s", ev.Server, ev.Error))
		}
		return printable(fmt.Sprintf("stopgap: %s gets no more rollouts until it answers: %s", ev.Server, ev.Error))
	case batch.Up:
		return printable(fmt.Sprintf("stopgap: %s answers again", ev.Server))
	}
	return ""
}

func jobWords(j batch.Job) string { return fmt.Sprintf("%s #%d", j.Item, j.Rollout) }

// finishedWords tells a result in a line.
func finishedWords(r *batch.Result) string {
	parts := []string{jobWords(r.Job)}
	if r.Failed() {
		return printable(parts[0] + " · failed: " + inOneLine(r.Error))
	}
	parts = append(parts, endingWords(r.Termination),
		fmt.Sprintf("%d %s, %d %s", r.Turns, plural(r.Turns, "turn"), r.Calls, plural(r.Calls, "call")), duration(r.Duration))
	words := strings.Join(parts, " · ")
	if r.Answer != "" {
		words += " · " + inOneLine(r.Answer)
	}
	return printable(words)
}

// inOneLine puts a text on one line, and not too much of it.
func inOneLine(s string) string {
	const most = 120 // characters
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}

// batchSummary prints how the rollouts ended, how right the answers are, and
// where they stand.
func (a *app) batchSummary(b *batch.Batch, end batch.Ended) error {
	items := map[string]*batch.Item{}
	for i := range b.Data.Items {
		items[b.Data.Items[i].ID] = &b.Data.Items[i]
	}
	endings := map[runner.Termination]int{}
	scored, exact, contained, f1 := 0, 0, 0, 0.0
	judged, right, strict := 0, 0, 0
	err := b.Results(func(r batch.Result) error {
		if !r.Failed() {
			endings[r.Termination]++
		}
		if s, ok := items[r.Item].Score(&r); ok {
			judged++
			if s.Right {
				right++
			}
			if s.Strict {
				strict++
			}
		}
		if want := items[r.Item].Answers; len(want) > 0 {
			scored++
			if match.Exact(r.Answer, want) {
				exact++
			}
			if match.Contains(r.Answer, want) {
				contained++
			}
			f1 += match.F1(r.Answer, want)
		}
		return nil
	})
	if err != nil {
		return err
	}
	parts := []string{fmt.Sprintf("%d of %d rollouts", end.Done, end.Done+end.Missing)}
	for _, t := range []runner.Termination{
		runner.TermAnswered, runner.TermAnsweredForced, runner.TermCalled, runner.TermNoAnswer, runner.TermTurnLimit, runner.TermTokenLimit,
		runner.TermDeadline, runner.TermLoop, runner.TermFormatError,
	} {
		if n := endings[t]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, endingWords(t)))
		}
	}
	if end.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", end.Failed))
	}
	if scored > 0 {
		parts = append(parts, fmt.Sprintf("exact match %d of %d (%.1f %%), contained %d of %d, F1 %.1f %%",
			exact, scored, 100*float64(exact)/float64(scored), contained, scored, 100*f1/float64(scored)))
	}
	if judged > 0 {
		parts = append(parts, fmt.Sprintf("calls right %d of %d (%.1f %%), as they were spelled %d", right, judged, 100*float64(right)/float64(judged), strict))
	}
	parts = append(parts, duration(end.Duration))
	_, err = fmt.Fprintf(a.stdout, "%s\nresults: %s\n", printable(strings.Join(parts, " · ")), printable(b.Dir+"/"+batch.ResultsName))
	return err
}
