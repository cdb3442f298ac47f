package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/tools"
)

func (a *app) toolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tool COMMAND", Short: "List the tools, look at one, or call one without a model",
		Long: `List the tools that "stopgap run --tools" takes, look at one, or call one without
a model, to see what a model would see.`,
		Example: "  stopgap tool list\n  stopgap tool show search\n  stopgap tool call search '{\"query\":\"notice\"}' --corpus ~/contracts",
		Args:    noSuchCommandOf,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.toolListCommand(), a.toolShowCommand(), a.toolCallCommand())
	return cmd
}

// A toolRow is one tool as --json tells it.
type toolRow struct {
	Name         string             `json:"name"`
	Family       string             `json:"family"`
	Capabilities []tools.Capability `json:"capabilities"`
	// Allowed says whether this run allows all of them.
	Allowed     bool            `json:"allowed"`
	SideEffects bool            `json:"side_effects"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (s *settings) toolRow(family string, t tools.Tool) toolRow {
	spec := t.Spec()
	row := toolRow{
		Name: spec.Name, Family: family, Capabilities: append([]tools.Capability{}, spec.Capabilities...), Allowed: s.permit([]tools.Tool{t}) == nil,
		SideEffects: spec.SideEffects, Description: spec.Description, Parameters: spec.Parameters,
	}
	if len(row.Parameters) == 0 {
		row.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return row
}

// needs is what a tool can reach, in words; "-" for nothing.
func (r toolRow) needs() string {
	if len(r.Capabilities) == 0 {
		return "-"
	}
	words := make([]string, len(r.Capabilities))
	for i, c := range r.Capabilities {
		words[i] = string(c)
	}
	return strings.Join(words, ",")
}

// asks says whether a call has to be allowed.
func (r toolRow) asks() string {
	if r.SideEffects {
		return "asks"
	}
	return "-"
}

func (a *app) toolListCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List all tools: what each can reach, whether it asks before it acts, and what it does",
		Long: `List all tools: the name for --tools, its family, what it can reach (--allow),
whether it asks before it acts, and what it does. Nothing is started for it: of
an MCP server there is one line, until --tools names the server.`,
		Example: "  stopgap tool list\n  stopgap tool list --json | jq -r 'select(.side_effects).name'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			w := &workshop{settings: s, app: a, wanted: s.tools, listing: true}
			defer w.close()
			shelves, err := w.shelves(ctx)
			if err != nil {
				return err
			}
			return a.printTools(s, shelves, asJSON)
		},
	}
	addFlags(cmd, s, groupTools, groupOutput)
	hideFlags(cmd, "max-calls", "call-limit", "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print one JSON object a tool") })
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) printTools(s *settings, shelves []shelf, asJSON bool) error {
	out := io.Writer(a.stdout)
	if isTerminal(a.stdout) && !asJSON { // otherwise plain tabs, for cut and awk
		columns := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		defer columns.Flush()
		out = columns
	}
	for _, shelf := range shelves {
		if shelf.err != nil { // the others are there all the same
			a.explain(shelf.err)
		}
		for _, t := range shelf.tools {
			row := s.toolRow(shelf.family, t)
			if asJSON {
				if err := a.printJSON(row); err != nil {
					return err
				}
				continue
			}
			if _, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", printable(row.Name), row.Family, row.needs(), row.asks(), printable(firstSentence(row.Description))); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstSentence is what a list has room for.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	return text
}

func (a *app) toolShowCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a tool: what a model is told of it, and what it can reach",
		Example: "  stopgap tool show search\n  stopgap tool show search --json | jq .parameters",
		Args:    oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			w := &workshop{settings: s, app: a, wanted: args, listing: true}
			defer w.close()
			shelves, err := w.shelves(ctx)
			if err != nil {
				return err
			}
			found, err := pick(shelves, args[0])
			if err != nil {
				return err
			}
			for i, t := range found.tools {
				if err := a.printTool(s.toolRow(found.family, t), i > 0, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addFlags(cmd, s, groupTools, groupOutput)
	hideFlags(cmd, "tools", "max-calls", "call-limit", "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") })
	a.completeFlags(cmd, s)
	cmd.ValidArgsFunction = a.completeTools(s)
	return cmd
}

func (a *app) printTool(row toolRow, more, asJSON bool) error {
	if asJSON {
		return a.printJSON(row)
	}
	var b strings.Builder
	if more {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s (%s)\n", row.Name, row.Family)
	if len(row.Capabilities) > 0 {
		fmt.Fprintf(&b, "needs --allow %s\n", row.needs())
	}
	if row.SideEffects {
		b.WriteString("asks before it acts, unless there is --yes\n")
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, row.Parameters, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(row.Parameters)
	}
	fmt.Fprintf(&b, "\n%s\n\n%s\n", row.Description, pretty.String())
	_, err := io.WriteString(a.stdout, printableLines(b.String()))
	return err
}

// printableLines makes a text of several lines printable.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n")
}

// oneTool wants the name of a tool.
func oneTool(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes one name of a tool, not %d", cmd.CommandPath(), len(args)), "\"stopgap tool list\" lists what there is"}
}

// completeTools offers the names of tools to the shell. Nothing is started.
func (a *app) completeTools(s *settings) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndexByte(typed, ','); i >= 0 { // --tools a,b
			before = typed[:i+1]
		}
		w := &workshop{settings: s, app: a, listing: true}
		defer w.close()
		var names []string
		_ = a.settle(cmd, s)
		shelves, _ := w.shelves(cmd.Context()) // the shell has no place for an error
		for _, shelf := range shelves {
			for _, t := range shelf.tools {
				names = append(names, before+printable(t.Spec().Name))
			}
			names = append(names, before+shelf.family)
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
