package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/spf13/pflag"

	"stopgap/internal/config"
	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
)

// A journal is the trace of a command. A nil journal keeps none. When writing
// fails the run goes on, and the fault is told once: an answer is worth more
// than its record.
type journal struct {
	app    *app
	path   string
	w      *trace.Writer
	about  trace.About
	failed bool
}

// openJournal opens the file of --trace. An existing file is continued.
func (a *app) openJournal(s *settings, flags *pflag.FlagSet) (*journal, error) {
	if s.trace == "" {
		return nil, nil
	}
	w, err := a.openTrace(s.trace)
	if err != nil {
		return nil, err
	}
	about := trace.About{Version: readVersion().Version, Format: s.format, Text: formatText(s.format), Settings: s.given(flags)}
	return &journal{app: a, path: s.trace, w: w, about: about}, nil
}

// openTrace opens a journal to append to it.
func (a *app) openTrace(path string) (*trace.Writer, error) {
	w, err := trace.Open(path)
	switch {
	case errors.Is(err, trace.ErrBusy):
		return nil, &usageError{fmt.Errorf("cannot write the trace: %w", err), "wait until it has ended, or take another file: one process writes at a time"}
	case err != nil:
		return nil, &usageError{fmt.Errorf("cannot write the trace: %w", err), "--trace takes a file that you may write"}
	}
	return w, nil
}

// formatText is the text of a format's file.
func formatText(name string) []byte {
	src, err := template.Shipped(name)
	if err != nil {
		src, _ = os.ReadFile(name) // it has been read before
	}
	return src
}

// given are the settings that somebody chose, as text.
func (s *settings) given(flags *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	for name, origin := range s.origins {
		if f := flags.Lookup(name); f != nil && origin.Place != config.Default {
			out[name] = masked(f.Value.String())
		}
	}
	return out
}

// run makes the run of a kit, and keeps it.
func (j *journal) run(ctx context.Context, k *kit, task runner.Task) iter.Seq2[runner.Event, error] {
	if j == nil {
		return k.runner.Run(ctx, task)
	}
	j.about.Model, j.about.Server = masked(k.ref), k.info.Server
	return j.watch(j.w.Run(ctx, j.about, k.runner, task))
}

// watch tells when events can no longer be kept.
func (j *journal) watch(events iter.Seq2[runner.Event, error]) iter.Seq2[runner.Event, error] {
	return func(yield func(runner.Event, error) bool) {
		for ev, err := range events {
			j.check(j.w.Err())
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (j *journal) check(err error) {
	if err != nil && !j.failed {
		j.failed = true
		j.app.note("the trace %s is not complete: %v", j.path, err)
	}
}

// Close puts the journal on the disk.
func (j *journal) Close() {
	if j != nil {
		j.check(j.w.Close())
	}
}

// note tells something beside the result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, "stopgap: "+printable(fmt.Sprintf(format, args...)))
}
