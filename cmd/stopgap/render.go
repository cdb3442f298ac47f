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
	var scores []string
	cmd := &cobra.Command{
		Use:   "render [QUESTION]",
		Short: "Print the exact prompt that run would send first",
		Long: `Print the exact prompt that "stopgap run" would send first, without sending it.

To a file or a pipe go its bytes and nothing else. In a terminal its segments
are coloured by who wrote them. With --ids the server's tokenizer is asked which
tokens it reads; this needs a server that has one.

With --score TEXT the server is asked how likely the model is to go on with this
text: the natural logarithm of its probability, without sampling anything. What
a call's opening gets in two formats tells how likely a call is in each.`,
		Example: `  stopgap render "Why is the sky blue?"
  stopgap render "…" --format qwq --corpus ~/notes > prompt.txt
  stopgap render "…" --ids --model llamacpp:http://127.0.0.1:8080
  stopgap render "…" --corpus ~/notes --score "<tool_call>" --model llamacpp:http://127.0.0.1:8080`,
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
			return a.render(ctx, s, question, rendering{asJSON, ids, scores})
		},
	}
	addFlags(cmd, s, groupModel, groupPrompt, groupTools, groupCalls, groupOutput)
	hideFlags(cmd, "trace", "strict", "calls-in-think")
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print the segments, or with --ids the tokens, as JSON")
		f.BoolVar(&ids, "ids", false, "print the id and the text of each token")
		f.StringArrayVar(&scores, "score", nil, "how likely the model goes on with `TEXT` (repeatable)")
	})
	a.completeFlags(cmd, s)
	return cmd
}

// A rendering is what is printed of a prompt.
type rendering struct {
	json, ids bool
	scores    []string
}

func (a *app) render(ctx context.Context, s *settings, question string, as rendering) error {
	if as.ids && len(as.scores) > 0 {
		return &usageError{errors.New("--ids and --score print different things"), "use one of them"}
	}
	k, err := a.prepare(ctx, s, false)
	if err != nil {
		return err
	}
	defer k.Close()
	format := k.runner.Format
	if format.Opening == template.OpenChat {
		return &usageError{errors.New("format chat has no prompt of its own: the server renders it"), "--format server shows what the server's template makes of the question"}
	}
	if as.ids || len(as.scores) > 0 || format.Opening == template.OpenServer {
		if err := a.connect(ctx, s, k); err != nil {
			return err
		}
	}
	segments, err := k.opening(ctx, question)
	switch {
	case err != nil:
		return err
	case len(as.scores) > 0:
		return a.printScores(ctx, k, segments, as.scores, as.json)
	case as.ids:
		tokenizer, err := a.tokenizer(k)
		if err != nil {
			return err
		}
		return a.printTokens(ctx, tokenizer, segments, as.json)
	case as.json:
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

// errRendered ends a run at its first request.
var errRendered = errors.New("the prompt stands")

// A listener stands in for a model: it takes the first request and generates
// nothing.
type listener struct{ request *models.Request }

func (l listener) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		*l.request = req
		yield(models.Chunk{}, errRendered)
	}
}

// A renderingListener leaves the rendering of openings to the model's server.
type renderingListener struct {
	listener
	models.Renderer
}

// opening is the prompt of the first request of a run, which is left there.
// What the run writes after the opening is the words of a tool choice.
func (k *kit) opening(ctx context.Context, question string) ([]runner.Segment, error) {
	var sent models.Request
	r := *k.runner
	r.Model = listener{&sent}
	if renderer, ok := k.runner.Model.(models.Renderer); ok {
		r.Model = renderingListener{listener{&sent}, renderer}
	}
	task := k.task
	task.Question = question
	var segments []runner.Segment
	for ev, err := range r.Run(ctx, task) {
		switch ev := ev.(type) {
		case runner.Started:
			segments = ev.Prompt
		case runner.Text:
			segments = append(segments, runner.Segment{Source: template.FromTemplate, Text: ev.Text})
		}
		if err != nil && !errors.Is(err, errRendered) {
			return nil, err
		}
	}
	return segments, ctx.Err()
}

// tokenizer gives what knows the model's tokens.
func (a *app) tokenizer(k *kit) (models.Tokenizer, error) {
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
