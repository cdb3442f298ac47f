package main

import (
	"context"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/tools/corpus"
)

func (a *app) indexCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "index DIR",
		Short: "Build or update the search index of a folder of documents",
		Long: `Build or update the search index of a folder of documents, or of a .jsonl file
with one document a line. Only what has changed since the last time is read.
"stopgap run --corpus DIR" does the same before it asks.`,
		Example: "  stopgap index ~/notes\n  stopgap index papers.jsonl --index papers.db",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return &usageError{fmt.Errorf("index takes one folder or file, not %d", len(args)), "for example: stopgap index ~/notes"}
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			s.corpus = args[0]
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			x, err := a.buildIndex(ctx, s)
			if err != nil {
				return err
			}
			defer x.Close()
			return a.printIndex(s.corpus, x, asJSON)
		},
	}
	addSome(cmd, s, groupTools, "index")
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print what was done as JSON") })
	return cmd
}

// openCorpus opens the corpus of a run, and says in a line what was done.
func (a *app) openCorpus(ctx context.Context, s *settings) (*corpus.Index, error) {
	if s.corpus == sampleCorpus {
		return openSample(ctx)
	}
	x, err := a.buildIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	if st := x.Stats(); !s.quiet && st.Added+st.Updated+st.Removed > 0 {
		a.note("indexed %s: %s", s.corpus, indexWords(st))
	}
	return x, nil
}

// buildIndex brings the index up to date, with a bar where it takes a while.
func (a *app) buildIndex(ctx context.Context, s *settings) (*corpus.Index, error) {
	cfg := corpus.Config{Path: s.corpus, Index: s.index}
	done := func() {}
	if screen := a.screen(a.stderr, s.color); screen.cursor && !s.quiet {
		cfg.Progress, done = a.indexBar(screen)
	}
	x, err := corpus.Open(ctx, cfg)
	done()
	return x, err
}

// indexBar draws the progress on standard error.
func (a *app) indexBar(screen screen) (func(corpus.Progress), func()) {
	var bar *progressbar.ProgressBar
	show := func(p corpus.Progress) {
		if p.TotalBytes == 0 {
			return
		}
		if bar == nil {
			bar = progressbar.NewOptions64(p.TotalBytes,
				progressbar.OptionSetWriter(a.stderr), progressbar.OptionShowBytes(true),
				progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionSetWidth(max(1, min(30, screen.width()-70))),
				progressbar.OptionSetDescription("indexing"))
		}
		if p.Waiting {
			bar.Describe("waiting for another process")
		} else {
			bar.Describe(screen.fit(printable(fmt.Sprintf("%d/%d %s", p.Files, p.TotalFiles, p.Name)), 50))
		}
		bar.ChangeMax64(p.TotalBytes)
		_ = bar.Set64(min(p.Bytes, p.TotalBytes)) // it only draws
	}
	return show, func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
}

// indexWords sums up what was done.
func indexWords(st corpus.Stats) string {
	return fmt.Sprintf("%d %s, %d %s; files: %d added, %d updated, %d removed, %d unchanged; %d skipped; %s",
		st.Documents, plural(st.Documents, "document"), st.Passages, plural(st.Passages, "passage"),
		st.Added, st.Updated, st.Removed, st.Unchanged, st.Skipped.Total, duration(st.Duration))
}

// An indexReport is the JSON of "stopgap index".
type indexReport struct {
	Path      string       `json:"path"`  // of the corpus
	Index     string       `json:"index"` // the file
	Documents int          `json:"documents"`
	Passages  int          `json:"passages"`
	Added     int          `json:"added"`
	Updated   int          `json:"updated"`
	Removed   int          `json:"removed"`
	Unchanged int          `json:"unchanged"`
	Skipped   corpus.Skips `json:"skipped"`
	Rebuilt   string       `json:"rebuilt,omitempty"`
	Seconds   float64      `json:"seconds"`
}

func (a *app) printIndex(path string, x *corpus.Index, asJSON bool) error {
	st := x.Stats()
	if asJSON {
		return a.printJSON(indexReport{
			path, x.Path(), st.Documents, st.Passages, st.Added, st.Updated, st.Removed, st.Unchanged,
			st.Skipped, st.Rebuilt, st.Duration.Seconds(),
		})
	}
	if st.Rebuilt != "" {
		a.note("the index was built anew: %s", st.Rebuilt)
	}
	for _, skip := range st.Skipped.First {
		a.note("skipped %s", skip)
	}
	if n := st.Skipped.Total - len(st.Skipped.First); n > 0 {
		a.note("skipped %d more (%s)", n, st.Skipped)
	}
	_, err := fmt.Fprintf(a.stdout, "indexed %s: %s\nindex: %s\n", path, indexWords(st), x.Path())
	return err
}
