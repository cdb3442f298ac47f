package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
)

// tokensFlags are the flags of "stopgap tokens" that are no settings.
type tokensFlags struct {
	gguf, json    string // files
	asJSON, count bool
	noSpecial     bool
}

func (a *app) tokensCommand() *cobra.Command {
	s := newSettings()
	var f tokensFlags
	cmd := &cobra.Command{
		Use:   "tokens [TEXT]",
		Short: "Show the tokens that a model reads a text as",
		Long: `Show the tokens that a model reads a text as: the id, the type and the piece of
each, one a line. The text is the argument, or standard input, of which every
byte counts.

The tokenizer is that of --model (of the built-in model, of a model of Ollama,
or of a llama-server or vLLM, which are asked), of a GGUF file, or of a
tokenizer.json of Hugging Face. Nothing is generated, and nothing is put in
front of the text.

Control and user-defined tokens such as <|im_end|> and <tool_call> are
recognised, as in a prompt; with --no-special they are text. A piece is quoted
as in Go: \n is a newline, \xe4 a byte that is no character by itself.`,
		Example: `  stopgap tokens "Why is the sky blue?"
  stopgap tokens --count < prompt.txt
  stopgap render "…" --format qwen | stopgap tokens --model ollama:qwen3
  stopgap tokens --gguf model.gguf --json "<|im_end|>" | jq '.[].type'
  stopgap tokens --tokenizer-json tokenizer.json --no-special "<|im_end|>"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return &usageError{fmt.Errorf("tokens takes one text, not %d", len(args)), `put it into quotes: stopgap tokens "…"`}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.tokens(ctx, s, &f, args)
		},
	}
	addFlags(cmd, s, groupModel, groupOutput)
	hideFlags(cmd, "context", "first-token-timeout", "token-timeout", "prefill", "trace")
	ownFlags(cmd, func(p *pflag.FlagSet) {
		p.StringVar(&f.gguf, "gguf", "", "take the tokenizer of a GGUF `FILE`")
		p.StringVar(&f.json, "tokenizer-json", "", "take the tokenizer of a tokenizer.json `FILE`")
		p.BoolVar(&f.asJSON, "json", false, "print JSON; a piece that is no text is a list of bytes")
		p.BoolVar(&f.count, "count", false, "print only how many tokens there are")
		p.BoolVar(&f.noSpecial, "no-special", false, "take what looks like a special token for text")
	})
	a.completeFlags(cmd, s)
	_ = cmd.MarkFlagFilename("gguf", "gguf") // the flags are there
	_ = cmd.MarkFlagFilename("tokenizer-json", "json")
	return cmd
}

// A typedToken is one line of the output. The type is empty where the server
// does not tell it.
type typedToken struct {
	ID    int    `json:"id"`
	Type  string `json:"type,omitempty"`
	Piece any    `json:"piece"` // a string, or the bytes where they are no text, as llama-server writes it
	piece string
}

func (a *app) tokens(ctx context.Context, s *settings, f *tokensFlags, args []string) error {
	encode, err := a.encoder(ctx, s, f)
	if err != nil {
		return err
	}
	text, err := a.tokensText(args, s)
	if err != nil {
		return err
	}
	tokens, err := encode(text)
	switch {
	case err != nil:
		return err
	case f.count:
		if f.asJSON {
			return a.printJSON(len(tokens))
		}
		_, err := fmt.Fprintln(a.stdout, len(tokens))
		return err
	case f.asJSON:
		return a.printJSON(tokens)
	}
	return a.printTypedTokens(tokens, a.screen(a.stdout, s.color))
}

// encoder gives what turns a text into tokens.
func (a *app) encoder(ctx context.Context, s *settings, f *tokensFlags) (func(string) ([]typedToken, error), error) {
	switch {
	case f.gguf != "" && f.json != "":
		return nil, &usageError{errors.New("--gguf and --tokenizer-json name two tokenizers"), "use one of them"}
	case f.gguf != "" || f.json != "":
		t, err := tokenizer.Open(f.gguf + f.json)
		if err != nil {
			return nil, &usageError{err, tokenizerHint(err)}
		}
		return f.ownEncoder(t), nil
	}
	k := &kit{runner: new(runner.Runner)}
	if err := a.connect(ctx, s, k); err != nil {
		return nil, err
	}
	if m, ok := k.runner.Model.(models.VocabularyTeller); ok {
		t, err := m.Vocabulary(ctx)
		if err != nil {
			return nil, err
		}
		return f.ownEncoder(t), nil
	}
	asked, err := a.tokenizer(k)
	switch {
	case err != nil:
		return nil, err
	case f.noSpecial:
		return nil, &usageError{fmt.Errorf("the server of %s always recognises special tokens", masked(k.ref)), "--gguf takes the tokenizer of the model's file"}
	}
	return func(text string) ([]typedToken, error) {
		tokens, err := asked.Tokenize(ctx, text)
		out := make([]typedToken, len(tokens))
		for i, t := range tokens {
			out[i] = newTypedToken(t.ID, "", t.Piece)
		}
		return out, err
	}, nil
}

// ownEncoder runs a tokenizer here.
func (f *tokensFlags) ownEncoder(t *tokenizer.Tokenizer) func(string) ([]typedToken, error) {
	return func(text string) ([]typedToken, error) {
		ids := t.Encode(text, !f.noSpecial)
		out := make([]typedToken, len(ids))
		for i, id := range ids {
			out[i] = newTypedToken(id, t.Type(id).String(), string(t.Bytes(id)))
		}
		return out, nil
	}
}

func newTypedToken(id int, typ, piece string) typedToken {
	t := typedToken{ID: id, Type: typ, Piece: piece, piece: piece}
	if !utf8.ValidString(piece) {
		values := make([]int, len(piece))
		for i := range values {
			values[i] = int(piece[i])
		}
		t.Piece = values
	}
	return t
}

// largestText is the longest text whose tokens are shown.
const largestText = 64 << 20 // bytes

// tokensText gives the text of the argument, or of standard input.
func (a *app) tokensText(args []string, s *settings) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if isTerminal(a.stdin) && !s.quiet {
		a.note("reading the text from the terminal; Ctrl-D ends it")
	}
	b, err := io.ReadAll(io.LimitReader(a.stdin, largestText+1))
	switch {
	case err != nil:
		return "", &usageError{fmt.Errorf("cannot read the text from standard input: %w", err), `give it as an argument: stopgap tokens "…"`}
	case len(b) > largestText:
		return "", &usageError{fmt.Errorf("the text is larger than %s", bytesWords(largestText)), "split it: no model reads as much at once"}
	}
	return string(b), nil
}

// typeColours tell special tokens from text.
var typeColours = map[string]string{
	tokenizer.Control.String(): yellow, tokenizer.UserDefined.String(): cyan, tokenizer.Unknown.String(): red, tokenizer.Byte.String(): magenta,
}

func (a *app) printTypedTokens(tokens []typedToken, screen screen) error {
	var b strings.Builder
	for _, t := range tokens {
		typ := t.Type
		if typ == "" {
			typ = "-"
		}
		piece := strconv.Quote(t.piece) // has nothing that a terminal acts on
		if colour := typeColours[t.Type]; colour != "" {
			piece = screen.paint(colour, piece)
		}
		fmt.Fprintf(&b, "%s  %-12s  %s\n", screen.paint(dim, fmt.Sprintf("%7d", t.ID)), typ, piece)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// tokenizerHint says what helps with a file that no tokenizer is read from,
// where the error has no hint of its own.
func tokenizerHint(err error) string {
	switch {
	case is[*tokenizer.UnsupportedError](err):
		return ""
	case is[*tokenizer.FormatError](err):
		return "--gguf takes a model file, --tokenizer-json a file of Hugging Face's tokenizers"
	}
	return "check that the file is there and that you may read it"
}
