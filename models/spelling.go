package models

import (
	"context"
	"regexp"
	"unicode/utf8"

	"github.com/ollama/ollama/api"

	"stopgap/models/tokenizer"
)

// A Speller knows how its model spells text as tokens. Optional. It waits for a
// server that loads its model, as Stream does, and is asked once.
type Speller interface {
	Spelling(ctx context.Context) (*Spelling, error)
}

// A Spelling is how a model turns text into tokens.
type Spelling struct {
	// Special are the model's control and user-defined tokens as they are
	// spelled, as far as the server tells: what text from others must not bring
	// into a prompt.
	Special []string
	// Complete says that Special has them all.
	Complete bool
	// Encode gives the tokens of a text; nothing is added at its ends. With
	// special, special tokens in it are recognised, as in a prompt. Without,
	// they are spelled out; llama-server recognises user-defined tokens all the
	// same, so a caller cuts them first. It is nil where nobody can tell.
	Encode func(ctx context.Context, text string, special bool) ([]Token, error)
	// IDs says that a prompt's ids are sent as they are (Segment.Tokens).
	IDs bool
	// Exact says that Encode gives what the server itself computes. Ollama's own
	// tokenizer departs from its model's in white space outside of ASCII and in
	// long runs of one character.
	Exact bool
}

// Spelling implements Speller.
func (m *builtinModel) Spelling(context.Context) (*Spelling, error) {
	return m.spelling.get(func() (*Spelling, error) {
		model, err := m.load()
		if err != nil {
			return nil, err
		}
		s := fromVocabulary(model.Tokenizer())
		s.IDs, s.Exact = true, true
		return s, nil
	})
}

// Spelling implements Speller. Where the kind of tokenizer is not read, the
// special tokens are known all the same. Of a model that runs elsewhere the
// server tells neither.
func (m *ollama) Spelling(ctx context.Context) (*Spelling, error) {
	return m.spelling.get(func() (*Spelling, error) {
		var verbose api.ShowResponse
		in := &api.ShowRequest{Model: m.model, Verbose: true}
		if err := m.reply(ctx, generation{path: "/api/show", prepare: prepared(in)}, &verbose); err != nil {
			return nil, err
		}
		t, err := tokenizer.FromMetadata(verbose.ModelInfo)
		if err != nil {
			special := tokenizer.Specials(verbose.ModelInfo)
			return &Spelling{Special: special, Complete: special != nil}, nil
		}
		return fromVocabulary(t), nil
	})
}

// prepared is a body that needs no preparation.
func prepared(body any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return body, nil }
}

func fromVocabulary(t *tokenizer.Tokenizer) *Spelling {
	s := &Spelling{Special: t.Specials(), Complete: true}
	s.Encode = func(_ context.Context, text string, special bool) ([]Token, error) {
		ids := t.Encode(text, special)
		tokens := make([]Token, len(ids))
		for i, id := range ids {
			tokens[i] = Token{ID: id, Piece: string(t.Bytes(id))}
		}
		return tokens, nil
	}
	return s
}

// marker is how special tokens are spelled by all models of today.
var marker = regexp.MustCompile(`<[^<>\s]{1,64}>|\[[/A-Z_]{2,32}\]`)

// Spelling implements Speller. The server does not list its special tokens;
// those of its chat template are known, and those that end a text. It does not
// take ids where its tokenizer puts a space before each text.
func (m *llama) Spelling(ctx context.Context) (*Spelling, error) {
	return m.spelling.get(func() (*Spelling, error) {
		if _, err := m.encode(ctx, "a", false); err != nil { // this waits, the facts do not
			return nil, err
		}
		facts, err := m.facts(ctx)
		if err != nil {
			return nil, err
		}
		s := &Spelling{Encode: m.encode, IDs: !facts.spaced, Exact: true}
		for _, c := range facts.markers {
			tokens, err := m.encode(ctx, c, true)
			if err != nil {
				return nil, err
			}
			if len(tokens) == 1 {
				s.Special = append(s.Special, c)
			}
		}
		return s, nil
	})
}

// encode gives the tokens of a text. It waits for a server that is loading.
func (m *llama) encode(ctx context.Context, text string, special bool) ([]Token, error) {
	if text == "" {
		return nil, nil
	}
	if !utf8.ValidString(text) {
		return nil, &PromptError{Reason: "the text to tokenize is not UTF-8"}
	}
	var answer llamaTokens
	err := m.reply(ctx, generation{path: "/tokenize", prompt: []Segment{{Text: text}}, prepare: prepared(map[string]any{
		"content": text, "add_special": false, "parse_special": special, "with_pieces": true,
	})}, &answer)
	if err != nil {
		return nil, err
	}
	return answer.tokens(m.kind)
}
