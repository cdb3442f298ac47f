package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/runner"
	"stopgap/stopping"
)

func (a *app) runCommand() *cobra.Command {
	s := newSettings()
	var asJSON, showPrompt bool
	cmd := &cobra.Command{
		Use:   "run [QUESTION]",
		Short: "Ask a question",
		Long: `Ask a question. It is the argument, or standard input where there is none;
in a terminal without either, a conversation begins (Ctrl-C ends an answer,
Ctrl-D leaves). Where no server is found, a small built-in model answers; it
searches documents that come along unless --corpus names others.

The answer goes to standard output, everything else to standard error. Ctrl-C
ends the generation at the server and still tells what is known; a second one
ends the command at once.

Exit codes: 0 answered, 1 no answer, 2 wrong usage, 3 the server, 130 interrupted.`,
		Example: `  stopgap run
  stopgap run "What does the contract say about notice?" --corpus ~/contracts
  stopgap run --model ollama:qwen3:8b "Why is the sky blue?"
  git diff | stopgap run --system "Review this change." --quiet
  stopgap run "…" --json --trace runs.trace | jq .event`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.answer(cmd, s, args, asJSON, showPrompt)
		},
	}
	addFlags(cmd, s, groups[:len(groups)-1]...)
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print the events as JSON lines, and nothing else, on standard output")
		f.BoolVar(&s.yes, "yes", false, "let tools change things without asking first")
		f.BoolVar(&showPrompt, "show-prompt", false, "print the prompt on standard error first")
	})
	a.completeFlags(cmd, s)
	return cmd
}

// answer answers one question, or holds a conversation.
func (a *app) answer(cmd *cobra.Command, s *settings, args []string, asJSON, showPrompt bool) error {
	talk := len(args) == 0 && isTerminal(a.stdin)
	var err error
	question := ""
	if !talk {
		if question, err = a.question(args, s); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	k, err := a.prepare(ctx, s, true)
	if err != nil {
		return err
	}
	defer k.Close()
	j, err := a.openJournal(s, cmd.Flags())
	if err != nil {
		return err
	}
	defer j.Close()
	if err := a.connect(ctx, s, k); err != nil {
		return err
	}
	e := &exchange{app: a, kit: k, journal: j}
	if showPrompt {
		e.prompt = func(segments []runner.Segment) { a.printSegments(a.stderr, a.screen(a.stderr, s.color), segments) }
	}
	if asJSON {
		e.view = jsonView{a.stdout}
	} else {
		v := a.newView(s)
		e.view, k.approver.spinner = v, v.spinner
	}
	defer e.view.Close()
	if talk {
		stop() // between two questions Ctrl-C is a key like any other
		return a.converse(cmd.Context(), e, s)
	}
	_, err = e.ask(ctx, question, nil)
	return err
}

// interruptible gives a context that the first Ctrl-C or SIGTERM ends. The
// second one finds the signals' usual effect and ends the process.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// An exchange asks questions and shows and records what happens.
type exchange struct {
	app     *app
	kit     *kit
	view    viewer
	journal *journal
	prompt  func([]runner.Segment) // shows the prompt; nil for no
}

// ask runs one task. The ledger is that of the conversation so far, or nil.
func (e *exchange) ask(ctx context.Context, question string, ledger *runner.Ledger) (runner.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	task := e.kit.task
	task.Question, task.Ledger = question, ledger
	return e.follow(e.journal.run(ctx, e.kit, task), cancel)
}

// follow shows a run. cancel ends it where nobody sees that any more.
func (e *exchange) follow(events iter.Seq2[runner.Event, error], cancel func()) (runner.Outcome, error) {
	var outcome runner.Outcome
	var shown, failed error
	halted := "" // the user's own criterion that ended the last turn
	for ev, err := range events {
		if err != nil {
			failed = err
			break
		}
		switch ev := ev.(type) {
		case runner.Started:
			if e.prompt != nil {
				e.prompt(ev.Prompt)
			}
		case runner.Stopped:
			halted = ""
			if slices.ContainsFunc(e.kit.runner.Criteria, func(c stopping.Criterion) bool { return c.Name == ev.Criterion }) {
				halted = ev.Criterion
			}
		case runner.Ended:
			outcome = ev.Outcome
		}
		if shown == nil {
			if shown = e.view.Event(ev); shown != nil {
				cancel() // nobody reads: end the generation, and let the journal see the end
			}
		}
	}
	switch {
	case shown != nil:
		if outcome.Answer != "" && !errors.Is(shown, syscall.EPIPE) { // a full disk must not cost the answer
			fmt.Fprintln(e.app.stderr, printable(outcome.Answer))
		}
		return outcome, shown
	case failed != nil && outcome.Termination == "": // the run never began
		return outcome, failed
	case outcome.Termination == runner.TermAnswered || outcome.Termination == runner.TermAnsweredForced:
		return outcome, nil
	}
	return outcome, &ending{termination: outcome.Termination, err: failed, halted: halted}
}

// A jsonView prints the events for other programs.
type jsonView struct{ out *output }

// Event prints one event on one line.
func (v jsonView) Event(ev runner.Event) error {
	line, err := runner.MarshalEvent(ev)
	if err != nil {
		return fmt.Errorf("event %s: %w", ev.Kind(), err)
	}
	_, err = v.out.Write(append(line, '\n'))
	return err
}

// Close does nothing.
func (jsonView) Close() {}
