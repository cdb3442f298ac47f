package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/config"
)

// root is the whole tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stopgap COMMAND",
		Short: "Stop a local model where you say, fill the gap with a tool's answer, let it go on",
		Long: `stopgap asks a local model a question. It streams raw completions from Ollama,
llama-server or an OpenAI-style server, halts them where the model calls a tool,
runs the tool, appends its response and continues the same prompt.

Each setting can also stand in the environment (STOPGAP_MODEL for --model) or in
a configuration file: see "stopgap config --help".`,
		Example: `  stopgap run
  stopgap run "Which rivers cross three capitals?" --corpus ~/notes
  stopgap stop --stop-regex "</answer>" answer.txt
  stopgap doctor`,
		SuggestionsMinimumDistance: 2, DisableFlagsInUseLine: true,
		SilenceErrors: true, SilenceUsage: true,
		Version: readVersion().String(),
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("stopgap {{.Version}}\n")
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().String("config", "", "the configuration `FILE`; \"\" for none")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		a.runCommand(), a.batchCommand(), a.compareCommand(), a.reportCommand(), a.researchCommand(), a.bankCommand(), a.probeCommand(), a.stopCommand(), a.renderCommand(), a.tokensCommand(), a.formatCommand(), a.traceCommand(), a.exportCommand(), a.doctorCommand(), a.indexCommand(), a.serveCorpusCommand(), a.toolCommand(), a.mcpCommand(),
		a.modelsCommand(), a.configCommand(), a.versionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Use, c.DisableFlagsInUseLine = "completion SHELL", true
			c.Example = "  source <(stopgap completion bash)"
			c.Args, c.RunE = noSuchCommandOf, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// helpCommand is cobra's, with an error for what is no command.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Tell more about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil, cmd == root && len(rest) > 0:
				return noSuchCommand(root, args)
			case len(rest) > 0:
				return noSuchCommandOf(cmd, rest)
			}
			return cmd.Help()
		},
	}
}

// noSuchCommand refuses words after "stopgap" that are no command.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := `"stopgap --help" lists the commands`
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean \"stopgap %s\"?", near[0])
	} else if strings.Contains(args[0], " ") || len(args) > 1 {
		hint = `a question goes with "stopgap run"`
	}
	return &usageError{fmt.Errorf("unknown command %q", args[0]), hint}
}

// noArgs refuses arguments where a command takes none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{
		fmt.Errorf("%s takes no argument, but there is %q", cmd.CommandPath(), args[0]),
		fmt.Sprintf("\"%s --help\" tells what it takes", cmd.CommandPath()),
	}
}

// flagError gives a wrong flag a hint.
func flagError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("\"%s --help\" lists the flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			hint = fmt.Sprintf("did you mean --%s? %s", near, hint)
		}
	}
	return &usageError{err, hint}
}

// usage prints how a command is used, its flags under their headings.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nCommands:\n")
		width := 0
		for _, c := range cmd.Commands() {
			width = max(width, len(c.Name()))
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name(), c.Short)
			}
		}
	}
	for _, g := range groups {
		printFlags(w, string(g), cmd.LocalFlags(), func(f *pflag.Flag) bool {
			return len(f.Annotations[groupKey]) > 0 && f.Annotations[groupKey][0] == string(g)
		})
	}
	printFlags(w, "General", cmd.Flags(), func(f *pflag.Flag) bool { return len(f.Annotations[groupKey]) == 0 })
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\"%s COMMAND --help\" tells more about a command.\n", cmd.CommandPath())
	}
	return nil
}

func printFlags(w io.Writer, heading string, all *pflag.FlagSet, of func(*pflag.Flag) bool) {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	some.SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if of(f) && !f.Hidden {
			some.AddFlag(f)
		}
	})
	if text := some.FlagUsagesWrapped(helpWidth); text != "" {
		fmt.Fprintf(w, "\n%s:\n%s", heading, text)
	}
}

const helpWidth = 100 // columns
