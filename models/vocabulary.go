package models

import (
	"context"
	"errors"
	"net/http"

	"github.com/ollama/ollama/api"

	"stopgap/models/tokenizer"
)

// A VocabularyTeller tells all of the model's tokens, so that texts can be
// turned into ids here. Optional. A tokenizer of a kind that is not read gives
// a *tokenizer.UnsupportedError.
type VocabularyTeller interface {
	Vocabulary(ctx context.Context) (*tokenizer.Tokenizer, error)
}

// Vocabulary implements VocabularyTeller. The ids are those of the model's own
// tokenizer; Ollama's differs from it in white space outside of ASCII and in
// long runs of one character.
func (m *ollama) Vocabulary(ctx context.Context) (*tokenizer.Tokenizer, error) {
	var verbose api.ShowResponse
	if err := m.call(ctx, http.MethodPost, "/api/show", &api.ShowRequest{Model: m.model, Verbose: true}, &verbose); err != nil {
		return nil, err
	}
	t, err := tokenizer.FromMetadata(verbose.ModelInfo)
	var broken *tokenizer.FormatError
	if errors.As(err, &broken) {
		return nil, &ProtocolError{Server: m.kind, Reason: "what it tells of the model's tokenizer is broken: " + broken.Reason}
	}
	return t, err
}

// Vocabulary implements VocabularyTeller.
func (m *builtinModel) Vocabulary(context.Context) (*tokenizer.Tokenizer, error) {
	model, err := m.load()
	if err != nil {
		return nil, err
	}
	return model.Tokenizer(), nil
}
