package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/conformance"
	"stopgap/template"
)

// A formatReport is the JSON of "stopgap format check", one for each format.
type formatReport struct {
	Format  string               `json:"format"`
	Mistake *mistake             `json:"mistake,omitempty"`
	Checks  []conformance.Result `json:"checks,omitempty"`
	Found   int                  `json:"found"`
}

// A mistake is why a file is no format.
type mistake struct {
	Line    int    `json:"line,omitempty"`
	Field   string `json:"field,omitempty"` // the head's key, or the block
	Message string `json:"message"`
}

// errFindings gives the exit code 1; the report has told the rest.
var errFindings = errors.New("a format does not pass a check")

func (a *app) formatCheckCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check FILE|NAME...", Short: "Check that a format file does all that a format must",
		Long: `Check that a format file does all that a format must.

First every file is compiled: an unknown key, an expression that is none, a block
that is missing, a tag that nothing else knows are named with their line, and
nothing is run. Then whole runs are played, with a scripted model whose turns the
format itself spells and tools that answer by heart: calls, results and failures,
a last answer, text from outside that is full of the format's own tags.

Exit codes: 0 all checks passed, 1 there are findings, 2 a file has a mistake.`,
		Example: "  stopgap format check mine.tmpl\n  stopgap format check *.tmpl --json | jq .found",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return &usageError{errors.New("there is no format to check"), "name a file, or a format: stopgap format check mine.tmpl"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.checkFormats(s, args, asJSON)
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print one JSON object a format, a line") })
	a.completeFlags(cmd, s)
	cmd.ValidArgsFunction = completeFormats
	return cmd
}

// checkFormats compiles all the formats, and where none has a mistake plays
// them.
func (a *app) checkFormats(s *settings, names []string, asJSON bool) error {
	var formats []*template.Format
	var mistakes []error
	for _, name := range names {
		f, err := template.Load(name)
		if err != nil {
			mistakes = append(mistakes, &usageError{err, `"stopgap format show NAME --source" prints one that works`})
		}
		formats = append(formats, f)
	}
	if len(mistakes) > 0 {
		return a.tellMistakes(names, mistakes, asJSON)
	}
	found := 0
	for i, f := range formats {
		report, err := a.checkFormat(s, names[i], f, asJSON)
		if err != nil {
			return err
		}
		found += report.Found
	}
	if found > 0 {
		return errFindings
	}
	return nil
}

// tellMistakes prints all mistakes but the last, which is the error.
func (a *app) tellMistakes(names []string, mistakes []error, asJSON bool) error {
	if asJSON {
		for _, err := range mistakes {
			if e, ok := errors.AsType[*template.FormatError](err); ok {
				if err := a.printJSON(formatReport{Format: e.Name, Mistake: &mistake{e.Line, e.Field, e.Msg}}); err != nil {
					return err
				}
			}
		}
	}
	if sound := len(names) - len(mistakes); sound > 0 {
		a.note("%d %s compiled, but nothing is played as long as there are mistakes", sound, plural(sound, "format"))
	}
	for _, err := range mistakes[:len(mistakes)-1] {
		a.explain(err)
	}
	return mistakes[len(mistakes)-1]
}

// checkFormat plays one format and prints what came of it.
func (a *app) checkFormat(s *settings, name string, f *template.Format, asJSON bool) (formatReport, error) {
	screen, busy := a.screen(a.stdout, s.color), a.screen(a.stderr, s.color)
	busy.cursor = busy.cursor && !s.quiet
	spin := newSpinner(a.stderr, busy)
	defer spin.Close()
	report := formatReport{Format: name}
	spin.show("playing " + printable(name))
	for r := range conformance.Results(f) {
		report.Checks = append(report.Checks, r)
		report.Found += len(r.Findings)
	}
	spin.hide()
	if asJSON {
		return report, a.printJSON(report)
	}
	if !s.quiet {
		fmt.Fprintln(a.stdout, screen.paint(bold, printable(name)))
	}
	passed := 0
	for _, r := range report.Checks {
		if r.Skipped == "" && len(r.Findings) == 0 {
			passed++
		}
		a.printCheck(screen, s.quiet, name, r)
	}
	if !s.quiet {
		fmt.Fprintf(a.stdout, "  %d %s passed, %d %s, %d not for this format\n", passed, plural(passed, "check"),
			report.Found, plural(report.Found, "finding"), skipped(report.Checks))
	}
	return report, a.stdout.err
}

func skipped(checks []conformance.Result) int {
	n := 0
	for _, r := range checks {
		if r.Skipped != "" {
			n++
		}
	}
	return n
}

// printCheck prints one line for a check that passed or does not apply, and one
// for each finding.
func (a *app) printCheck(screen screen, quiet bool, name string, r conformance.Result) {
	switch {
	case quiet:
		for _, f := range r.Findings {
			fmt.Fprintln(a.stdout, printable(fmt.Sprintf("%s: %s: %s: %s", name, f.Check, f.Where, f.Message)))
		}
	case r.Skipped != "":
		fmt.Fprintln(a.stdout, screen.paint(dim, "  - "+r.Check+": "+r.Skipped))
	case len(r.Findings) == 0:
		fmt.Fprintln(a.stdout, screen.paint(green, "  ✓ ")+r.Check)
	}
	if quiet {
		return
	}
	for _, f := range r.Findings {
		for i, line := range wrap(printable(fmt.Sprintf("! %s: %s: %s", f.Check, f.Where, f.Message)), screen.width(), 2) {
			if i == 0 {
				line = screen.paint(yellow, line)
			}
			fmt.Fprintln(a.stdout, line)
		}
	}
}
