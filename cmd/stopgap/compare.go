package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/batch"
	"stopgap/internal/compare"
	"stopgap/internal/config"
	"stopgap/models"
	"stopgap/template"
)

// compareFlags are those of "stopgap compare".
type compareFlags struct {
	batchFlags
	formats  []string
	baseline string
	primary  string
	dryRun   bool
	// judge is the model that judges answers; judgeFormat is how it is asked.
	judge, judgeFormat string
}

func (a *app) compareCommand() *cobra.Command {
	s := newSettings()
	f := compareFlags{batchFlags: batchFlags{rollouts: 1, parallel: 4}}
	cmd := &cobra.Command{
		Use: "compare --formats A,B,FILE --data FILE", Short: "Ask the same questions in several formats, and tell how they differ",
		Long: `Ask all questions of a dataset in several prompt formats, each as often as
--rollouts says, and tell how the formats differ and how sure that is: scores with
95 % intervals, and for each pair the difference with two tests.

A format is a name or a file of your own. --model may be repeated: servers that have
the same model share the work, and each other model is compared too, in every
format. A rollout of a question has the same seed in all configurations.

The results are kept in a folder, a batch for each configuration. Whatever ends the
command, the same command goes on where it was; more --rollouts, a larger --first
and further --formats are more of the same. "stopgap report DIR" draws it again.

Exit codes: 0 every rollout has its end, 1 some failed, 2 wrong usage, 3 no server
is left, 130 interrupted.`,
		Example: `  stopgap compare --formats qwen,react,search-r1 --data hotpotqa.jsonl --corpus ~/wiki
  stopgap compare --formats qwen,./mine.tmpl --data nq.parquet --rollouts 3 --first 200
  stopgap compare --formats qwen --model ollama:qwen3:8b --model ollama:qwen3:14b --data q.csv
  stopgap compare --formats qwen,react --data q.jsonl --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.compare(cmd, s, f)
		},
	}
	addFlag(cmd, groupModel, &pflag.Flag{Name: "model", Shorthand: "m", Value: list{&f.models, "REF", nil}, Usage: "a model, as `REF` (repeatable): " + kinds()})
	for _, g := range []group{groupModel, groupPrompt} {
		s.flags(g).VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "model" && flag.Name != "format" {
				addFlag(cmd, g, flag)
			}
		})
	}
	addFlags(cmd, s, groupTools, groupCalls, groupLimits, groupStopping, groupSampling)
	addSome(cmd, s, groupOutput, "quiet", "color")
	ownFlags(cmd, func(p *pflag.FlagSet) { f.own(p, s) })
	a.completeFlags(cmd, s)
	a.completeCompare(cmd)
	return cmd
}

// own are the flags of this command alone.
func (f *compareFlags) own(p *pflag.FlagSet, s *settings) {
	once := func(name string) error {
		if slices.Contains(f.formats, name) {
			return fmt.Errorf("%q is there twice", name)
		}
		return checkStop(name)
	}
	p.VarP(words{&f.formats, "NAME,FILE,…", once}, "formats", "f", "the prompt formats that are compared: names and format files")
	p.StringVar(&f.data, "data", "", "the dataset: a `FILE` of JSON lines, JSON, CSV or Parquet")
	p.StringVar(&f.out, "out", "", "the `FOLDER` of the comparison (default the dataset's name with .compare)")
	p.Var(count{&f.rollouts, 1}, "rollouts", "how often each question is asked in each configuration")
	p.Var(count{&f.parallel, 1}, "parallel", "how many rollouts run at once, on all servers of a model")
	p.Var(count{&f.first, 0}, "first", "ask only the first N questions; 0 for all")
	p.StringVar(&f.baseline, "baseline", "", "the `FORMAT` that the others are held against, and that stands first (default the first)")
	p.Var(choice{&f.primary, compare.Primaries()}, "primary", "the metric that the comparison is about (default exact_match)")
	p.StringVar(&f.judge, "judge", "", "have this model, as `REF`, judge the answers")
	p.StringVar(&f.judgeFormat, "judge-format", "", "the prompt `FORMAT` that the judge is asked in (default the server's own template, or "+defaultFormat+" where it has none)")
	p.BoolVar(&f.retryFailed, "retry-failed", false, "make rollouts again that ended by an error")
	p.BoolVar(&f.skipBroken, "skip-broken", false, "leave out lines of the dataset that are no question")
	p.BoolVar(&f.dryRun, "dry-run", false, "tell what would be asked, and ask nothing")
	p.BoolVar(&f.json, "json", false, "print the events as JSON lines, and nothing else, on standard output")
	p.BoolVar(&s.yes, "yes", false, "let tools change things")
}

func (a *app) completeCompare(cmd *cobra.Command) {
	names := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var out []string
		for _, name := range template.Names() {
			if !slices.Contains(strings.Split(before, ","), name) {
				out = append(out, before+name)
			}
		}
		return out, cobra.ShellCompDirectiveNoSpace
	}
	for name, f := range map[string]cobra.CompletionFunc{
		"formats": names,
		"primary": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return compare.Primaries(), cobra.ShellCompDirectiveNoFileComp
		},
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // the flags are there
		}
	}
	_ = cmd.MarkFlagFilename("data", "jsonl", "ndjson", "json", "csv", "tsv", "parquet") // the flag is there
	_ = cmd.MarkFlagDirname("out")
}

func (a *app) compare(cmd *cobra.Command, s *settings, f compareFlags) error {
	if len(f.formats) == 0 {
		return &usageError{errors.New("--formats is missing"), "--formats takes names and format files between commas: " + strings.Join(template.Names(), ", ")}
	}
	if err := f.baselineFirst(); err != nil {
		return err
	}
	data, err := a.dataset(s, f.batchFlags)
	if err != nil {
		return err
	}
	dir := f.out
	if dir == "" {
		dir = strings.TrimSuffix(filepath.Base(f.data), filepath.Ext(f.data)) + ".compare"
	}
	before, err := compare.ReadPlan(dir)
	if err != nil && !errors.Is(err, compare.ErrNone) {
		return comparisonError(err)
	}
	if f.primary == "judge" && f.judge == "" && (before == nil || before.Judge == "") {
		return &usageError{errors.New("--primary judge needs a judge"), "--judge names the model that judges the answers"}
	}
	if before != nil && s.origins["date"].Place == config.Default { // one that goes on tomorrow tells the day of today
		s.date = before.Date
	}
	if a.env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(batch.GCPercent))
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	board := &compareBoard{batchView: a.newBoard(s, f.json), json: f.json, quiet: s.quiet}
	defer board.Close()
	crews, err := a.crews(ctx, cmd, s, f, board)
	defer func() {
		for _, c := range crews {
			c.close()
		}
	}()
	if err != nil {
		return err
	}
	judges, err := a.judgeFor(ctx, s, f, board)
	if err != nil {
		return err
	}
	c := &compare.Comparison{
		Dir: dir, Data: data, First: f.first, Rollouts: f.rollouts, Parallel: f.parallel, RetryFailed: f.retryFailed,
		Date: s.date, Seeds: seedsOf(s), Primary: f.primary,
	}
	if judges != nil {
		defer judges.kit.Close()
		c.JudgedBy = judges.name
	}
	for _, one := range crews {
		c.Configurations = append(c.Configurations, one.candidate())
	}
	return a.runComparison(ctx, s, c, f, judges, board)
}

// seedsOf is what the seeds of a comparison follow from: the same for all of
// its configurations.
func seedsOf(s *settings) string {
	if s.sampling.Seed != nil {
		return "compare " + strconv.Itoa(*s.sampling.Seed)
	}
	return "compare"
}

// candidate is what a crew compares.
func (c *crew) candidate() *compare.Candidate {
	var model string
	_ = json.Unmarshal(c.configuration["model"], &model) // a string, as it was put there
	return &compare.Candidate{Format: c.servers[0].About.Format, Model: model, Configuration: c.configuration, Servers: c.servers}
}

// baselineFirst puts the format that --baseline names before the others: they are
// held against the first configuration.
func (f *compareFlags) baselineFirst() error {
	if f.baseline == "" {
		return nil
	}
	i := slices.Index(f.formats, f.baseline)
	if i < 0 {
		return &usageError{fmt.Errorf("--baseline names %q, which is not compared", f.baseline), "it takes one of " + strings.Join(f.formats, ", ")}
	}
	f.formats = slices.Concat(f.formats[i:i+1], f.formats[:i], f.formats[i+1:])
	return nil
}

// crews opens the servers of each configuration: each format with each model, in
// the order in which they were named.
func (a *app) crews(ctx context.Context, cmd *cobra.Command, s *settings, f compareFlags, board *compareBoard) ([]*crew, error) {
	groups, err := a.byModel(ctx, s, f.models)
	if err != nil {
		return nil, err
	}
	shared, err := a.sharedCorpus(ctx, s, f.models)
	if err != nil {
		return nil, err
	}
	var out []*crew
	for i, format := range f.formats {
		for _, refs := range groups {
			one := *s
			one.format, one.corpus = format, shared
			one.quiet = s.quiet || i > 0 // what is told of models and documents is told once
			c, err := a.crew(ctx, cmd, &one, refs, board)
			if err != nil {
				return out, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// sharedCorpus is the corpus of all models: where one of them gets the documents
// that come along, all do. Models with other tools are not compared.
func (a *app) sharedCorpus(ctx context.Context, s *settings, refs []string) (string, error) {
	for _, ref := range refs {
		one := *s
		one.model = ref
		if err := a.defaultCorpus(ctx, &one); err != nil {
			return "", err
		}
		if one.corpus != "" {
			return one.corpus, nil
		}
	}
	return s.corpus, nil
}

// byModel puts servers together that have the same model.
func (a *app) byModel(ctx context.Context, s *settings, refs []string) ([][]string, error) {
	if len(refs) < 2 {
		return [][]string{refs}, nil
	}
	var groups [][]string
	place := map[string]int{}
	for _, ref := range refs {
		model, err := a.openModel(ref, s)
		if err != nil {
			return nil, err
		}
		k := &kit{ref: ref}
		if d, ok := model.(models.Describer); ok {
			k.info, err = d.Describe(ctx)
			if is[*models.UnreachableError](err) || is[*models.NotFoundError](err) || ctx.Err() != nil {
				return nil, err
			}
		}
		name := modelName(k)
		at, ok := place[name]
		if !ok {
			at = len(groups)
			place[name] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], ref)
	}
	return groups, nil
}

// comparisonError is an error of the user's: the folder, or what is compared.
func comparisonError(err error) error {
	var folder *compare.FolderError
	switch {
	case errors.As(err, new(*compare.TwiceError)):
		return &usageError{err, "name each configuration once"}
	case errors.As(err, new(*compare.ChangedError)):
		return &usageError{err, "take another folder with --out, or ask as the comparison was begun"}
	case errors.As(err, &folder):
		return &usageError{err, "--out takes a folder that is empty, that does not exist, or that has a comparison"}
	case errors.As(err, new(*batch.FolderError)):
		return folderError(err)
	}
	return err
}
