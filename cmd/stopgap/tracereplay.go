package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/trace"
)

func (a *app) traceVerifyCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Check that a journal is whole",
		Long: `Check the frames of a journal, that is the length and the checksum of each line,
the numbers of the records, and for each run that every record can be read, that
each prompt is the one that its hash was made of, and that it begins with the
prompt before it, byte for byte and token for token.

A last line that was cut off, as a crash leaves it, is told and is no damage.

Exit codes: 0 it is whole, 1 it is not, 2 it is no journal.`,
		Example: "  stopgap trace verify runs.trace\n  stopgap trace verify runs.trace --json | jq .findings",
		Args:    oneJournal,
		RunE:    func(_ *cobra.Command, args []string) error { return a.verifyJournal(args[0], f) },
	}
	ownFlags(cmd, func(p *pflag.FlagSet) {
		f.add(p, "only this run; they are numbered from 1", "print one JSON object a run")
	})
	return cmd
}

// A verdict of verify, one line of --json.
type verified struct {
	Run      int             `json:"run"`
	Records  int             `json:"records"`
	Ended    bool            `json:"ended"`
	Torn     bool            `json:"torn,omitempty"`
	Revived  int             `json:"revived,omitempty"`
	Findings []trace.Finding `json:"findings"`
}

func (a *app) verifyJournal(path string, f traceFlags) error {
	runs, chosen, damage := readJournal(path, f.run)
	if e, ok := errors.AsType[*trace.FormatError](damage); damage != nil && (!ok || e.Foreign) {
		return damage
	}
	deck, whole := trace.NewDeck(runs), damage == nil
	for _, i := range chosen {
		v := verified{i + 1, len(runs[i].Records), runs[i].Ended(), runs[i].Torn, runs[i].Revived, deck.Verify(i)}
		whole = whole && len(v.Findings) == 0
		if f.json {
			if err := a.printJSON(v); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(a.stdout, v.words()); err != nil {
			return err
		}
		for _, found := range v.Findings {
			if _, err := fmt.Fprintln(a.stdout, "  "+printable(found.String())); err != nil {
				return err
			}
		}
	}
	if damage != nil {
		a.explain(damage)
	}
	if !whole {
		return errFindings
	}
	return nil
}

func (v verified) words() string {
	words := fmt.Sprintf("run %d: %d %s", v.Run, v.Records, plural(v.Records, "record"))
	if v.Revived > 0 {
		words += fmt.Sprintf(", killed and gone on with %d %s", v.Revived, plural(v.Revived, "time"))
	}
	switch {
	case len(v.Findings) > 0:
		return words + ", not whole:"
	case v.Torn:
		return words + ", cut off in the middle of one"
	case !v.Ended:
		return words + ", without an end"
	}
	return words + ", whole"
}

func (a *app) traceReplayCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use: "replay FILE", Short: "Make recorded runs again, without server and tools, and compare",
		Long: `Make the runs of a journal again through the real loop. The model and the tools
answer as they are recorded to have answered; nothing is sent anywhere. Every
event, every request with its whole prompt, and the ledger at the end are
compared with the recorded ones. Only durations that were measured are not: of
the run, of tools, and of halts.

A run that was killed is played as far as it is whole.

Exit codes: 0 identical, 4 different, 2 it cannot be played.`,
		Example: "  stopgap trace replay runs.trace\n  stopgap trace replay runs.trace --run 2 --json | jq .differences",
		Args:    oneJournal,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.replayJournal(cmd, args[0], f) },
	}
	ownFlags(cmd, func(p *pflag.FlagSet) {
		f.add(p, "only this run; they are numbered from 1", "print one JSON object a run")
	})
	return cmd
}

// A replayed run, one line of --json.
type replayed struct {
	Run int `json:"run"`
	*trace.Report
}

func (a *app) replayJournal(cmd *cobra.Command, path string, f traceFlags) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	runs, chosen, damage := readJournal(path, f.run)
	deck := trace.NewDeck(runs)
	var failed error
	different := false
	for _, i := range chosen {
		report, err := deck.Replay(ctx, i)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("run %d: %w", i+1, err))
			continue
		}
		different = different || len(report.Differences) > 0
		if err := a.printReport(i, report, f.json); err != nil {
			return err
		}
	}
	switch {
	case damage != nil:
		return errors.Join(failed, damage)
	case failed != nil:
		return failed
	case different:
		return errDifferent
	}
	return nil
}

func (a *app) printReport(i int, r *trace.Report, asJSON bool) error {
	if asJSON {
		return a.printJSON(replayed{i + 1, r})
	}
	words := fmt.Sprintf("run %d: %d %s, ", i+1, r.Compared, plural(r.Compared, "record"))
	if len(r.Differences) == 0 {
		words += "identical"
	} else {
		words += fmt.Sprintf("%d %s:", len(r.Differences), plural(len(r.Differences), "difference"))
	}
	if r.Cut {
		words += " as far as it goes; it was killed"
	}
	if _, err := fmt.Fprintln(a.stdout, words); err != nil {
		return err
	}
	for _, d := range r.Differences {
		if _, err := fmt.Fprintln(a.stdout, "  "+printable(d.String())); err != nil {
			return err
		}
	}
	return nil
}
