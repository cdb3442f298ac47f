package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/conformance"
	"stopgap/template"
)

func (a *app) formatCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "format COMMAND", Short: "List, show, check and write prompt formats",
		Long: `List, show, check and write prompt formats.

A format is a text file that says how prompts are rendered, how calls and answers
are spelled and where generation stops. --format of "stopgap run" takes the name
of one or the path of a file.`,
		Example: `  stopgap format list
  stopgap format show react
  stopgap format new mine && stopgap format check mine.tmpl`,
		Args: noSuchCommandOf,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.formatListCommand(), a.formatShowCommand(), a.formatCheckCommand(), a.formatNewCommand())
	return cmd
}

// completeFormats offers the shipped formats, and files.
func completeFormats(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return template.Names(), cobra.ShellCompDirectiveDefault
}

// A formatRow is one format of the list.
type formatRow struct {
	Name        string            `json:"name"`
	Calls       template.CallKind `json:"calls,omitempty"` // the kind of spelling; empty where a server decides
	Description string            `json:"description"`
	Thinking    string            `json:"thinking,omitempty"` // how it opens; empty for none
	Opened      bool              `json:"opened,omitempty"`   // the prompt opens it
	SingleCall  bool              `json:"single_call,omitempty"`
	Call        string            `json:"call,omitempty"` // one, as the format spells it
}

func (a *app) formatListCommand() *cobra.Command {
	s := newSettings()
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the formats that --format takes by name",
		Long: `List the formats that --format takes by name: how calls are spelled, whether the
model thinks and how that opens, whether it makes several calls a turn, and what
a call looks like, where "↵" is a line end.`,
		Example: "  stopgap format list\n  stopgap format list --json | jq -r '.[].name'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			if asJSON && asMarkdown {
				return &usageError{errors.New("--json contradicts --markdown"), "use one of them"}
			}
			rows, err := formatRows()
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return a.printJSON(rows)
			case asMarkdown:
				_, err := io.WriteString(a.stdout, markdownTable(rows))
				return err
			}
			return a.printFormats(a.screen(a.stdout, s.color), rows)
		},
	}
	addFlags(cmd, s, groupOutput)
	hideFlags(cmd, "trace", "quiet")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print JSON")
		f.BoolVar(&asMarkdown, "markdown", false, "print the table of docs/formats.md")
	})
	a.completeFlags(cmd, s)
	return cmd
}

// formatRows describes the shipped formats.
func formatRows() ([]formatRow, error) {
	var rows []formatRow
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, formatRow{
			Name: name, Calls: f.Call.Kind, Description: f.Description,
			Thinking: f.Think.Open, Opened: f.Think.Opened, SingleCall: f.SingleCall, Call: conformance.Call(f),
		})
	}
	return rows, nil
}

// columns are a row in words.
func (r formatRow) columns() (calls, thinking, several, call string) {
	calls, thinking, several = string(cmp.Or(r.Calls, "the server's")), cmp.Or(r.Thinking, "no"), "several"
	if r.Opened {
		thinking += ", opened"
	}
	switch {
	case r.Calls == "":
		thinking, several = "-", "-"
	case r.SingleCall:
		several = "one"
	}
	return calls, thinking, several, strings.ReplaceAll(r.Call, "\n", "↵")
}

// printFormats prints the list: two lines a format for people, one with tabs for
// cut and awk.
func (a *app) printFormats(screen screen, rows []formatRow) error {
	for _, r := range rows {
		calls, thinking, several, call := r.columns()
		if screen.width() == plain {
			fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, calls, thinking, several, call, r.Description)
			continue
		}
		details := "calls: " + calls
		if r.Calls != "" {
			details = fmt.Sprintf("calls: %s, %s a turn; thinking: %s; %s", calls, several, thinking, call)
		}
		fmt.Fprintln(a.stdout, screen.paint(bold, r.Name)+screen.fit("  "+r.Description, cells(r.Name)))
		fmt.Fprintln(a.stdout, screen.paint(dim, screen.fit("  "+details, 0)))
	}
	return a.stdout.err
}

// markdownTable is the table of the documentation.
func markdownTable(rows []formatRow) string {
	var b strings.Builder
	b.WriteString("| format | what it is | calls | thinking | calls a turn | a call |\n|---|---|---|---|---|---|\n")
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	code := func(text string) string {
		if text == "" || text == "-" || text == "no" {
			return text
		}
		tag, rest, _ := strings.Cut(text, ", ")
		if rest != "" {
			return "`" + cell(tag) + "`, " + rest
		}
		return "`" + cell(tag) + "`"
	}
	for _, r := range rows {
		calls, thinking, several, call := r.columns()
		if call != "" {
			call = "`" + cell(call) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.Name, cell(r.Description), calls, code(thinking), several, call)
	}
	return b.String()
}
