package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/export"
	"stopgap/internal/trace"
)

// errDifferent gives the exit code 4; the differences have been printed.
var errDifferent = errors.New("a recorded run plays otherwise")

func (a *app) traceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace COMMAND",
		Short: "Show, verify and replay recorded runs, leave them for another way, go on with killed ones",
		Long: `Work with journals, which "stopgap run --trace FILE" writes: every event of a
run, every request with its exact prompt, what the model streamed, and what the
tools gave. So a run can be played again without its server and its tools.`,
		Example: `  stopgap run --trace runs.trace "Who is the captain of the Grey Petrel?"
  stopgap trace show runs.trace
  stopgap trace replay runs.trace
  stopgap trace fork runs.trace --at 1 --model ollama:qwen3 --trace other.trace`,
		Args: noSuchCommandOf,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.traceShowCommand(), a.traceVerifyCommand(), a.traceReplayCommand(), a.traceForkCommand(), a.traceResumeCommand())
	return cmd
}

// traceFlags are those of all commands that read a journal.
type traceFlags struct {
	run  int // from 1; 0 for all, or for the one that the command is about
	json bool
}

func (f *traceFlags) add(p *pflag.FlagSet, run, json string) {
	p.Var(count{&f.run, 1}, "run", run)
	p.BoolVar(&f.json, "json", false, json)
}

// oneJournal wants the name of one file.
func oneJournal(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes one journal, not %d", cmd.Name(), len(args)), `"stopgap run --trace FILE" writes one`}
}

// readJournal reads a journal and chooses runs of it, as numbers from 0. What
// stands before a damaged line is given with the error.
func readJournal(path string, run int) ([]trace.Run, []int, error) {
	runs, err := trace.ReadFile(path)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, asFileReason(err))
	}
	var chosen []int
	for i := range runs {
		if run == 0 || run == i+1 {
			chosen = append(chosen, i)
		}
	}
	switch {
	case err != nil:
	case len(runs) == 0:
		err = &usageError{fmt.Errorf("%s has no runs", path), `"stopgap run --trace FILE" writes them`}
	case run > len(runs):
		err = &usageError{fmt.Errorf("%s has no run %d", path, run), fmt.Sprintf("it has %d %s", len(runs), plural(len(runs), "run"))}
	}
	return runs, chosen, err
}

// asFileReason leaves out what stands before it already.
func asFileReason(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return &usageError{failed.Err, `name a file that "stopgap run --trace FILE" has written`}
	}
	return err
}

// isTrace reports whether a journal is at fault, or what was asked of it.
func isTrace(err error) bool {
	return is[*trace.FormatError](err) || is[*trace.HeaderError](err) || is[*trace.RecordError](err) || is[*trace.ContinuesError](err) ||
		is[*trace.ForkError](err) || is[*trace.ToolError](err) || errors.Is(err, trace.ErrEnded) || errors.Is(err, trace.ErrCounter)
}

// traceHint is about journals.
func traceHint(err error) string {
	switch e, damaged := errors.AsType[*trace.FormatError](err); {
	case damaged && e.Foreign:
		return "\"stopgap run --trace FILE\" writes journals"
	case damaged:
		return "a journal is only appended to: what stands before the line is good, and \"stopgap trace show\" shows it"
	case is[*trace.HeaderError](err):
		return "play it with the version of stopgap that wrote it: \"stopgap trace show --events\" tells which"
	case is[*trace.ContinuesError](err):
		return "keep the runs of a conversation in one file, in their order"
	case is[*trace.ForkError](err):
		return "\"stopgap trace show\" shows the turns and their calls; --at 0 asks the question anew, with any model and format"
	case is[*trace.ToolError](err):
		return "call it from the folder where the run was made, with the same documents"
	case is[*export.Error](err):
		return "\"stopgap trace verify\" and \"stopgap trace replay\" tell more; the version of stopgap that wrote the journal exports it"
	case is[*nothingError](err):
		return nothingHint(err)
	case is[*trace.DivergedError](err):
		return "it was written by another version of stopgap; nothing was asked and nothing was written"
	case errors.Is(err, trace.ErrCounter):
		return "the program that made the run can go on with it: Deck.Resume and Deck.Fork take the function in Live.CountTokens"
	case errors.Is(err, trace.ErrEnded):
		return "\"stopgap trace fork\" leaves a run at one of its turns"
	}
	return ""
}
