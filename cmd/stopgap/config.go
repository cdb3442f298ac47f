package main

import (
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/config"
)

// A setting is one line of "stopgap config".
type setting struct {
	Name  string       `json:"name"`
	Value string       `json:"value"`
	From  config.Place `json:"from"`
	Where string       `json:"where,omitempty"` // the flag, the variable, or the file and its line
}

func (a *app) configCommand() *cobra.Command {
	var asJSON bool
	s := newSettings()
	cmd := &cobra.Command{
		Use: "config", Short: "Show each setting, its value and where it came from",
		Long: `Show each setting, its value and where it came from: a flag, the environment,
the configuration file, or the default, in that order. A setting is called
alike everywhere: --max-turns on the command line, STOPGAP_MAX_TURNS in the
environment, and in the file

    max-turns: 8
    call-limit:
      search: 5

Keys of servers are never settings: api-key-env names the variable that has it.`,
		Example: "  stopgap config\n  STOPGAP_MODEL=ollama:qwen3 stopgap config\n  stopgap config path",
		Args:    noSuchCommandOf,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			return a.printSettings(s.list(cmd.Flags(), a.env(s.apiKeyEnv) != ""), asJSON)
		},
	}
	addFlags(cmd, s, groups[:len(groups)-1]...)
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") })
	cmd.AddCommand(&cobra.Command{
		Use: "path", Short: "Print where the configuration file is, or would be",
		Example: "  $EDITOR \"$(stopgap config path)\"",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, _ := a.configPath(cmd)
			if path == "" {
				return &usageError{fmt.Errorf("there is no configuration file"), "name one with --config or STOPGAP_CONFIG"}
			}
			_, err := fmt.Fprintln(a.stdout, path)
			return err
		},
	})
	return cmd
}

// noSuchCommandOf refuses words that are no subcommand.
func noSuchCommandOf(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("\"%s --help\" lists what there is", cmd.CommandPath())
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := config.Nearest(args[0], names); near != "" {
		hint = fmt.Sprintf("did you mean \"%s %s\"?", cmd.CommandPath(), near)
	}
	return &usageError{fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), hint}
}

// list gives all settings in the order of the help.
func (s *settings) list(flags *pflag.FlagSet, hasKey bool) []setting {
	var out []setting
	for _, name := range settingNames() {
		f, o := flags.Lookup(name), s.origins[name]
		row := setting{Name: name, Value: masked(f.Value.String()), From: o.Place, Where: o.Detail}
		if name == "api-key-env" {
			row.Value += map[bool]string{true: " (set)", false: " (not set)"}[hasKey]
		}
		out = append(out, row)
	}
	return out
}

func (a *app) printSettings(rows []setting, asJSON bool) error {
	if asJSON {
		return a.printJSON(rows)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		value := strings.ReplaceAll(r.Value, "\n", ", ")
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, printable(value), config.Origin{Place: r.From, Detail: r.Where})
	}
	return w.Flush()
}

// password is the password of an address.
var password = regexp.MustCompile(`(://[^/?#:@\s]*:)[^/?#@\s]+@`)

// masked hides the passwords of addresses.
func masked(s string) string { return password.ReplaceAllString(s, "${1}****@") }
