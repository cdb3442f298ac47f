package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/batch"
	"stopgap/internal/config"
	"stopgap/internal/trace"
	"stopgap/runner"
)

// batchFlags are those of "stopgap batch".
type batchFlags struct {
	data, out          string
	models             []string
	rollouts, parallel int
	first              int
	retryFailed        bool
	skipBroken         bool
	records            string
	json               bool
}

func (a *app) batchCommand() *cobra.Command {
	s := newSettings()
	f := batchFlags{rollouts: 1, parallel: 4, records: "plain"}
	cmd := &cobra.Command{
		Use: "batch --data FILE", Short: "Ask all questions of a dataset",
		Long: `Ask all questions of a dataset, each as often as --rollouts says, and keep the
results and a journal of each run in a folder.

The dataset is JSON lines, a JSON array, CSV or Parquet. A question stands in
question, or is the last message of the user in messages; HotpotQA, MuSiQue, NQ,
Bamboogle, DeepResearch and BFCL are recognised, with their gold answers.

--model may be repeated: servers that have the same model share the work, and a
question stays on its server. The seed of a rollout follows from the question, the
configuration and its number, so that neither the order nor --parallel changes a
result.

Whatever ends the command, the same command goes on where it was: a rollout that
has its end is never made again. Ctrl-C leaves what is under way, to be gone on
with.

Exit codes: 0 every rollout has its end, 1 some failed, 2 wrong usage, 3 no server
is left, 130 interrupted.`,
		Example: `  stopgap batch --data hotpotqa.jsonl --rollouts 3 --parallel 8 --corpus ~/wiki
  stopgap batch --data nq.parquet --model llamacpp:http://gpu1:8080 --model llamacpp:http://gpu2:8080
  stopgap batch --data questions.csv --out results --retry-failed
  stopgap batch --data questions.json --format deepresearch --records deepresearch`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.batch(cmd, s, f)
		},
	}
	addFlag(cmd, groupModel, &pflag.Flag{Name: "model", Shorthand: "m", Value: list{&f.models, "REF", nil}, Usage: "a model, as `REF` (repeatable): " + kinds()})
	s.flags(groupModel).VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "model" {
			addFlag(cmd, groupModel, flag)
		}
	})
	addFlags(cmd, s, groupPrompt, groupTools, groupCalls, groupLimits, groupStopping, groupSampling)
	addSome(cmd, s, groupOutput, "quiet", "color")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.StringVar(&f.data, "data", "", "the dataset: a `FILE` of JSON lines, JSON, CSV or Parquet")
		p.StringVar(&f.out, "out", "", "the `FOLDER` of the results (default the dataset's name with .batch)")
		p.Var(count{&f.rollouts, 1}, "rollouts", "how often each question is asked")
		p.Var(count{&f.parallel, 1}, "parallel", "how many rollouts run at once, on all servers")
		p.Var(count{&f.first, 0}, "first", "ask only the first N questions; 0 for all")
		p.BoolVar(&f.retryFailed, "retry-failed", false, "make rollouts again that ended by an error")
		p.BoolVar(&f.skipBroken, "skip-broken", false, "leave out lines of the dataset that are no question")
		p.Var(choice{&f.records, []string{"plain", "deepresearch"}}, "records", "also write iter1.jsonl, iter2.jsonl, … as DeepResearch does")
		p.BoolVar(&f.json, "json", false, "print the events as JSON lines, and nothing else, on standard output")
		p.BoolVar(&s.yes, "yes", false, "let tools change things")
	})
	a.completeFlags(cmd, s)
	_ = cmd.MarkFlagFilename("data", "jsonl", "ndjson", "json", "csv", "tsv", "parquet") // the flag is there
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func (a *app) batch(cmd *cobra.Command, s *settings, f batchFlags) error {
	data, err := a.dataset(s, f)
	if err != nil {
		return err
	}
	dir := f.out
	if dir == "" {
		dir = strings.TrimSuffix(filepath.Base(f.data), filepath.Ext(f.data)) + ".batch"
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	ledger, err := batch.OpenLedger(dir)
	if err != nil {
		return folderError(err)
	}
	defer ledger.Close()
	if s.origins["date"].Place == config.Default { // a batch that goes on tomorrow tells the day of today
		if day, err := ledger.Date(); err == nil && day != "" {
			s.date = day
		}
	}
	if a.env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(batch.GCPercent))
	}
	board := a.newBoard(s, f.json)
	defer board.Close()
	crew, err := a.crew(ctx, cmd, s, f.models, board)
	if err != nil {
		return err
	}
	defer crew.close()
	b := &batch.Batch{
		Dir: dir, Ledger: ledger, Data: data, Configuration: crew.configuration, Servers: crew.servers,
		First: f.first, Rollouts: f.rollouts, Parallel: f.parallel, RetryFailed: f.retryFailed,
	}
	return a.runBatch(ctx, b, f, board)
}

// mostRollouts is how many rollouts a batch may have: all of them are planned
// before the first one.
const mostRollouts = 1_000_000

// dataset reads --data.
func (a *app) dataset(s *settings, f batchFlags) (*batch.Dataset, error) {
	if f.data == "" {
		return nil, &usageError{errors.New("--data is missing"), "--data takes a file of questions: " + strings.Join(batch.Extensions(), ", ")}
	}
	data, err := batch.Read(f.data)
	if err != nil {
		return nil, &usageError{fmt.Errorf("cannot read the dataset: %w", err), "--data takes a file of questions: " + strings.Join(batch.Extensions(), ", ")}
	}
	if n := len(data.Faults); n > 0 && (!s.quiet || !f.skipBroken) {
		const shown = 10
		for _, fault := range data.Faults[:min(n, shown)] {
			a.note("%s: %s", f.data, fault)
		}
		if n > shown {
			a.note("%s: %d more lines are no question", f.data, n-shown)
		}
	}
	switch n := len(data.Faults); {
	case n > 0 && !f.skipBroken:
		return nil, &usageError{fmt.Errorf("%d of %d lines of %s are no question", n, n+len(data.Items), f.data), "correct them, or leave them out with --skip-broken"}
	case len(data.Items) == 0:
		return nil, &usageError{&batch.DataError{Path: f.data, Err: batch.ErrEmpty}, "every line is broken"}
	}
	items := len(data.Items)
	if f.first > 0 {
		items = min(items, f.first)
	}
	if f.rollouts > mostRollouts/items {
		return nil, &usageError{fmt.Errorf("%d questions, %d times each, are more than %d rollouts", items, f.rollouts, mostRollouts), "ask fewer at a time, with --first and another --out"}
	}
	s.functions = functionsOf(data)
	return data, nil
}

// folderError is an error of the user's: the folder, or what it was begun with.
func folderError(err error) error {
	var changed *batch.ChangedError
	switch {
	case errors.As(err, &changed):
		return &usageError{err, "take another folder with --out, or ask as the batch was begun"}
	case errors.Is(err, batch.ErrBusy):
		return &usageError{err, "wait until it has ended, or take another folder with --out"}
	}
	return &usageError{err, "--out takes a folder that you may write, with room; the same command goes on where it was"}
}

// A crew is the servers of a batch and what they have open.
type crew struct {
	servers       []*batch.Server
	configuration batch.Configuration
	kits          []*kit
}

func (c *crew) close() {
	for _, k := range c.kits {
		k.Close()
	}
}

// crew opens the models, each with tools of its own. What they tell goes to w.
func (a *app) crew(ctx context.Context, cmd *cobra.Command, s *settings, refs []string, w io.Writer) (*crew, error) {
	if len(refs) == 0 {
		refs = []string{""} // what is found
	}
	c := &crew{}
	name, limit := "", 0
	for i, ref := range refs {
		one, silent := *s, *a
		one.model, silent.stderr = ref, w
		k, err := silent.member(ctx, &one, i == 0)
		if err != nil {
			c.close()
			return nil, err
		}
		c.kits = append(c.kits, k)
		model := modelName(k)
		if i > 0 && model != name {
			c.close()
			return nil, &usageError{fmt.Errorf("%s has the model %s, and %s has %s", masked(refs[0]), name, masked(ref), model), "the servers of a batch have the same model"}
		}
		name = model
		if n := k.runner.Context; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
		c.servers = append(c.servers, &batch.Server{
			Name: masked(k.ref), Runner: k.runner, Task: k.task,
			About: trace.About{
				Version: readVersion().Version, Model: masked(k.ref), Server: k.info.Server,
				Format: s.format, Text: formatText(s.format), Settings: s.given(cmd.Flags()),
			},
		})
	}
	for _, k := range c.kits {
		k.runner.Context = limit // the least: what is cut depends on it
	}
	var err error
	first := c.servers[0]
	c.configuration, err = batch.NewConfiguration(name, first.About.Text, first.Runner, first.Task)
	if err == nil {
		err = checkRun(ctx, first, s.functions)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// member makes the kit of one server.
func (a *app) member(ctx context.Context, s *settings, first bool) (*kit, error) {
	quiet := s.quiet
	s.quiet = quiet || !first // what is told of the documents is told once
	k, err := a.prepare(ctx, s, true)
	if err != nil {
		return nil, err
	}
	s.quiet = quiet
	k.approver.silent = true // nobody sits there
	if err := a.connect(ctx, s, k); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// modelName tells a model apart from others, wherever it runs.
func modelName(k *kit) string {
	if k.info.Model != "" {
		return filepath.Base(filepath.ToSlash(k.info.Model))
	}
	return masked(k.ref)
}

// checkRun refuses what no rollout could begin with.
func checkRun(ctx context.Context, s *batch.Server, functions *batch.Item) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, task := *s.Runner, s.Task
	task.Question = "?"
	if functions != nil {
		if err := functions.Equip(&r, &task); err != nil {
			return err
		}
	}
	for ev, err := range r.Run(ctx, task) {
		if _, ok := ev.(runner.Started); ok || ev != nil {
			return nil
		}
		return err
	}
	return nil
}

// runBatch works on a batch and tells what becomes of it.
func (a *app) runBatch(ctx context.Context, b *batch.Batch, f batchFlags, board batchView) error {
	var failed error
	var end batch.Ended
	for ev, err := range b.Run(ctx) {
		if err != nil {
			failed = err
			break
		}
		if ended, ok := ev.(batch.Ended); ok {
			end = ended
		}
		if err := board.Event(ev); err != nil {
			return err
		}
	}
	board.Close()
	if folder := (*batch.FolderError)(nil); errors.As(failed, &folder) {
		return folderError(failed)
	}
	if err := b.WriteResults(); err != nil {
		return folderError(err)
	}
	if f.records == "deepresearch" {
		if err := b.WriteDeepResearch(); err != nil {
			return folderError(err)
		}
	}
	if !f.json {
		if err := a.batchSummary(b, end); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil && end.Missing > 0:
		a.note("left with %d of %d rollouts done; the same command goes on from there", end.Done, end.Done+end.Missing)
		return context.Canceled
	case failed != nil:
		return failed
	case end.Failed > 0:
		return &someFailed{end.Failed, end.Done}
	}
	return nil
}

// A someFailed says that a batch is through, and not all of it worked.
type someFailed struct{ failed, of int }

func (e *someFailed) Error() string { return fmt.Sprintf("%d of %d rollouts failed", e.failed, e.of) }
