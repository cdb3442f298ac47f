package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

func (a *app) renderCommand() *cobra.Command {
	s := newSettings()
	var asJSON, ids bool
	cmd := &cobra.Command{
		Use:   "render [QUESTION]",
		Short: "Print the exact prompt that run would send first",
		Long: `Print the exact prompt that "stopgap run" would send first, without sending it.

To a file or a pipe go its bytes and nothing else. In a terminal its segments
are coloured by who wrote them. With --ids the server's tokenizer is asked which
tokens it reads; this needs a server that has one.`,
		Example: `  stopgap render "Why is the sky blue?"
  stopgap render "…" --format qwq --corpus ~/notes > prompt.txt
  stopgap render "…" --ids --model llamacpp:http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			question, err := a.question(args, s)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.render(ctx, s, question, asJSON, ids)
		},
	}
	addFlags(cmd, s, groupModel, groupPrompt, groupTools, groupOutput)
	hideFlags(cmd, "trace")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print the segments, or with --ids the tokens, as JSON")
		f.BoolVar(&ids, "ids", false, "print the id and the text of each token")
	})
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) render(ctx context.Context, s *settings, question string, asJSON, ids bool) error {
	k, err := a.prepare(ctx, s)
	if err != nil {
		return err
	}
	defer k.Close()
	var tokenizer models.Tokenizer
	if ids {
		if tokenizer, err = a.tokenizer(ctx, s, k); err != nil {
			return err
		}
	}
	segments, err := k.opening(ctx, question)
	switch {
	case err != nil:
		return err
	case ids:
		return a.printTokens(ctx, tokenizer, segments, asJSON)
	case asJSON:
		return a.printJSON(segments)
	case isTerminal(a.stdout):
		screen := a.screen(a.stdout, s.color)
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

// noModel stands in where nothing is generated.
type noModel struct{}

func (noModel) Stream(context.Context, models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) { yield(models.Chunk{}, errors.New("there is no model")) }
}

// opening is the prompt of a run, which is left before anything is generated.
func (k *kit) opening(ctx context.Context, question string) ([]runner.Segment, error) {
	r := *k.runner
	r.Model = noModel{}
	task := k.task
	task.Question = question
	for ev, err := range r.Run(ctx, task) {
		if err != nil {
			return nil, err
		}
		if started, ok := ev.(runner.Started); ok {
			return started.Prompt, nil
		}
	}
	return nil, ctx.Err()
}

// tokenizer connects to the model and gives what knows its tokens.
func (a *app) tokenizer(ctx context.Context, s *settings, k *kit) (models.Tokenizer, error) {
	if err := a.connect(ctx, s, k); err != nil {
		return nil, err
	}
	t, ok := k.runner.Model.(models.Tokenizer)
	if !ok {
		return nil, &usageError{
			fmt.Errorf("the server of %s does not tell its tokens", masked(k.ref)),
			"llama-server and vLLM do: use --model llamacpp:URL or openai:URL#MODEL",
		}
	}
	return t, nil
}

// A renderedToken is one line of --ids --json.
type renderedToken struct {
	ID    int    `json:"id"`
	Piece string `json:"piece"`
}

func (a *app) printTokens(ctx context.Context, t models.Tokenizer, segments []runner.Segment, asJSON bool) error {
	var text strings.Builder
	for _, s := range segments {
		text.WriteString(s.Text)
	}
	tokens, err := t.Tokenize(ctx, text.String())
	if err != nil {
		return err
	}
	if asJSON {
		out := make([]renderedToken, len(tokens))
		for i, tok := range tokens {
			out[i] = renderedToken(tok)
		}
		return a.printJSON(out)
	}
	for _, tok := range tokens {
		if _, err := fmt.Fprintf(a.stdout, "%d\t%s\n", tok.ID, strconv.Quote(tok.Piece)); err != nil {
			return err
		}
	}
	return nil
}

// sourceColours are how segments are told apart.
var sourceColours = []struct {
	source    template.Source
	attribute string
}{
	{template.FromTemplate, dim}, {template.FromUser, green}, {template.FromTool, cyan},
	{template.FromModel, bold}, {template.FromRunner, yellow},
}

// printSegments prints the prompt for people: coloured by source where there
// are colours, and with nothing in it that a terminal acts on.
func (a *app) printSegments(w io.Writer, screen screen, segments []runner.Segment) {
	last := ""
	for _, seg := range segments {
		text := printable(seg.Text)
		for _, c := range sourceColours {
			if c.source == seg.Source {
				text = screen.paint(c.attribute, text)
			}
		}
		fmt.Fprint(w, text)
		last = seg.Text
	}
	if !strings.HasSuffix(last, "\n") {
		fmt.Fprintln(w)
	}
}

// printLegend says what the colours mean.
func (a *app) printLegend(screen screen, segments []runner.Segment) {
	if !screen.colour {
		return
	}
	var words []string
	for _, c := range sourceColours {
		if slices.ContainsFunc(segments, func(s runner.Segment) bool { return s.Source == c.source }) {
			words = append(words, screen.paint(c.attribute, string(c.source)))
		}
	}
	fmt.Fprintln(a.stderr, "from: "+strings.Join(words, " "))
}
