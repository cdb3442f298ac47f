package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/export"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
)

// exportFlags are those of "stopgap export".
type exportFlags struct {
	to, mask   string
	out        string
	answered   bool
	minCalls   int
	dedupe     bool
	eos        bool
	bare       bool
	gguf, json string // files of tokenizers
}

func (a *app) exportCommand() *cobra.Command {
	s := newSettings()
	f := exportFlags{to: string(export.Messages), mask: "labels", out: "-"}
	cmd := &cobra.Command{
		Use:   "export JOURNAL|FOLDER...",
		Short: "Make training data of recorded runs",
		Long: `Make training data of the runs of journals, which "stopgap run --trace FILE"
writes: one JSON object a line. Of a folder all files that end in .trace are read.

  messages  OpenAI's shape for fine-tuning: messages with tool calls, and the tools
  text      the exact text that the model read and wrote, and the spans of
            characters that it wrote
  ids       the token ids that were sent and streamed, and which of them count

Only what the model generated counts: no prompt, no tool's response, no words
that were put into its mouth. Each run is made again from its journal and compared
with it, every prompt byte for byte and id for id. A run that does not agree ends
the command, with its record and its place, and nothing is written.

Questions of one conversation are one line. Runs without an end, and those that
the server, a clock or Ctrl-C ended, are left out. Where prompts were sent as text
ids need a tokenizer: that of --model, of a GGUF file, or of a tokenizer.json. With
one, the ids of the other runs are read back and compared with their text.

Exit codes: 0 exported, 1 nothing to export, 2 wrong usage, 4 a run does not agree.`,
		Example: `  stopgap export runs.trace --out train.jsonl
  stopgap export runs/ --answered --min-calls 1 --dedupe --out train.jsonl
  stopgap export runs.trace --to text | jq .spans
  stopgap export runs.trace --to ids --gguf model.gguf --eos --out train.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return &usageError{errors.New("export needs a journal, or a folder of journals"), `"stopgap run --trace FILE" writes one`}
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.export(ctx, cmd, s, args, f)
		},
	}
	addSome(cmd, s, groupModel, "model")
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.Var(choice{&f.to, []string{"messages", "text", "ids"}}, "to", "what a line is")
		p.StringVarP(&f.out, "out", "o", f.out, "the `FILE` to write; - for standard output")
		p.BoolVar(&f.answered, "answered", false, "only runs that ended with an answer")
		p.Var(count{&f.minCalls, 0}, "min-calls", "only conversations with at least so many tool calls")
		p.BoolVar(&f.dedupe, "dedupe", false, "leave out what is like a line before")
		p.BoolVar(&f.eos, "eos", false, "count the token that ends a turn also where the server hid it")
		p.Var(choice{&f.mask, []string{"labels", "loss_mask"}}, "mask", "how ids are marked: labels has -100 for what does not count, loss_mask has 1 and 0")
		p.BoolVar(&f.bare, "no-metadata", false, "leave out where each line comes from")
		p.StringVar(&f.gguf, "gguf", "", "take the tokenizer of a GGUF `FILE`")
		p.StringVar(&f.json, "tokenizer-json", "", "take the tokenizer of a tokenizer.json `FILE`")
	})
	a.completeFlags(cmd, s)
	for _, name := range []string{"to", "mask"} {
		words := cmd.Flag(name).Value.(choice).among
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flags are there
	}
	_ = cmd.MarkFlagFilename("gguf", "gguf")
	_ = cmd.MarkFlagFilename("tokenizer-json", "json")
	return cmd
}

func (a *app) export(ctx context.Context, cmd *cobra.Command, s *settings, args []string, f exportFlags) error {
	opts := export.Options{
		To: export.Shape(f.to), Answered: f.answered, MinCalls: f.minCalls, Dedupe: f.dedupe, EOS: f.eos, LossMask: f.mask == "loss_mask", Bare: f.bare,
	}
	if err := f.check(); err != nil {
		return err
	}
	var err error
	if opts.Tokenizer, err = a.exportTokenizer(ctx, cmd, s, f); err != nil {
		return err
	}
	journals, err := findJournals(args)
	if err != nil {
		return err
	}
	out, err := newSpool(f.out)
	if err != nil {
		return err
	}
	defer out.drop()
	e := &export.Exporter{Options: opts}
	skipped, err := a.exportJournals(ctx, s, e, journals, out)
	if err != nil {
		return err
	}
	if !s.quiet {
		a.note("%s", exportWords(e.Counts, len(journals)-skipped, skipped))
	}
	if e.Counts.Lines == 0 {
		return &nothingError{e.Counts}
	}
	return out.commit(a.stdout)
}

func (f *exportFlags) check() error {
	if f.gguf != "" && f.json != "" {
		return &usageError{errors.New("--gguf and --tokenizer-json name two tokenizers"), "use one of them"}
	}
	return nil
}

// exportJournals exports one journal after the other. One that cannot be read is
// told and counted; of one that is damaged, what stands before that is taken.
func (a *app) exportJournals(ctx context.Context, s *settings, e *export.Exporter, journals []string, out io.Writer) (skipped int, err error) {
	sp := (*spinner)(nil)
	if !s.quiet {
		sp = newSpinner(a.stderr, a.screen(a.stderr, s.color))
	}
	defer sp.Close()
	for _, path := range journals {
		name := filepath.Base(path)
		sp.show("reading " + printable(name))
		runs, damage := trace.ReadFile(path)
		if damage != nil {
			sp.hide()
			if len(runs) == 0 {
				skipped++
				a.note("%s is left out: %v", path, fileReason(damage))
				continue
			}
			a.note("%s is damaged, and what stands before is taken: %v", path, fileReason(damage))
		}
		e.Progress = func(done, of int) {
			sp.show(fmt.Sprintf("%s: %d of %d %s", printable(name), done, of, plural(of, "run")))
		}
		err := e.Journal(ctx, name, runs, func(line []byte) error {
			_, err := out.Write(line)
			return err
		})
		if err != nil {
			return skipped, fmt.Errorf("%s: %w", path, err)
		}
	}
	return skipped, nil
}

// fileReason leaves out the path, which stands before it.
func fileReason(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// findJournals are the files that are named, and those of the folders, each once.
func findJournals(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%s: %w", arg, fileReason(err)), `name a file that "stopgap run --trace FILE" has written, or a folder of them`}
		}
		if !info.IsDir() {
			out = append(out, arg)
			continue
		}
		before := len(out)
		err = filepath.WalkDir(arg, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && strings.HasSuffix(path, ".trace") {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, &usageError{fmt.Errorf("cannot read the folder %s: %w", arg, fileReason(err)), "check that you may read it"}
		}
		if len(out) == before {
			return nil, &usageError{fmt.Errorf("%s has no file that ends in .trace", arg), "name the files themselves"}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(path string) bool {
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		again := seen[path]
		seen[path] = true
		return again
	}), nil
}

// exportTokenizer gives the tokenizer that is named, or nil.
func (a *app) exportTokenizer(ctx context.Context, cmd *cobra.Command, s *settings, f exportFlags) (export.Tokenizer, error) {
	switch {
	case f.gguf+f.json != "":
		t, err := tokenizer.Open(f.gguf + f.json)
		if err != nil {
			return nil, &usageError{err, tokenizerHint(err)}
		}
		return t, nil
	case !cmd.Flags().Changed("model"): // the setting is for runs
		return nil, nil
	}
	k := &kit{runner: new(runner.Runner)}
	if err := a.connect(ctx, s, k); err != nil {
		return nil, err
	}
	m, ok := k.runner.Model.(models.VocabularyTeller)
	if !ok {
		return nil, &usageError{fmt.Errorf("the server of %s does not tell its vocabulary", masked(k.ref)), "--gguf takes the tokenizer of the model's file"}
	}
	t, err := m.Vocabulary(ctx)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// A nothingError says that no line came of the journals, and why.
type nothingError struct{ counts export.Counts }

func (e *nothingError) Error() string { return "nothing was exported" }

// nothingHint is about an export without lines.
func nothingHint(err error) string {
	e, _ := errors.AsType[*nothingError](err)
	switch c := e.counts; {
	case c.NoIDs > 0:
		return "the prompts were sent as text: name the model's tokenizer with --gguf FILE or --tokenizer-json FILE"
	case c.Chats > 0:
		return "with format chat the prompt is the server's own: --to messages exports it"
	case c.Filtered > 0:
		return "leave out --answered and --min-calls"
	case c.Unplayable > 0:
		return "\"stopgap trace replay\" tells why the runs cannot be made again"
	}
	return "\"stopgap trace show\" shows what there is"
}

// exportWords tells what became of all runs.
func exportWords(c export.Counts, journals, skipped int) string {
	words := []string{fmt.Sprintf("%d %s of %d %s in %d %s", c.Lines, plural(c.Lines, "line"), c.Runs, plural(c.Runs, "run"), journals, plural(journals, "journal"))}
	for _, left := range []struct {
		n    int
		what string
	}{
		{c.Earlier, "continued by a later question"}, {c.Killed, "without an end"}, {c.Refused, "never begun"}, {c.Failed, "failed or cancelled"},
		{c.Filtered, "not asked for"}, {c.Duplicates, "like one before"}, {c.Unplayable, "that cannot be made again"}, {c.Chats, "of a chat endpoint"},
		{c.NoIDs, "without ids"}, {c.NotText, "that are not text"}, {c.Nothing, "in which the model wrote nothing"}, {skipped, plural(skipped, "journal") + " left out"},
	} {
		if left.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", left.n, left.what))
		}
	}
	return strings.Join(words, ", ")
}
