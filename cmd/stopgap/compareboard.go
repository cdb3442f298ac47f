package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"stopgap/internal/batch"
	"stopgap/internal/compare"
)

// A compareBoard shows a comparison as a batch is shown: its configurations are
// one long batch, in whose middle the name of the next one is told.
type compareBoard struct {
	batchView
	json  bool
	quiet bool
}

// Event shows one event.
func (v *compareBoard) Event(ev batch.Event) error {
	if v.json {
		return v.batchView.Event(ev)
	}
	switch ev := ev.(type) {
	case compare.Began:
		return v.batchView.Event(batch.Began{Dir: ev.Dir, Items: ev.Items, Rollouts: ev.Rollouts, Done: ev.Done, Failed: ev.Failed})
	case compare.Turned:
		if !v.quiet {
			fmt.Fprintln(v, printable(fmt.Sprintf("stopgap: %s (%d of %d)", ev.Configuration, ev.Place, ev.Of)))
		}
		return nil
	case compare.Judging:
		if !v.quiet {
			fmt.Fprintln(v, printable(fmt.Sprintf("stopgap: %s judges %d %s", ev.Judge, ev.Answers, plural(ev.Answers, "answer"))))
		}
		return nil
	case compare.Ended, compare.Judged, batch.Began, batch.Ended:
		return nil // of the whole, not of its parts
	}
	return v.batchView.Event(ev)
}

// runComparison makes a comparison and tells what came of it.
func (a *app) runComparison(ctx context.Context, s *settings, c *compare.Comparison, f compareFlags, b *referee, board *compareBoard) error {
	if !board.quiet && !f.json || f.dryRun {
		fmt.Fprintln(board, printable(planWords(c)))
	}
	if f.dryRun {
		return comparisonError(c.Check())
	}
	if err := c.Open(); err != nil {
		return comparisonError(err)
	}
	defer c.Close()
	end, failed := follow(c.Run(ctx), board)
	if failed == nil && b != nil {
		failed = b.judge(ctx, c, board)
	}
	board.Close()
	if errors.As(failed, new(*batch.FolderError)) {
		return folderError(failed)
	}
	if is[*outputError](failed) {
		return failed
	}
	if err := a.drawComparison(ctx, s, c.Dir, f); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil && end.Missing > 0:
		a.note("left with %d of %d rollouts done; the same command goes on from there", end.Done, end.Done+end.Missing)
		return context.Canceled
	case ctx.Err() != nil && failed != nil:
		a.note("left while answers were judged; the same command goes on from there")
		return context.Canceled
	case failed != nil:
		return failed
	case end.Failed > 0:
		return &someFailed{end.Failed, end.Done}
	}
	return nil
}

// follow shows what happens in a comparison, and gives how it ended.
func follow(events iter.Seq2[batch.Event, error], board *compareBoard) (end compare.Ended, err error) {
	for ev, err := range events {
		if err != nil {
			return end, err
		}
		if ended, ok := ev.(compare.Ended); ok {
			end = ended
		}
		if err := board.Event(ev); err != nil {
			return end, err
		}
	}
	return end, nil
}

// planWords tell what a comparison is going to ask.
func planWords(c *compare.Comparison) string {
	items, n := len(c.Data.Items), len(c.Configurations)
	if c.First > 0 {
		items = min(items, c.First)
	}
	words := fmt.Sprintf("stopgap: %s: %d %s × %d %s × %d %s = %d runs", strings.Join(c.Names(), ", "), n, plural(n, "configuration"),
		items, plural(items, "question"), c.Rollouts, plural(c.Rollouts, "rollout"), n*items*c.Rollouts)
	if n == 1 {
		words += "; one alone is scored, not compared"
	}
	return words
}
