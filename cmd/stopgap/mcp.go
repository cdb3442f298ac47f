package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/tools/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "mcp --tools NAME,…", Short: "Offer tools to other programs over MCP, on standard input and output",
		Long: `Offer tools to another program, which starts this command and speaks the Model
Context Protocol with it on standard input and output. It gets the tools that
--tools names and those of --corpus, as far as --allow goes.

Nobody is asked before a tool changes something, because there is no terminal to
ask on: without --yes such a call is refused. With it, asking is left to the
other program.`,
		Example: "  stopgap mcp --corpus ~/contracts\n  stopgap mcp --tools web_search,visit --allow net --model ollama:qwen3",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.offer(ctx, s)
		},
	}
	addFlags(cmd, s, groupModel, groupTools, groupOutput)
	hideFlags(cmd, "prefill", "max-calls", "call-limit", "trace", "color")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&s.yes, "yes", false, "let tools change things; the other program is the one that asks")
	})
	a.completeFlags(cmd, s)
	return cmd
}

// offer serves until the other program leaves.
func (a *app) offer(ctx context.Context, s *settings) error {
	k, err := a.prepareTools(ctx, s)
	if err != nil {
		return err
	}
	defer k.Close()
	if k.runner.Tools == nil {
		return &usageError{errors.New("there are no tools to offer"), "--tools names some, --corpus brings search and read; \"stopgap tool list\" lists what there is"}
	}
	k.approver.silent = true
	if err := mcp.Offer(ctx, k.runner.Tools, readVersion().Version, io.NopCloser(a.stdin), openOutput{a.stdout}); err != nil {
		return fmt.Errorf("the conversation over MCP broke off: %w", err)
	}
	return nil
}

// An openOutput stays open when its user is done with it.
type openOutput struct{ io.Writer }

// Close implements io.Closer.
func (openOutput) Close() error { return nil }
