package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/models"
	"stopgap/template"
)

// A modelRow is one model that can be used now.
type modelRow struct {
	Ref    string `json:"ref"` // as --model takes it
	Size   int64  `json:"size,omitempty"`
	Detail string `json:"detail,omitempty"`
	Server string `json:"server"`
	URL    string `json:"url,omitempty"`
}

func (a *app) modelsCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "models", Short: "List the models of all servers that answer and the built-in one, as --model takes them",
		Example: "  stopgap models\n  stopgap run --model \"$(stopgap models | head -1 | cut -f1)\" \"…\"",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			found := models.Probe(ctx, a.modelOptions(s))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return a.printModels(modelRows(found), asJSON)
		},
	}
	addFlags(cmd, s, groupModel)
	hideFlags(cmd, "model", "context", "first-token-timeout", "token-timeout", "prefill")
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") })
	return cmd
}

// hideFlags leaves flags that a command does not use out of its help. They
// stay, so that the settings are checked alike everywhere.
func hideFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.Flags().MarkHidden(name) // the flag is there; it was just added
	}
}

// modelRows lists the models of all findings as references.
func modelRows(found []models.Finding) []modelRow {
	var rows []modelRow
	for _, f := range found {
		for _, m := range f.Models {
			rows = append(rows, modelRow{refOf(f, m), m.Size, m.Detail, f.Server, masked(f.URL)})
		}
	}
	return rows
}

// refOf gives the reference of one model of a server.
func refOf(f models.Finding, m models.Listed) string {
	kind, _, _ := strings.Cut(f.Ref, ":")
	switch {
	case kind == "llamacpp", kind == "builtin":
		return f.Ref // one model
	case kind == "openai":
		return "openai:" + f.URL + "#" + m.Name
	}
	return "ollama:" + m.Name
}

func (a *app) printModels(rows []modelRow, asJSON bool) error {
	if asJSON {
		return a.printJSON(rows)
	}
	w := io.Writer(a.stdout)
	if isTerminal(a.stdout) { // otherwise plain tabs, for cut and awk
		columns := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		defer columns.Flush()
		w = columns
	}
	for _, r := range rows {
		size := ""
		if r.Size > 0 {
			size = humanize.Bytes(uint64(r.Size))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(r.Ref), size, printable(r.Detail), r.Server)
	}
	return nil
}

// completionLimit is how long a shell waits for what it offers.
const completionLimit = 2 * time.Second

// completeFlags offers models and formats to the shell.
func (a *app) completeFlags(cmd *cobra.Command, s *settings) {
	complete := func(name string, f cobra.CompletionFunc) {
		if cmd.Flags().Lookup(name) == nil {
			return // not every command has them all
		}
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // two functions for one flag
		}
	}
	complete("model", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		var refs []string
		for _, r := range modelRows(models.Probe(ctx, a.modelOptions(s))) {
			refs = append(refs, printable(r.Ref))
		}
		return refs, cobra.ShellCompDirectiveNoFileComp
	})
	complete("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return template.Names(), cobra.ShellCompDirectiveDefault // files too
	})
	complete("tool-choice", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"auto", "none", "required"}, cobra.ShellCompDirectiveNoFileComp
	})
	complete("calls-in-think", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"auto", "yes", "no"}, cobra.ShellCompDirectiveNoFileComp
	})
	complete("tools", a.completeTools(s))
	complete("allow", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"net", "files", "code", "net,files", "net,files,code"}, cobra.ShellCompDirectiveNoFileComp
	})
	complete("color", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp
	})
	a.completeEmbed(cmd, s)
	if cmd.Flags().Lookup("stops") != nil {
		_ = cmd.MarkFlagFilename("stops", "yaml", "yml") // the flag is there
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}
