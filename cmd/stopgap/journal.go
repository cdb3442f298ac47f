package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

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
	header trace.Header
	failed bool
}

// openJournal opens the file of --trace. An existing file is continued.
func (a *app) openJournal(s *settings, flags *pflag.FlagSet) (*journal, error) {
	if s.trace == "" {
		return nil, nil
	}
	w, err := trace.Open(s.trace)
	if err != nil {
		return nil, &usageError{fmt.Errorf("cannot write the trace: %w", err), "--trace takes a file that you may write"}
	}
	h := trace.Header{
		Version: readVersion().Version, Format: s.format, FormatSHA256: formatHash(s.format), Settings: s.given(flags),
	}
	return &journal{app: a, path: s.trace, w: w, header: h}, nil
}

// formatHash identifies the text of a format.
func formatHash(name string) string {
	var src []byte
	var err error
	if slices.Contains(template.Names(), name) {
		src, err = template.Shipped(name)
	} else {
		src, err = os.ReadFile(name)
	}
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
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

// begin starts the record of a run.
func (j *journal) begin(model, server string) {
	if j == nil {
		return
	}
	j.header.Model, j.header.Server = masked(model), server
	j.check(j.w.Begin(j.header))
}

func (j *journal) event(ev runner.Event) {
	if j != nil && !j.failed {
		j.check(j.w.Write(ev))
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
