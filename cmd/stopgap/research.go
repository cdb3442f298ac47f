package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/config"
	"stopgap/internal/research"
	"stopgap/internal/research/article"
	"stopgap/internal/research/bank"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// researchFlags are those of "stopgap research".
type researchFlags struct {
	out, dir, bank       string
	plan, outline, write string // formats
	limits               research.Limits
	json                 bool
}

func (a *app) researchCommand() *cobra.Command {
	s := newSettings()
	var f researchFlags
	f.limits.Plan.Turns, f.limits.Write.Turns = 128, 128
	f.limits.Pages, f.limits.History, f.limits.Pieces = 100, 25_000, 10
	cmd := &cobra.Command{
		Use: "research QUESTION", Short: "Answer a question with a cited report",
		Long: `Answer a question with a cited report. A planner searches and reads pages, each
for a goal, and has an outline written from their summaries; a writer fetches
what the outline cites and writes it section by section; the question is answered
from the report. What was read is kept in a bank, numbered, outside of the
prompts, so that a model with a context of 32 000 tokens can read a hundred pages.

The pages are those of --corpus, of the web with --allow net, and files below
--folder with --allow files. Each citation of the report is checked: whether its
evidence stands word for word in the page that was read.

The report is written as Markdown and as one HTML page. A folder beside it keeps
the bank and a journal for each part of the work. Whatever ends the command, the
same command goes on where it was. Ctrl-C writes what there is.

Exit codes: 0 answered, 1 no answer, 2 wrong usage, 3 the server, 130 interrupted.`,
		Example: `  stopgap research "How did the harbour change after the flood?" --corpus ~/archive
  stopgap research "…" --allow net --model ollama:qwen3:32b --out report.md
  stopgap research "…" --corpus ~/archive --bank archive.db
  stopgap research "…" --corpus ~/archive --pages 20 --plan-turns 60 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.research(cmd, s, f, args)
		},
	}
	addFlags(cmd, s, groupModel)
	addSome(cmd, s, groupPrompt, "date", "max-question")
	addSome(cmd, s, groupTools, "corpus", "index", "embed", "allow", "folder", "converter", "search-engine", "search-url", "search-key-env", "allow-host")
	addSome(cmd, s, groupCalls, "strict", "calls-in-think")
	addSome(cmd, s, groupLimits, "max-tokens", "turn-tokens", "think-tokens", "resumes")
	addFlags(cmd, s, groupSampling)
	addSome(cmd, s, groupOutput, "quiet", "color")
	ownFlags(cmd, func(p *pflag.FlagSet) { f.add(p) })
	a.completeFlags(cmd, s)
	_ = cmd.MarkFlagFilename("out", "md") // the flag is there
	_ = cmd.MarkFlagFilename("bank", "db")
	for _, name := range []string{"planner", "outliner", "writer"} {
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return template.Names(), cobra.ShellCompDirectiveDefault // files too
		})
	}
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// add gives a command the flags.
func (f *researchFlags) add(p *pflag.FlagSet) {
	p.StringVarP(&f.out, "out", "o", "", "the report, a `FILE` that ends in .md; the page beside it ends in .html (default named after the question)")
	p.StringVar(&f.dir, "dir", "", "the `FOLDER` of the journals and the bank (default the report's name with .research)")
	p.StringVar(&f.bank, "bank", "", "keep what was read in this `FILE`, and use what it has already")
	p.Var(count{&f.limits.Pages, 1}, "pages", "how many pages may be read")
	p.Var(count{&f.limits.Plan.Turns, 1}, "plan-turns", "how often the planner may write")
	p.Var(count{&f.limits.Write.Turns, 1}, "write-turns", "how often the writer may write")
	p.Var(count{&f.limits.Plan.Tokens, 0}, "plan-tokens", "how many tokens the planner may write; 0 for no limit")
	p.Var(count{&f.limits.Write.Tokens, 0}, "write-tokens", "how many tokens the writer may write; 0 for no limit")
	p.Var(span{&f.limits.Plan.Time}, "plan-time", "time for the planning; 0 for no limit")
	p.Var(span{&f.limits.Write.Time}, "write-time", "time for the writing; 0 for no limit")
	p.Var(count{&f.limits.History, 1}, "history", "how many characters of what was done the planner sees")
	p.Var(count{&f.limits.Pieces, 1}, "pieces", "how many pieces of 10000 characters of a page are read")
	p.StringVar(&f.plan, "planner", "", "the planner's prompt format: a `NAME` or a file (default "+research.PlanFormat+")")
	p.StringVar(&f.outline, "outliner", "", "the format that outlines are written in: a `NAME` or a file (default "+research.OutlineFormat+")")
	p.StringVar(&f.write, "writer", "", "the writer's prompt format: a `NAME` or a file (default "+research.WriteFormat+")")
	p.BoolVar(&f.json, "json", false, "print the events as JSON lines, and nothing else, on standard output")
}

func (a *app) research(cmd *cobra.Command, s *settings, f researchFlags, args []string) error {
	question, err := a.question(args, s)
	if err != nil {
		return err
	}
	if f.out == "" {
		f.out = nameOf(question) + ".md"
	}
	if filepath.Ext(f.out) != ".md" {
		return &usageError{fmt.Errorf("--out %q does not end in .md", f.out), "the page beside it ends in .html"}
	}
	f.dir = cmp.Or(f.dir, strings.TrimSuffix(f.out, ".md")+".research")
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	if s.origins["date"].Place == config.Default { // one that goes on tomorrow tells the day of today
		s.date = cmp.Or(research.DateOf(f.dir), s.date)
	}
	view := a.newResearchView(s, f.json)
	defer view.Close()
	r, w, err := a.newResearch(ctx, s, f, question)
	if err != nil {
		return err
	}
	defer w.close()
	return a.followResearch(ctx, r, f, view, s.quiet)
}

// nameOf makes a file's name of a question.
func nameOf(question string) string {
	const most = 48 // bytes
	var b strings.Builder
	for _, r := range strings.ToLower(question) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= most {
			break
		}
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "report")
}

// newResearch makes the research of a command, and the workshop to close after
// it.
func (a *app) newResearch(ctx context.Context, s *settings, f researchFlags, question string) (*research.Research, *workshop, error) {
	scripts, err := research.LoadScripts(f.plan, f.outline, f.write, "")
	if err != nil {
		return nil, nil, &usageError{err, "--planner, --outliner and --writer take the name of a format or the path of a format file"}
	}
	if err := a.ableToResearch(ctx, s); err != nil {
		return nil, nil, err
	}
	k := &kit{runner: &runner.Runner{
		Sampling: s.sampling, Session: rand.Text(), Strict: s.strict, Prefill: s.prefill, Limits: s.limits(),
		CallsInThink: map[string]runner.Switch{"yes": runner.On, "no": runner.Off}[s.callsInThink],
	}}
	k.workshop = &workshop{settings: s, app: a}
	sources, err := a.sources(ctx, s, k.workshop)
	if err == nil && len(sources) == 0 {
		err = &usageError{research.ErrNoSource, "--corpus names a folder of documents; --allow net reaches the web"}
	}
	if err == nil {
		err = a.connect(ctx, s, k)
	}
	if err != nil {
		k.Close()
		return nil, nil, err
	}
	f.limits.Context = s.maxTokens
	k.runner.Name = modelName(k)
	return &research.Research{
		Question: question, Date: s.date, Folder: f.dir, Bank: f.bank, Runner: k.runner, Scripts: scripts, Sources: sources, Limits: f.limits,
		About:    trace.About{Version: readVersion().Version, Model: masked(k.ref), Server: k.info.Server},
		Settings: f.settings(s, k, scripts),
	}, k.workshop, nil
}

// ableToResearch refuses the model that comes along: it has learned to search
// and to answer, and no more.
func (a *app) ableToResearch(ctx context.Context, s *settings) error {
	ref, _, err := a.chooseModel(ctx, s)
	if err != nil || ref != "builtin" {
		return err
	}
	return &usageError{
		errors.New("the built-in model cannot do research: it has learned to search and to answer, not to plan and to write"),
		"start Ollama or llama-server with a larger model, or pass --model; \"stopgap run\" answers from the sample documents",
	}
}

// settings are what decides about a report, beside the question.
func (f researchFlags) settings(s *settings, k *kit, scripts research.Scripts) map[string]string {
	out := map[string]string{
		"the model": k.runner.Name, "--corpus": masked(s.corpus), "--allow": strings.Join(s.allow, ","), "--bank": f.bank,
		"--planner": f.plan, "--outliner": f.outline, "--writer": f.write,
	}
	for name, n := range map[string]int{
		"--max-tokens": s.maxTokens, "--turn-tokens": s.turnTokens, "--think-tokens": s.thinkTokens,
		"--pages": f.limits.Pages, "--plan-turns": f.limits.Plan.Turns, "--write-turns": f.limits.Write.Turns,
		"--plan-tokens": f.limits.Plan.Tokens, "--write-tokens": f.limits.Write.Tokens,
		"--history": f.limits.History, "--pieces": f.limits.Pieces,
	} {
		out[name] = strconv.Itoa(n)
	}
	for name, d := range map[string]time.Duration{"--plan-time": f.limits.Plan.Time, "--write-time": f.limits.Write.Time} {
		out[name] = d.String()
	}
	out["--embed"], out["--search-engine"], out["--search-url"] = masked(s.embed), s.searchEngine, masked(s.searchURL)
	if s.allows(tools.Files) {
		out["--folder"] = s.folder
	}
	out["--strict"], out["--calls-in-think"] = strconv.FormatBool(s.strict), s.callsInThink
	maps.Copy(out, samplingFlags(s.sampling))
	return out
}

// samplingFlags are the settings of a sampling by their flags.
func samplingFlags(s models.Sampling) map[string]string {
	var set map[string]json.Number
	if b, err := json.Marshal(s); err == nil {
		_ = json.Unmarshal(b, &set) // a Sampling is numbers
	}
	out := map[string]string{}
	for name, n := range set {
		out["--"+strings.ReplaceAll(name, "_", "-")] = n.String()
	}
	return out
}

// follow shows a research and writes its report.
func (a *app) followResearch(ctx context.Context, r *research.Research, f researchFlags, view researchView, quiet bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended research.Ended
	var shown, failed error
	for ev, err := range r.Run(ctx) {
		if err != nil {
			failed = err
			break
		}
		if e, ok := ev.(research.Ended); ok {
			ended = e
		}
		if shown == nil {
			if shown = view.Event(ev); shown != nil {
				cancel() // nobody reads: leave it as it is
			}
		}
	}
	view.Close()
	if ended.Report == nil {
		return researchError(failed)
	}
	if err := writeReport(f.out, ended.Report); err != nil {
		return &usageError{fmt.Errorf("cannot write the report: %w", err), "--out takes a file that you may write; the same command writes it again"}
	}
	if shown != nil {
		return shown
	}
	if !f.json {
		if err := a.researchSummary(f, ended, quiet); err != nil {
			return err
		}
	}
	switch {
	case failed != nil && ctx.Err() != nil:
		a.note("left before its end; the same command goes on from there")
		return context.Canceled
	case failed != nil:
		a.note("ended before its end; the same command goes on from there")
		return researchError(failed)
	case ended.Answer == "":
		return &ending{termination: runner.TermNoAnswer, phases: true}
	}
	return nil
}

// researchSummary prints the answer, and tells where the report is.
func (a *app) researchSummary(f researchFlags, ended research.Ended, quiet bool) error {
	if ended.Answer != "" {
		if _, err := fmt.Fprintln(a.stdout, printable(ended.Answer)); err != nil {
			return err
		}
	}
	if quiet {
		return nil
	}
	a.note("%s; %s", ended.Report.SummaryLine(), duration(ended.Duration))
	a.note("the report: %s and %s", f.out, htmlName(f.out))
	return nil
}

// htmlName is the name of the page beside a report.
func htmlName(out string) string { return strings.TrimSuffix(out, ".md") + ".html" }

// writeReport writes a report twice.
func writeReport(out string, r *article.Report) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	var text, page bytes.Buffer
	if err := errors.Join(r.WriteMarkdown(&text), r.WriteHTML(&page)); err != nil {
		return err
	}
	if err := research.WriteFile(out, text.Bytes()); err != nil {
		return err
	}
	return research.WriteFile(htmlName(out), page.Bytes())
}

// researchError gives the errors of a research their hints.
func researchError(err error) error {
	switch {
	case is[*research.ChangedError](err):
		return &usageError{err, "take another report with --out or another folder with --dir, or ask as it was begun"}
	case is[*research.FolderError](err):
		return &usageError{err, "--dir takes a folder that you may write, with room; the same command goes on where it was"}
	case errors.Is(err, bank.ErrBusy):
		return &usageError{err, "another research is at work; wait until it has ended"}
	case is[*bank.Error](err):
		return &usageError{err, "--bank takes a file that \"stopgap research\" has made, or one that does not exist"}
	case errors.Is(err, research.ErrContext):
		return &usageError{err, "it needs 4096 tokens at least, and 32 000 are good; --context sets what Ollama gives"}
	}
	return err
}
