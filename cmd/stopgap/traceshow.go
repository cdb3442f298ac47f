package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/trace"
	"stopgap/runner"
)

func (a *app) traceShowCommand() *cobra.Command {
	s := newSettings()
	var f traceFlags
	var prompt, events bool
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Show the runs of a journal",
		Long: `Show the runs of a journal: the question, turn by turn what the model wrote,
called and was told, how many tokens each turn read and wrote, and how it ended.`,
		Example: `  stopgap trace show runs.trace
  stopgap trace show runs.trace --run 2 --prompt > prompt.txt
  stopgap trace show runs.trace --events | jq 'select(.event == "request")'`,
		Args: oneJournal,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			if prompt && (events || f.json) || events && f.json {
				return &usageError{errors.New("--prompt, --events and --json print different things"), "use one of them"}
			}
			runs, chosen, err := readJournal(args[0], f.run)
			if prompt && len(chosen) > 1 {
				return &usageError{fmt.Errorf("%s has %d runs, and --prompt prints one", args[0], len(runs)), "choose with --run N"}
			}
			deck := trace.NewDeck(runs)
			for _, i := range chosen {
				var failed error
				switch {
				case prompt:
					failed = a.showPrompt(deck, i)
				case events:
					failed = a.showEvents(&runs[i])
				case f.json:
					failed = a.showSummary(&runs[i], i)
				default:
					failed = a.showTurns(s, &runs[i], i)
				}
				if failed != nil {
					return failed
				}
			}
			return err
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace", "quiet")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		f.add(p, "only this run; they are numbered from 1", "print one JSON object a run, with its header and its outcome")
		p.BoolVar(&prompt, "prompt", false, "print the exact text of the run's last prompt, and nothing else")
		p.BoolVar(&events, "events", false, "print the records as JSON lines, as they stand in the file")
	})
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) showPrompt(deck *trace.Deck, i int) error {
	text, err := deck.Prompt(i)
	if err != nil {
		return err
	}
	if isTerminal(a.stdout) {
		text = printable(text)
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}

func (a *app) showEvents(run *trace.Run) error {
	for _, rec := range run.Records {
		if _, err := a.stdout.Write(append(rec.Event, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// A runSummary is one line of --json.
type runSummary struct {
	Run     int             `json:"run"` // from 1
	Time    time.Time       `json:"time,omitzero"`
	Header  trace.Header    `json:"header"`
	Records int             `json:"records"`
	Ended   bool            `json:"ended"`
	Torn    bool            `json:"torn,omitempty"`
	Revived int             `json:"revived,omitempty"`
	Outcome *runner.Outcome `json:"outcome,omitempty"`
}

func (a *app) showSummary(run *trace.Run, i int) error {
	out := runSummary{Run: i + 1, Header: run.Header, Records: len(run.Records), Ended: run.Ended(), Torn: run.Torn, Revived: run.Revived}
	for n, rec := range run.Records {
		if n == 0 {
			out.Time = rec.Time
		}
		ev, err := rec.RunnerEvent()
		if err != nil {
			return err
		}
		if ended, ok := ev.(runner.Ended); ok {
			out.Outcome = &ended.Outcome
		}
	}
	return a.printJSON(out)
}

// showTurns shows a run as it was seen, with a line before each turn.
func (a *app) showTurns(s *settings, run *trace.Run, i int) error {
	screen := a.screen(a.stdout, s.color)
	v := &view{out: a.stdout, err: a.stdout, screen: screen, terminal: isTerminal(a.stdout)}
	events := make([]runner.Event, 0, len(run.Records))
	for _, rec := range run.Records {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return err
		}
		events = append(events, ev) // nil for what is no event
	}
	if i > 0 {
		v.line("")
	}
	v.line(screen.paint(bold, runTitle(run, i)))
	v.line(screen.paint(green, "? "+printable(run.Header.Task.Question)))
	turn := 0
	for n, ev := range events {
		if text, ok := ev.(runner.Text); ok && text.Turn != turn {
			turn = text.Turn
			v.line(screen.paint(dim, turnTitle(turn, events[n:])))
		}
		if run.Records[n].Kind == trace.KindRevived {
			v.line(screen.paint(yellow, "· the process was killed here; the run was gone on with"))
		}
		if _, waiting := ev.(runner.Waiting); ev == nil || waiting {
			continue
		}
		if err := v.Event(ev); err != nil {
			return err
		}
	}
	if words := escapedWords(events); words != "" {
		v.line(screen.paint(dim, words))
	}
	if why := run.Refused(); why != "" {
		v.line(screen.paint(yellow, "· it never began: "+printable(why)))
	}
	if !run.Ended() {
		v.aside()
		if err := v.endBlock(); err != nil {
			return err
		}
		v.line(screen.paint(yellow, "· it has no end: the process was killed, or still runs"))
	}
	return nil
}

// runTitle is the line above a run.
func runTitle(run *trace.Run, i int) string {
	h := run.Header
	parts := []string{fmt.Sprintf("run %d", i+1)}
	if len(run.Records) > 0 {
		parts = append(parts, run.Records[0].Time.Format("2006-01-02 15:04:05"))
	}
	parts = append(parts, h.Model, "format "+h.Format.Name)
	if h.Continues != "" {
		parts = append(parts, "continues a conversation")
	}
	if h.Forked != nil {
		parts = append(parts, fmt.Sprintf("left another run after %d %s", h.Forked.At, plural(h.Forked.At, "turn")))
	}
	return printable(strings.Join(parts, " · "))
}

// turnTitle is the line above a turn, with the counts of the event that ends it.
func turnTitle(turn int, events []runner.Event) string {
	for _, ev := range events {
		stopped, ok := ev.(runner.Stopped)
		if !ok {
			continue
		}
		words := tokenWords(runner.Outcome{Usage: stopped.Usage, Pieces: stopped.Pieces})
		if words == "" {
			break
		}
		if stopped.Requests > 1 {
			words += fmt.Sprintf(", %d requests", stopped.Requests)
		}
		return fmt.Sprintf("turn %d · %s", turn, words)
	}
	return fmt.Sprintf("turn %d", turn)
}

// escapedWords tells of text that was structure to the model, and was escaped.
func escapedWords(events []runner.Event) string {
	escaped := 0
	for _, ev := range events {
		if started, ok := ev.(runner.Started); ok {
			for _, seg := range started.Prompt {
				if seg.Original != "" {
					escaped++
				}
			}
		}
	}
	if escaped == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s of the prompt had structure in it, which was escaped", escaped, plural(escaped, "segment"))
}
