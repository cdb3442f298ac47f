package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f with each command that stands in a help text, but for
// those of cobra.
func everyCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" {
			everyCommand(c, f)
		}
	}
}

func TestHelp(t *testing.T) {
	root := new(app).root()
	var out bytes.Buffer
	root.SetOut(&out)
	everyCommand(root, func(cmd *cobra.Command) {
		if !cmd.HasExample() {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		out.Reset()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		help := out.String()
		column := -1
		for _, c := range cmd.Commands() {
			if !c.IsAvailableCommand() {
				continue
			}
			before, _, ok := strings.Cut(help, "  "+c.Short+"\n")
			at := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
			if !ok || column >= 0 && at != column {
				t.Errorf("%s: the description of %s is not in the column of the others", cmd.CommandPath(), c.Name())
			}
			column = at
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			if !f.Hidden && strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) { // pflag counts columns in bytes
				t.Errorf("%s: the value of --%s is called %q: not in ASCII", cmd.CommandPath(), f.Name, name)
			}
			if !f.Hidden && (name == "string" || name == "int") {
				t.Errorf("%s: the value of --%s has no name", cmd.CommandPath(), f.Name)
			}
		})
	})
}
