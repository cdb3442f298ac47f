package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/stopping"
)

// errNothingFired gives the exit code 1; the verdicts have told the rest.
var errNothingFired = errors.New("no criterion fired")

// stopFlags are the flags of "stopgap stop" that are no settings.
type stopFlags struct {
	strip, nearest, all bool
	chunk               int
	explain, json       bool
}

func (a *app) stopCommand() *cobra.Command {
	s := newSettings()
	var f stopFlags
	cmd := &cobra.Command{
		Use:   "stop [FILE]",
		Short: "Say where stop criteria fire in a text",
		Long:  stopHelp(),
		Example: `  stopgap stop --stop-regex '<tool_call>.*?</tool_call>' answer.txt
  stopgap stop --stop 'Observation:' --stops criteria.yaml --chunk 1 < answer.txt
  stopgap stop --stop-regex '\bwait\b' --all --json answer.txt | jq .match_end
  stopgap stop --stop-regex 'Answer: \d+' --explain`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return &usageError{fmt.Errorf("stop takes one file, not %d", len(args)),
				"an expression goes with --stop-regex, a text with --stop"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.stop(ctx, s, &f, args)
		},
	}
	addFlags(cmd, s, groupStopping, groupOutput)
	hideFlags(cmd, "single-call", "trace")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.BoolVar(&f.strip, "strip", false, "cut off what --stop-regex matches")
		p.BoolVar(&f.nearest, "nearest", false, "let the match of --stop-regex begin as late as it can")
		p.BoolVar(&f.all, "all", false, "report every match; nothing ends the text, nothing is cut off")
		p.Var(count{&f.chunk, 1}, "chunk", "cut the text into chunks of N bytes, each one token (default 4 bytes, no tokens)")
		p.BoolVar(&f.explain, "explain", false, "say what the criteria mean; reads no text but a named one")
		p.BoolVar(&f.json, "json", false, "print one JSON object a criterion, or a match that ends nothing, a line")
	})
	a.completeFlags(cmd, s)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// stopHelp is the long help, with the keys of a file of criteria.
func stopHelp() string {
	var b strings.Builder
	b.WriteString(`Say where stop criteria fire in a text: FILE, or standard input where there is
none or it is "-". As grep is for files, this is for stop criteria.

Each criterion is tried alone: at which byte it fires, what is kept, cut off and
discarded then, how much is held back on the way, how it is checked and what
that costs. Then all are tried together. Bytes are counted from 0, so that
text[:57] ends at byte 57; (3:31) is the line and the column of the last
character of the match, which "^" marks; "~" marks what is kept of the match and
"-" what is cut off.

The text comes in chunks, as from a model. Where they are cut changes nothing
but how much is held back: --chunk shows it. A text does not tell its tokens, so
criteria that count them need --chunk; each chunk is one.

--stops names a YAML file, a list of criteria. Each has a name, one of literal,
regex, repetition, json, sentences, tokens and bytes, and what else it needs:

    - name: call
      regex: <tool_call>.*?</tool_call>
      scope: {open: <think>, close: </think>, outside: true}
    - name: loop
      repetition: {min: 4, max: 80, count: 6}

`)
	keys := criterionKeys(new(stopping.Criterion))
	keys.VisitAll(func(f *pflag.Flag) {
		for i, l := range wrap(f.Usage, 80-14, 0) {
			name := f.Name
			if i > 0 {
				name, l = "", strings.TrimSpace(l)
			}
			fmt.Fprintf(&b, "  %-11s %s\n", name, l)
		}
	})
	b.WriteString(`
Exit codes: 0 a criterion fired, 1 none did, 2 wrong usage, a wrong criterion, or
a text that cannot be read or checked, 130 interrupted.`)
	return b.String()
}

// stop tries the criteria of the settings on a text.
func (a *app) stop(ctx context.Context, s *settings, f *stopFlags, args []string) error {
	reads := !f.explain || len(args) > 0
	if err := f.check(s, reads); err != nil {
		return err
	}
	list, err := s.declaredCriteria()
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return &usageError{errors.New("there is no stop criterion"),
			"give one with --stop TEXT, --stop-regex REGEX or --stops FILE; an argument is the file with the text"}
	}
	v := &bench{app: a, screen: a.screen(a.stdout, s.color), json: f.json, quiet: s.quiet, explain: f.explain}
	for _, d := range list {
		f.change(&d)
		set, err := stopping.Compile(d.Criterion)
		if err != nil {
			return d.located(err, len(v.candidates))
		}
		v.candidates = append(v.candidates, &candidate{
			declared: d, trial: newTrial(set), plan: set.Plan()[0], warnings: set.Warnings(),
		})
	}
	if !reads {
		return v.verdicts(ctx)
	}
	if err := countable(list, f); err != nil {
		return err
	}
	text, err := a.openText(args, s)
	if err != nil {
		return err
	}
	defer text.Close()
	return v.try(ctx, text, f)
}

// check refuses flags that contradict each other.
func (f *stopFlags) check(s *settings, reads bool) error {
	for _, c := range []struct {
		wrong      bool
		flag, hint string
	}{
		{f.strip && len(s.stopRegex) == 0, "--strip is for --stop-regex", "what --stop matches is always cut off; a file says strip: true"},
		{f.nearest && len(s.stopRegex) == 0, "--nearest is for --stop-regex", "a file says captures: nearest"},
		{f.strip && f.all, "--strip contradicts --all", "with --all nothing ends the text, so nothing is cut off"},
		{f.chunk > 0 && !reads, "--chunk cuts a text, but --explain reads none", "name a FILE, or - for standard input"},
	} {
		if c.wrong {
			return &usageError{errors.New(c.flag), c.hint}
		}
	}
	return nil
}

// change makes a criterion what the flags want it to be.
func (f *stopFlags) change(d *declared) {
	if d.where == "" && d.Regex != "" {
		d.Strip = f.strip
		if f.nearest {
			d.Captures = stopping.Nearest
		}
	}
	if f.all {
		d.Action, d.Strip, d.StripGroup = stopping.Notify, false, ""
	}
}

// countable refuses to count tokens where there are none.
func countable(list []declared, f *stopFlags) error {
	for _, d := range list {
		if f.chunk == 0 && (d.Tokens > 0 || d.MinTokens > 0) {
			return &usageError{fmt.Errorf("criterion %q counts tokens, and a text does not tell them", d.Name),
				"--chunk N cuts the text into chunks of N bytes and counts each as a token"}
		}
	}
	return nil
}

// openText opens the file, or standard input.
func (a *app) openText(args []string, s *settings) (io.ReadCloser, error) {
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, textError(err)
		}
		return f, nil
	}
	if isTerminal(a.stdin) && !s.quiet {
		a.note("reading the text from the terminal; Ctrl-D ends it")
	}
	return io.NopCloser(a.stdin), nil
}

func textError(err error) error {
	return &usageError{fmt.Errorf("cannot read the text: %w", err), "stop takes one file, or the text on standard input"}
}

// try scans a text with all candidates, each alone and all together.
func (v *bench) try(ctx context.Context, text io.Reader, f *stopFlags) error {
	v.scan = &scan{input: newInput(text), chunk: usualChunk, report: v.reports}
	if f.chunk > 0 {
		v.scan.chunk, v.scan.tokens = f.chunk, 1
	}
	var all []stopping.Criterion
	ends := false
	for _, c := range v.candidates {
		v.scan.trials = append(v.scan.trials, c.trial)
		all = append(all, c.Criterion)
		ends = ends || c.Action != stopping.Notify
	}
	if len(all) > 1 && ends {
		set, err := stopping.Compile(all...)
		if err != nil {
			return err
		}
		v.together = newTrial(set)
		v.together.silent = true // each alone reports already
		v.scan.trials = append(v.scan.trials, v.together)
	}
	err := v.scan.run(ctx)
	switch {
	case ctx.Err() != nil:
		if !v.json && v.scan.input.total() > 0 {
			v.app.note("interrupted: this is of the first %d bytes", v.scan.input.total())
			_ = v.verdicts(context.WithoutCancel(ctx)) // whoever interrupts does not wait for it
		}
		return ctx.Err()
	case err != nil && v.app.stdout.err != nil:
		return err
	case err != nil:
		return textError(err)
	}
	if err := v.verdicts(ctx); err != nil {
		return err
	}
	return v.ending()
}

// ending is nil where a criterion fired and none failed.
func (v *bench) ending() error {
	fired := false
	for _, c := range v.candidates {
		if c.trial.err != nil {
			return c.trial.err
		}
		fired = fired || c.trial.stop != nil || c.trial.reports > 0
	}
	if !fired {
		return errNothingFired
	}
	return nil
}
