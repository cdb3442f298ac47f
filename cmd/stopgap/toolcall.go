package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/template"
	"stopgap/tools"
)

var errNoModel = errors.New("there is no model to ask; \"stopgap tool call\" takes one with --model")

// A toolResult is what "stopgap tool call --json" prints.
type toolResult struct {
	Name    string       `json:"name"`
	Status  tools.Status `json:"status"`
	Content string       `json:"content"`       // what a model would see
	Cut     int          `json:"cut,omitempty"` // tokens that were left out
	Seconds float64      `json:"seconds"`
}

// A failedCall is a call whose result is not what was asked for. The result
// says why; nothing more is printed.
type failedCall tools.Status

func (e failedCall) Error() string { return "the call ended with " + string(e) }

// code is the exit code.
func (e failedCall) code() int {
	switch tools.Status(e) {
	case tools.BadArguments:
		return exitUsage
	case tools.Cancelled:
		return exitInterrupted
	}
	return exitNoAnswer
}

func (a *app) toolCallCommand() *cobra.Command {
	s := newSettings()
	var asJSON bool
	cmd := &cobra.Command{
		Use: "call NAME [ARGUMENTS]", Short: "Call a tool without a model, and print what a model would see",
		Long: `Call a tool without a model, and print what a model would see: the result, cut
where it is too long, or what went wrong. The arguments are a JSON object, or
@FILE; without any they are {}. A tool that asks a model something, such as for
the summary of a page, asks that of --model.

Exit codes: 0 the tool did its work, 1 it did not, 2 wrong usage or arguments
that do not fit.`,
		Example: `  stopgap tool call search '{"query":"notice"}' --corpus ~/contracts
  stopgap tool call project_structure '{"root_dir":"."}' --allow files`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = args[:1]
			}
			return oneTool(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.callTool(ctx, s, args, asJSON)
		},
	}
	addFlags(cmd, s, groupModel, groupTools, groupOutput)
	hideFlags(cmd, "prefill", "tools", "max-calls", "call-limit", "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&s.yes, "yes", false, "let the tool change things without asking first")
		f.BoolVar(&asJSON, "json", false, "print the result, its status and its duration as JSON")
	})
	a.completeFlags(cmd, s)
	names := a.completeTools(s)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, typed)
	}
	return cmd
}

func (a *app) callTool(ctx context.Context, s *settings, args []string, asJSON bool) error {
	call := tools.Call{Name: args[0]}
	if len(args) == 2 {
		text, err := s.fromFile(args[1], "the arguments", "ARGUMENTS")
		if err != nil {
			return err
		}
		call.Arguments = json.RawMessage(text)
	}
	s.tools = []string{call.Name}
	k, err := a.prepareTools(ctx, s)
	if err != nil {
		return err
	}
	defer k.Close()
	set := k.runner.Tools
	if status, _ := set.Check(call); status == tools.UnknownTool { // a family or a server
		return &usageError{fmt.Errorf("%q is not one tool", call.Name), "\"stopgap tool show " + call.Name + "\" shows which there are"}
	}
	for _, spec := range set.Specs() {
		if spec.Name == call.Name { // as with what a model writes
			call.Arguments = template.Tool{Name: spec.Name, Parameters: spec.Parameters}.Fit(call.Arguments)
		}
	}
	res := set.Session().Run(ctx, []tools.Call{call})[0]
	if asJSON {
		err = a.printJSON(toolResult{res.Name, res.Status, res.Content, res.Cut, res.Duration.Seconds()})
	} else {
		_, err = io.WriteString(a.stdout, strings.TrimSuffix(printableLines(res.Content), "\n")+"\n")
	}
	if err == nil && res.Status != tools.OK {
		err = failedCall(res.Status)
	}
	return err
}

// prepareTools makes a kit for tools alone. A model is chosen when one of them asks it
// something.
func (a *app) prepareTools(ctx context.Context, s *settings) (*kit, error) {
	k, err := a.prepare(ctx, s, false)
	if err != nil || s.model == "" {
		return k, err
	}
	connect := sync.OnceValue(func() error { return a.connect(ctx, s, k) })
	k.workshop.model = func(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
		if err := connect(); err != nil {
			return "", err
		}
		return k.ask(ctx, prompt, schema)
	}
	return k, nil
}
