package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/config"
	"stopgap/internal/eval/bfcl"
	"stopgap/internal/eval/probe"
	"stopgap/template"
)

// probeFlags are those of "stopgap probe".
type probeFlags struct {
	groups     []string
	first      int
	parallel   int
	propensity bool
	json       bool
}

func (a *app) probeCommand() *cobra.Command {
	s := newSettings()
	f := probeFlags{parallel: 1, propensity: true}
	cmd := &cobra.Command{
		Use:   "probe [FILE|FOLDER...]",
		Short: "Measure how well a model calls tools, without running any",
		Long: `Measure how well a model calls tools in a format, without running any.

Each case is one turn: a question, tools, perhaps calls and responses that stand
before it. The calls of the turn are compared with those that are right, as they
were spelled (strict) and with what it took to read them (repaired).

Without an argument the suite that comes along is asked: 128 cases in English and
Chinese. An argument is a file of the Berkeley Function-Calling Leaderboard v4
(BFCL_v4_simple_python.json, with possible_answer beside it) or a folder of such
files, which are judged by the leaderboard's own rules.

The model is asked at temperature 0 unless --temperature says otherwise. Where
the server tells probabilities, the report also says how likely the model is to
open a call. Ctrl-C ends the probe and reports what there is.

Exit codes: 0 all cases were asked, 2 wrong usage, 3 the server, 130 interrupted.`,
		Example: `  stopgap probe --model ollama:qwen3:8b
  stopgap probe --format react --group choose,none
  stopgap probe ~/bfcl --model llamacpp:http://127.0.0.1:8080 --parallel 4
  stopgap probe --json > probe.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.probe(cmd, s, args, f)
		},
	}
	addFlags(cmd, s, groupModel, groupPrompt)
	addSome(cmd, s, groupCalls, "constrain", "calls-in-think")
	addSome(cmd, s, groupLimits, "max-tokens", "turn-tokens", "think-tokens", "resumes")
	addFlags(cmd, s, groupSampling)
	addSome(cmd, s, groupOutput, "quiet", "color")
	hideFlags(cmd, "prefill", "max-question")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.Var(words{&f.groups, "NAME,…", checkStop}, "group", "only the cases of these groups, or categories of BFCL")
		p.Var(count{&f.first, 0}, "first", "only the first N cases of each group; 0 for all")
		p.Var(count{&f.parallel, 1}, "parallel", "how many cases are asked at once")
		p.BoolVar(&f.propensity, "propensity", f.propensity, "ask how likely a call is, where the server tells")
		p.BoolVar(&f.json, "json", false, "print one JSON object a case, and last the summary, a line each")
	})
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) probe(cmd *cobra.Command, s *settings, args []string, f probeFlags) error {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if s.sampling.Temperature == nil {
		zero := 0.0
		s.sampling.Temperature = &zero
	}
	k, err := a.prepare(ctx, s, false)
	if err != nil {
		return err
	}
	defer k.Close()
	if format := k.runner.Format; format.Call.Kind == template.TagCalls {
		return &usageError{
			fmt.Errorf("format %s has words for its own tools only, so that no other can be called in it", format.Name),
			"probe takes a format that can call any tool, such as qwen or react",
		}
	}
	cases, err := a.probeCases(s, args, f, k.runner.Format.Opening == template.OpenChat)
	if err != nil {
		return err
	}
	if err := a.connect(ctx, s, k); err != nil {
		return err
	}
	board := a.newProbeBoard(s, f.json, len(cases))
	defer board.close()
	err = a.ask(ctx, k, f, cases, board)
	if errors.Is(err, errUnseen) {
		return a.stdout.err
	}
	if len(board.results) < len(cases) && len(board.results) > 0 && !s.quiet {
		board.spinner.hide()
		a.note("%d of %d cases were asked", len(board.results), len(cases))
	}
	if shown := board.report(); shown != nil {
		return shown
	}
	return err
}

// probeCases reads the cases and takes those that were asked for. underscores
// says that names of functions have no dots: chat endpoints refuse them.
func (a *app) probeCases(s *settings, paths []string, f probeFlags, underscores bool) ([]*probe.Case, error) {
	all, err := probe.Suite()
	if len(paths) > 0 {
		all, err = a.bfclCases(s, paths, underscores)
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range all {
		if !slices.Contains(names, c.Group) {
			names = append(names, c.Group)
		}
	}
	for _, g := range f.groups {
		if !slices.Contains(names, g) {
			err := &usageError{fmt.Errorf("--group names %q, which is no group of these cases", g), "they are " + strings.Join(names, ", ")}
			if near := config.Nearest(g, names); near != "" {
				err.hint = fmt.Sprintf("did you mean %q?", near)
			}
			return nil, err
		}
	}
	seen := map[string]int{}
	return slices.DeleteFunc(all, func(c *probe.Case) bool {
		if len(f.groups) > 0 && !slices.Contains(f.groups, c.Group) {
			return true
		}
		seen[c.Group]++
		return f.first > 0 && seen[c.Group] > f.first
	}), nil
}

// bfclCases reads files and folders of BFCL.
func (a *app) bfclCases(s *settings, paths []string, underscores bool) ([]*probe.Case, error) {
	var items []*bfcl.Item
	for _, path := range paths {
		var some []*bfcl.Item
		var left []string
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			some, left, err = bfcl.ReadFolder(path)
		} else {
			some, err = bfcl.Read(path)
		}
		if err != nil {
			return nil, &usageError{err, "probe takes files of BFCL v4, such as BFCL_v4_multiple.json, or their folder"}
		}
		if len(left) > 0 && !s.quiet {
			a.note("left out: %s, which are not of one turn in Python", strings.Join(left, ", "))
		}
		items = append(items, some...)
	}
	cases, left, err := probe.FromBFCL(items, underscores)
	if left > 0 && !s.quiet {
		a.note("left out: %d %s in which an assistant has spoken already", left, plural(left, "conversation"))
	}
	return cases, err
}

// errUnseen ends a probe that nobody reads.
var errUnseen = errors.New("the output is gone")

// ask asks the cases, some at a time, and shows them in their order. Nothing is
// asked any more when it returns.
func (a *app) ask(ctx context.Context, k *kit, f probeFlags, cases []*probe.Case, board *probeBoard) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type outcome struct {
		result probe.Result
		err    error
	}
	slots := make([]chan outcome, len(cases))
	for i := range slots {
		slots[i] = make(chan outcome, 1)
	}
	parallel := min(f.parallel, len(cases))
	for w := range parallel {
		p := probe.Prober{Runner: *k.runner, Task: k.task, Propensity: f.propensity}
		p.Runner.Session = fmt.Sprintf("%s/%d", k.runner.Session, w) // a slot of the server each
		workers.Go(func() {
			for i := w; i < len(cases); i += parallel {
				r, err := p.Ask(ctx, cases[i])
				if err != nil {
					cancel(err) // the others would meet it too
				}
				slots[i] <- outcome{r, err}
			}
		})
	}
	for i, c := range cases {
		board.asking(i, c)
		o := <-slots[i]
		if o.err != nil {
			return context.Cause(ctx) // of another case, where that ended this one
		}
		if err := board.add(o.result); err != nil {
			return errUnseen
		}
	}
	return nil
}
