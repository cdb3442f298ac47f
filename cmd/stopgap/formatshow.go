package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/conformance"
	"stopgap/runner"
	"stopgap/template"
)

func (a *app) formatShowCommand() *cobra.Command {
	s := newSettings()
	var asJSON, source bool
	cmd := &cobra.Command{
		Use: "show NAME|FILE", Short: "Show a whole run in a format, or the format's file",
		Long: `Show a whole run in a format: the prompt, a thought, calls, their results and the
answer, as far as the format has them, played with a scripted model. In a
terminal its segments are coloured by who wrote them; elsewhere only its bytes
are printed.`,
		Example: "  stopgap format show react\n  stopgap format show qwen --source > mine.tmpl\n  stopgap format show ./mine.tmpl --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return &usageError{fmt.Errorf("show takes one format, not %d", len(args)), `"stopgap format list" lists them`}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			switch {
			case asJSON && source:
				return &usageError{errors.New("--json contradicts --source"), "a format's file is text"}
			case source:
				return a.showSource(args[0])
			}
			return a.showRun(s, args[0], asJSON)
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace", "quiet")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&source, "source", false, "print the format's file")
		f.BoolVar(&asJSON, "json", false, "print the segments as JSON")
	})
	a.completeFlags(cmd, s)
	cmd.ValidArgsFunction = completeFormats
	return cmd
}

// showRun plays a format and prints the prompt as it then stands.
func (a *app) showRun(s *settings, name string, asJSON bool) error {
	f, err := template.Load(name)
	if err != nil {
		return err
	}
	if reason := conformance.Unplayable(f); reason != "" {
		return &usageError{fmt.Errorf("format %s has no run to show: %s", name, reason), "--source prints its file"}
	}
	segments, err := conformance.Play(f)
	if err != nil {
		return err
	}
	return a.printRun(s, segments, asJSON)
}

// printRun prints segments as "stopgap render" does.
func (a *app) printRun(s *settings, segments []runner.Segment, asJSON bool) error {
	screen := a.screen(a.stdout, s.color)
	switch {
	case asJSON:
		return a.printJSON(segments)
	case screen.colour || isTerminal(a.stdout):
		a.printSegments(a.stdout, screen, segments)
		a.printLegend(screen, segments)
		return nil
	}
	for _, seg := range segments {
		if _, err := io.WriteString(a.stdout, seg.Text); err != nil {
			return err
		}
	}
	return nil
}

// showSource prints the file of a format, whether it compiles or not.
func (a *app) showSource(name string) error {
	var src []byte
	var err error
	if slices.Contains(template.Names(), name) {
		src, err = template.Shipped(name)
	} else if src, err = os.ReadFile(name); err != nil {
		_, err = template.Load(name) // says it as everywhere else
	}
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(src)
	return err
}
