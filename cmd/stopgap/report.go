package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/batch"
	"stopgap/internal/compare"
	drawing "stopgap/internal/report" // report is a type of the stop command
)

// The ways to draw a comparison.
var drawings = []string{"terminal", "html", "md", "csv", "json"}

// reportFlags are those of "stopgap report".
type reportFlags struct {
	to  []string
	out string
}

func (a *app) reportCommand() *cobra.Command {
	s := newSettings()
	f := reportFlags{}
	cmd := &cobra.Command{
		Use:   "report FOLDER",
		Short: "Draw a comparison again, from its folder alone",
		Long: `Draw a comparison again, which "stopgap compare" has made, from its folder alone:
no server is asked. The folder of a batch is drawn as one configuration.

  terminal  the scores, the pairs and all measures, on standard output
  html      report.html: one page with charts, filters and every run, which needs
            no network and no other file
  md        report.md: the tables, and the items on which the configurations differ
  csv       report.csv: a row for each rollout
  json      report.json: all of it; and times.json, what differs each time

The same results give the same files, byte for byte, but for times.json.

Exit codes: 0 drawn, 2 wrong usage.`,
		Example: `  stopgap report hotpotqa.compare
  stopgap report hotpotqa.compare --to terminal
  stopgap report hotpotqa.batch --to html --out ~/reports`,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 1:
				return nil
			case 0:
				return &usageError{errors.New("report needs a folder"), `"stopgap compare" makes one`}
			}
			return &usageError{fmt.Errorf("report takes one folder, not %d", len(args)), "draw one after the other"}
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.report(ctx, s, args[0], f)
		},
	}
	addSome(cmd, s, groupOutput, "quiet", "color")
	known := func(word string) error {
		if !slices.Contains(drawings, word) {
			return fmt.Errorf("%q is not one of %s", word, strings.Join(drawings, ", "))
		}
		return nil
	}
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.Var(words{&f.to, "NAME,…", known}, "to", "what to draw: "+strings.Join(drawings, ", ")+" (default all)")
		p.StringVar(&f.out, "out", "", "the `FOLDER` of the files (default the comparison's)")
	})
	a.completeFlags(cmd, s)
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(drawings, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// unreadable is an error of the user's: a folder that nothing can be drawn of.
func unreadable(err error) error {
	if is[*compare.FolderError](err) || is[*batch.FolderError](err) {
		return &usageError{err, "report takes the folder that \"stopgap compare\" or \"stopgap batch\" has filled"}
	}
	return err
}

// report draws the comparison of a folder.
func (a *app) report(ctx context.Context, s *settings, dir string, f reportFlags) error {
	if len(f.to) == 0 {
		f.to = drawings
	}
	if f.out == "" {
		f.out = dir
	}
	sp := newSpinner(a.stderr, a.busy(s))
	defer sp.Close()
	sp.show("reading the results")
	r, err := compare.Read(dir)
	if err != nil {
		return unreadable(err)
	}
	times, err := compare.ReadTimes(dir, r)
	if err != nil {
		return unreadable(err)
	}
	if slices.Contains(f.to, "terminal") {
		sp.hide()
		screen := a.screen(a.stdout, s.color)
		if err := drawing.Terminal(a.stdout, r, times, drawing.Screen{Width: screen.width(), Colour: screen.colour}); err != nil {
			return err
		}
	}
	var wrote []string
	for _, file := range a.reportFiles(ctx, dir, r, times, sp) {
		if !slices.Contains(f.to, file.kind) {
			continue
		}
		path := filepath.Join(f.out, file.name)
		size, err := writeWhole(ctx, path, file.draw)
		if err != nil {
			return err
		}
		wrote = append(wrote, fmt.Sprintf("%s (%s)", path, humanize.Bytes(uint64(size))))
	}
	sp.hide()
	if len(wrote) > 0 && !s.quiet {
		a.note("wrote %s", strings.Join(wrote, ", "))
	}
	return nil
}

// busy is the screen that a spinner is on; it has none where nothing is told.
func (a *app) busy(s *settings) screen {
	busy := a.screen(a.stderr, s.color)
	if s.quiet {
		busy.cursor = false
	}
	return busy
}

// A reportFile is one of the files that a comparison is drawn into.
type reportFile struct {
	kind, name string
	draw       func(io.Writer) error
}

func (a *app) reportFiles(ctx context.Context, dir string, r *compare.Report, times *compare.Times, sp *spinner) []reportFile {
	total := 0
	for _, c := range r.Configurations {
		total += c.Done
	}
	var done atomic.Int64
	runs := func(run *compare.Run) ([]compare.Segment, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sp.show(fmt.Sprintf("reading run %d of %d", done.Add(1), total))
		return compare.Segments(ctx, dir, run, drawing.Longest)
	}
	return []reportFile{
		{"html", "report.html", func(w io.Writer) error { return drawing.HTML(w, r, runs) }},
		{"md", "report.md", func(w io.Writer) error { return drawing.Markdown(w, r) }},
		{"csv", "report.csv", func(w io.Writer) error { return drawing.CSV(w, r) }},
		{"json", "report.json", func(w io.Writer) error { return drawing.JSON(w, r) }},
		{"json", "times.json", func(w io.Writer) error { return drawing.JSON(w, times) }},
	}
}

// writeWhole writes a file that nobody sees half of, for its owner alone: it
// holds prompts. It gives its size.
func writeWhole(ctx context.Context, path string, draw func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".stopgap-report-*")
	if err != nil {
		return 0, &usageError{fmt.Errorf("cannot write %s: %w", path, fileReason(err)), "--out takes a folder that exists, where you may write"}
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it may be closed
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	if err = draw(w); err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = w.Flush()
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), path)
}
