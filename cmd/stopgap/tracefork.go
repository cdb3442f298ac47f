package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// forkFlags are those of "stopgap trace fork".
type forkFlags struct {
	traceFlags
	at, call int
	format   string
	response string
}

func (a *app) traceForkCommand() *cobra.Command {
	s := newSettings()
	f := forkFlags{at: -1, call: 1}
	cmd := &cobra.Command{
		Use: "fork FILE --at N --trace NEW", Short: "Leave a recorded run at a turn, for another way on",
		Long: `Leave a recorded run after N of its turns: they are played from the journal, with
their calls, and then the run goes on live, into a new journal. Without more it
asks the same model again; --model asks another one, --response gives the last of
these turns another response of its tool.

With another --format the recorded turns are read by the run's own format and
spelled by the other one. Where a turn would not read as the same there, the
command says so and asks nothing: a turn that was not as its format asks, several
calls in a format that makes one, calls that were held to a schema or put into
the model's mouth, and turns of a chat endpoint. A thought is left out where the
other format has none.

Exit codes: those of "stopgap run".`,
		Example: `  stopgap trace fork runs.trace --at 1 --model ollama:qwen3 --trace other.trace
  stopgap trace fork runs.trace --at 2 --response "Nothing was found." --trace other.trace
  stopgap trace fork runs.trace --run 3 --at 0 --format react --trace other.trace`,
		Args: oneJournal,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.fork(cmd, s, args[0], f)
		},
	}
	addFlags(cmd, s, groupModel)
	addSome(cmd, s, groupTools, "allow", "tool-file", "folder")
	addFlags(cmd, s, groupOutput)
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.BoolVar(&s.yes, "yes", false, "let tools change things without asking first")
		p.Var(count{&f.at, 0}, "at", "how many turns are played; 0 asks the question anew")
		p.StringVar(&f.format, "format", "", "another prompt format: a `NAME` or a format file")
		p.StringVar(&f.response, "response", "", "another response of the last turn's call: `TEXT`, or @FILE")
		p.Var(count{&f.call, 1}, "call", "which call of the turn --response is for")
		f.add(p, "the run; needed where the file has several", "print the events as JSON lines, and nothing else, on standard output")
	})
	cmd.Flags().Lookup("at").DefValue = ""
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) fork(cmd *cobra.Command, s *settings, path string, f forkFlags) error {
	switch {
	case f.at < 0:
		return &usageError{errors.New("--at is missing"), "--at N plays N turns and goes on from there; \"stopgap trace show\" shows them"}
	case s.trace == "":
		return &usageError{errors.New("--trace is missing"), "--trace FILE takes the new run"}
	}
	runs, chosen, err := readJournal(path, f.run)
	if err != nil {
		return err
	}
	if len(chosen) != 1 {
		return &usageError{fmt.Errorf("%s has %d runs", path, len(runs)), "choose with --run N; \"stopgap trace show\" lists them"}
	}
	run := &runs[chosen[0]]
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	l, err := a.revive(ctx, cmd, s, run)
	if err != nil {
		return err
	}
	defer l.close()
	edit, format, err := a.forkEdits(cmd, s, run, f, l)
	if err != nil {
		return err
	}
	r, task, err := trace.NewDeck(runs).Fork(ctx, chosen[0], edit, l.Live)
	if err != nil {
		return err
	}
	if edit.Model {
		r.Name, r.Context = masked(l.ref), l.info.Context.N
	}
	w, err := a.openTrace(s.trace)
	if err != nil {
		return err
	}
	j := &journal{app: a, path: s.trace, w: w}
	defer j.Close()
	about := trace.About{
		Version: l.Version, Model: masked(l.ref), Server: l.info.Server, Format: format.Name, Text: []byte(format.Text),
		Settings: run.Header.Settings, Forked: &trace.Forked{Run: run.Header.ID, At: f.at},
	}
	return a.followLive(ctx, s, f.json, r, l.approver, func(ctx context.Context) iter.Seq2[runner.Event, error] {
		return j.watch(w.Run(ctx, about, r, task))
	})
}

// forkEdits are what the flags change of a run, and its format then.
func (a *app) forkEdits(cmd *cobra.Command, s *settings, run *trace.Run, f forkFlags, l *revived) (trace.Fork, trace.Format, error) {
	edit := trace.Fork{At: f.at, Model: l.ref != run.Header.Model, Call: f.call}
	format := run.Header.Format
	if cmd.Flags().Changed("response") {
		text, err := s.fromFile(f.response, "the response", "--response")
		if err != nil {
			return edit, format, err
		}
		edit.Response = &text
	}
	if f.format == "" {
		return edit, format, nil
	}
	compiled, err := template.Load(f.format)
	if err != nil {
		return edit, format, err
	}
	edit.Format = compiled
	return edit, trace.Format{Name: f.format, Text: string(formatText(f.format))}, nil
}

func (a *app) traceResumeCommand() *cobra.Command {
	s := newSettings()
	var f traceFlags
	cmd := &cobra.Command{
		Use: "resume FILE", Short: "Go on with a run whose process was killed",
		Long: `Go on with a run whose process was killed, in its own journal. Turns that were
whole are played from it, and at most the one that was under way is asked again.

A tool that was under way runs again only where it has no side effects. One that
has some is never run twice: the model is told that nobody knows whether it did
its work.

Without --run it is the last run of the file that has no end.`,
		Example: "  stopgap trace resume runs.trace\n  stopgap trace resume runs.trace --run 2 --json | jq .event",
		Args:    oneJournal,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.resume(cmd, s, args[0], f)
		},
	}
	addFlags(cmd, s, groupModel)
	addSome(cmd, s, groupTools, "allow", "tool-file", "folder")
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.BoolVar(&s.yes, "yes", false, "let tools change things without asking first")
		f.add(p, "this run; they are numbered from 1", "print the events as JSON lines, and nothing else, on standard output")
	})
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) resume(cmd *cobra.Command, s *settings, path string, f traceFlags) error {
	if _, _, err := readJournal(path, f.run); err != nil { // before the file is touched
		return err
	}
	w, err := a.openTrace(path) // nobody else writes from here on
	if err != nil {
		return err
	}
	j := &journal{app: a, path: path, w: w}
	defer j.Close()
	runs, chosen, err := readJournal(path, f.run)
	if err != nil {
		return err
	}
	for f.run == 0 && len(chosen) > 0 && (runs[chosen[len(chosen)-1]].Ended() || runs[chosen[len(chosen)-1]].Header.ID == "") {
		chosen = chosen[:len(chosen)-1]
	}
	if len(chosen) == 0 {
		return &usageError{fmt.Errorf("every run of %s has its end", path), traceHint(trace.ErrEnded)}
	}
	i := chosen[len(chosen)-1]
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	l, err := a.revive(ctx, cmd, s, &runs[i])
	if err != nil {
		return err
	}
	defer l.close()
	return a.followLive(ctx, s, f.json, &runner.Runner{}, l.approver, func(ctx context.Context) iter.Seq2[runner.Event, error] {
		return j.watch(trace.NewDeck(runs).Resume(ctx, w, i, l.Live))
	})
}

// A revived is the outside of a recorded run.
type revived struct {
	trace.Live
	ref      string
	info     models.Info
	approver *approver // nil where there are no tools
	close    func()
}

// revive opens the model and the tools of a recorded run, as its settings name
// them; flags win.
func (a *app) revive(ctx context.Context, cmd *cobra.Command, s *settings, run *trace.Run) (*revived, error) {
	h := &run.Header
	for _, name := range []string{"context", "first-token-timeout", "token-timeout", "api-key-env"} {
		if f := cmd.Flags().Lookup(name); !f.Changed && h.Settings[name] != "" {
			if err := f.Value.Set(h.Settings[name]); err != nil {
				return nil, &trace.HeaderError{What: "setting " + name, Err: err}
			}
		}
	}
	l := &revived{Live: trace.Live{Version: readVersion().Version}, ref: h.Model, close: func() {}}
	if cmd.Flags().Changed("model") {
		l.ref = s.model
	}
	if len(h.Tools) > 0 {
		w, err := a.recordedTools(s, h)
		if err != nil {
			return nil, err
		}
		w.model = func(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
			r, _, err := h.Revive()
			if err != nil {
				return "", err
			}
			r.Model, r.Context = l.Model, l.info.Context.N
			return askAside(ctx, r, prompt, schema)
		}
		l.close = w.close
		if l.Tools, err = w.tools(ctx); err != nil {
			l.close()
			return nil, err
		}
		l.approver = &approver{app: a, yes: s.yes}
		l.Approve = l.approver.approve
	}
	model, err := a.openModel(l.ref, s)
	if err == nil {
		if d, ok := model.(models.Describer); ok {
			l.info, err = d.Describe(ctx)
			if !is[*models.UnreachableError](err) && !is[*models.NotFoundError](err) && ctx.Err() == nil {
				err = nil // the run itself can wait
			}
		}
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.Model = model
	return l, nil
}

// recordedTools gives the workshop that the tools of a recorded run come from.
// What they may reach is not taken from the journal, which somebody else may have
// written: --allow says it anew.
func (a *app) recordedTools(s *settings, h *trace.Header) (*workshop, error) {
	s.corpus, s.index, s.tools = h.Settings["corpus"], h.Settings["index"], nil
	if onServer(s.corpus) && !slices.Contains(s.allow, "net") {
		return nil, &usageError{fmt.Errorf("the recorded run searched %s, which this one does not allow", masked(s.corpus)), "--allow net allows it"}
	}
	if names := h.Settings["tools"]; names != "" {
		if err := (words{&s.tools, "", checkStop}).Set(names); err != nil {
			return nil, &trace.HeaderError{What: "setting tools", Err: err}
		}
	} else if s.corpus == "" {
		s.corpus = sampleCorpus
	}
	return &workshop{settings: s, app: a, wanted: s.tools}, nil
}

// followLive shows a run that goes on.
func (a *app) followLive(ctx context.Context, s *settings, asJSON bool, r *runner.Runner, ask *approver, run func(context.Context) iter.Seq2[runner.Event, error]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &exchange{app: a, kit: &kit{runner: r}}
	if asJSON {
		e.view = jsonView{a.stdout}
	} else {
		v := a.newView(s)
		if e.view = v; ask != nil {
			ask.spinner = v.spinner
		}
	}
	defer e.view.Close()
	_, err := e.follow(run(ctx), cancel)
	return err
}
