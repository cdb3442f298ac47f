package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/tools"
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
"stopgap run --corpus DIR" does the same before it asks.

With --embed, passages get vectors from an embedding model, and searches rank by
words and by vectors. Ctrl-C loses nothing: the next time it goes on.`,
		Example: "  stopgap index ~/notes\n  stopgap index papers.jsonl --index papers.db\n  stopgap index ~/notes --embed ollama:nomic-embed-text",
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
	addSome(cmd, s, groupTools, "index", "embed", "converter")
	addSome(cmd, s, groupModel, "api-key-env")
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print what was done as JSON") })
	a.completeEmbed(cmd, s)
	return cmd
}

// Documents are what search and read look into: an index, or a server that has
// one.
type documents interface {
	Tools() []tools.Tool
	Close() error
}

// openCorpus opens the corpus of a run: the sample, a server, a folder or a file.
func (a *app) openCorpus(ctx context.Context, s *settings) (documents, error) {
	if onServer(s.corpus) {
		return corpus.OpenRemote(ctx, s.corpus, corpus.RemoteOptions{})
	}
	return a.openIndex(ctx, s)
}

// onServer reports whether a corpus is the address of a server.
func onServer(corpus string) bool {
	return strings.HasPrefix(corpus, "http://") || strings.HasPrefix(corpus, "https://")
}

// openIndex opens a corpus of this machine, and says in a line what was done.
func (a *app) openIndex(ctx context.Context, s *settings) (*corpus.Index, error) {
	if s.corpus == sampleCorpus {
		return openSample(ctx)
	}
	x, err := a.buildIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	if st := x.Stats(); !s.quiet && st.Added+st.Updated+st.Removed+st.Embedded > 0 {
		a.note("indexed %s: %s", s.corpus, indexWords(st))
	}
	return x, nil
}

// buildIndex brings the index up to date, with a bar where it takes a while.
func (a *app) buildIndex(ctx context.Context, s *settings) (*corpus.Index, error) {
	embedder, err := a.embedder(s)
	if err != nil {
		return nil, err
	}
	cfg := corpus.Config{Path: s.corpus, Index: s.index, Embedder: embedder, Notice: a.onceWithout(s)}
	s.readFiles(&cfg)
	done := func() {}
	if screen := a.screen(a.stderr, s.color); screen.cursor && !s.quiet {
		cfg.Progress, done = a.indexBar(screen)
	}
	x, err := corpus.Open(ctx, cfg)
	done()
	return x, err
}

// indexBar draws the progress on standard error: the bytes of the files, and
// then the passages that get vectors.
func (a *app) indexBar(screen screen) (func(corpus.Progress), func()) {
	var bar *progressbar.ProgressBar
	embedding := false
	wipe := func() {
		if bar != nil {
			_ = bar.Clear() // it only draws
		}
	}
	show := func(p corpus.Progress) {
		done, total := p.Bytes, p.TotalBytes
		words := fmt.Sprintf("%d/%d %s", p.Files, p.TotalFiles, p.Name)
		if p.TotalPassages > 0 {
			done, total = int64(p.Passages), int64(p.TotalPassages)
			words = fmt.Sprintf("vectors %d/%d", p.Passages, p.TotalPassages)
		}
		if p.Waiting {
			words = "waiting for another process"
		}
		if total == 0 {
			return
		}
		if bar == nil || embedding != (p.TotalPassages > 0) {
			wipe()
			embedding = p.TotalPassages > 0
			bar = progressbar.NewOptions64(total,
				progressbar.OptionSetWriter(a.stderr), progressbar.OptionShowBytes(!embedding),
				progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(embedding),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionSetWidth(max(1, min(30, screen.width()-70))),
				progressbar.OptionSetDescription("indexing"))
		}
		bar.Describe(screen.fit(printable(words), 50))
		bar.ChangeMax64(total)
		_ = bar.Set64(min(done, total)) // it only draws
	}
	return show, wipe
}

// indexWords sums up what was done.
func indexWords(st corpus.Stats) string {
	vectors := ""
	if st.Embedded > 0 {
		vectors = fmt.Sprintf("%d new %s; ", st.Embedded, plural(st.Embedded, "vector"))
	}
	return fmt.Sprintf("%d %s, %d %s; files: %d added, %d updated, %d removed, %d unchanged; %d skipped; %s%s",
		st.Documents, plural(st.Documents, "document"), st.Passages, plural(st.Passages, "passage"),
		st.Added, st.Updated, st.Removed, st.Unchanged, st.Skipped.Total, vectors, duration(st.Duration))
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
	Embedded  int          `json:"embedded,omitempty"` // texts that got a vector now
	Skipped   corpus.Skips `json:"skipped"`
	Rebuilt   string       `json:"rebuilt,omitempty"`
	Seconds   float64      `json:"seconds"`
}

func (a *app) printIndex(path string, x *corpus.Index, asJSON bool) error {
	st := x.Stats()
	if asJSON {
		return a.printJSON(indexReport{
			path, x.Path(), st.Documents, st.Passages, st.Added, st.Updated, st.Removed, st.Unchanged,
			st.Embedded, st.Skipped, st.Rebuilt, st.Duration.Seconds(),
		})
	}
	if st.Rebuilt != "" {
		a.note("built anew: %s", st.Rebuilt)
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
