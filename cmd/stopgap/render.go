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
are coloured by who wrote them. With --ids it is the tokens that the server reads:
where prompts are sent as ids those that would be sent, elsewhere what its own
tokenizer makes of the text. This needs a server that tells them. A token that the
server puts before every text is not among them.

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
	if as.ids && !k.tells() {
		_, err := a.tokenizer(k)
		return err
	}
	o, err := k.opening(ctx, question)
	if err != nil {
		return err
	}
	segments := o.segments
	switch {
	case len(as.scores) > 0:
		return a.printScores(ctx, k, o.sent, as.scores, as.json)
	case as.ids:
		tokens, err := o.tokens(ctx, k)
		if err != nil {
			return err
		}
		return a.printTokens(tokens, as.json)
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

// An opened prompt is that of the first request of a run.
type opened struct {
	segments []runner.Segment // by who wrote them
	sent     []models.Segment // as the model gets it
	spelling *models.Spelling // nil where the model tells none
	pieces   map[int]string   // of the tokens that were asked for
}

// A listener stands in for a model: it takes the first request and generates
// nothing.
type listener struct{ *opened }

func (l listener) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		l.sent = req.Prompt
		yield(models.Chunk{}, errRendered)
	}
}

// A spellingListener leaves the spelling of prompts to the model, and hears the
// pieces of its tokens.
type spellingListener struct {
	*opened
	models.Speller
}

// Spelling implements models.Speller.
func (l spellingListener) Spelling(ctx context.Context) (*models.Spelling, error) {
	s, err := l.Speller.Spelling(ctx)
	if err != nil {
		return nil, err
	}
	heard := *s
	if s.Encode != nil {
		heard.Encode = func(ctx context.Context, text string, special bool) ([]models.Token, error) {
			tokens, err := s.Encode(ctx, text, special)
			for _, t := range tokens {
				l.pieces[t.ID] = t.Piece
			}
			return tokens, err
		}
	}
	l.spelling = &heard
	return &heard, nil
}

// listen gives a model that only listens, with what the runner asks of the real
// one before its first request.
func (o *opened) listen(m models.Model) models.Model {
	renderer, renders := m.(models.Renderer)
	speller, spells := m.(models.Speller)
	l, sl := listener{o}, spellingListener{o, speller}
	switch {
	case renders && spells:
		return struct {
			models.Model
			models.Renderer
			models.Speller
		}{l, renderer, sl}
	case renders:
		return struct {
			models.Model
			models.Renderer
		}{l, renderer}
	case spells:
		return struct {
			models.Model
			models.Speller
		}{l, sl}
	}
	return l
}

// opening is the prompt of the first request of a run, which is left there.
// What the run writes after the opening is the words of a tool choice.
func (k *kit) opening(ctx context.Context, question string) (*opened, error) {
	o := &opened{pieces: map[int]string{}}
	r := *k.runner
	r.Model = o.listen(k.runner.Model)
	task := k.task
	task.Question = question
	for ev, err := range r.Run(ctx, task) {
		switch ev := ev.(type) {
		case runner.Started:
			o.segments = ev.Prompt
		case runner.Text:
			o.segments = append(o.segments, runner.Segment{Source: template.FromTemplate, Text: ev.Text})
		}
		if err != nil && !errors.Is(err, errRendered) {
			return nil, err
		}
	}
	return o, ctx.Err()
}

// tells reports whether the model's server tells tokens.
func (k *kit) tells() bool {
	_, tokenizes := k.runner.Model.(models.Tokenizer)
	_, spells := k.runner.Model.(models.Speller)
	return tokenizes || spells
}

// tokens are those that the server reads: the ids that are sent, and what the
// server makes of text.
func (o *opened) tokens(ctx context.Context, k *kit) ([]models.Token, error) {
	var out []models.Token
	var text strings.Builder
	flush := func() error {
		tokens, err := o.tokenize(ctx, k, text.String())
		text.Reset()
		out = append(out, tokens...)
		return err
	}
	for _, s := range o.sent {
		if len(s.Tokens) == 0 {
			text.WriteString(s.Text)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		for _, id := range s.Tokens {
			out = append(out, models.Token{ID: id, Piece: o.pieces[id]})
		}
	}
	return out, flush()
}

// tokenize gives what the server makes of a text.
func (o *opened) tokenize(ctx context.Context, k *kit, text string) ([]models.Token, error) {
	if text == "" {
		return nil, nil
	}
	if t, ok := k.runner.Model.(models.Tokenizer); ok {
		return t.Tokenize(ctx, text)
	}
	if o.spelling == nil || o.spelling.Encode == nil {
		return nil, &usageError{fmt.Errorf("the tokenizer of %s is of a kind that is not read", masked(k.ref)), tokensElsewhere}
	}
	return o.spelling.Encode(ctx, text, true)
}

const tokensElsewhere = "llama-server and vLLM do: use --model llamacpp:URL or openai:URL#MODEL"

// tokenizer gives what knows the model's tokens.
func (a *app) tokenizer(k *kit) (models.Tokenizer, error) {
	t, ok := k.runner.Model.(models.Tokenizer)
	if !ok {
		return nil, &usageError{
			fmt.Errorf("the server of %s does not tell its tokens", masked(k.ref)),
			tokensElsewhere,
		}
	}
	return t, nil
}

// A renderedToken is one line of --ids --json.
type renderedToken struct {
	ID    int    `json:"id"`
	Piece string `json:"piece"`
}

func (a *app) printTokens(tokens []models.Token, asJSON bool) error {
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
