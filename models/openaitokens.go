package models

import (
	"context"
	"net/http"
	"slices"
)

// promptIDs is the prompt as token ids, nil unless every segment has them.
func promptIDs(prompt []Segment) ([]int, error) {
	var ids []int
	for _, s := range prompt {
		if len(s.Tokens) == 0 && s.Text != "" {
			return nil, nil
		}
		for _, id := range s.Tokens {
			if err := checkID(id, 0); err != nil {
				return nil, err
			}
		}
		ids = append(ids, s.Tokens...)
	}
	return ids, nil
}

// promptTokens is the prompt as a generation has it: its ids where all segments
// have them, else what the server makes of its text.
func (m *openai) promptTokens(ctx context.Context, prompt []Segment, facts openaiFacts) ([]int, error) {
	ids, err := promptIDs(prompt)
	if err != nil || ids != nil {
		return ids, err
	}
	text, err := promptText(prompt)
	if err != nil {
		return nil, err
	}
	return m.tokens(ctx, text, facts, facts.brand == sglang)
}

// following gives the ids of a text that stands after another one. A tokenizer
// that puts a space before each text is known by a letter that becomes another
// token after a newline; there the newline takes the space.
func (m *openai) following(ctx context.Context, text string, facts openaiFacts) ([]int, error) {
	spaced, err := m.spaced.get(func() (bool, error) {
		first, err := m.tokens(ctx, "a", facts, false)
		if err != nil {
			return false, err
		}
		second, err := m.tokens(ctx, "\na", facts, false)
		return len(second) < len(first) || !slices.Equal(second[len(second)-len(first):], first), err
	})
	if err != nil {
		return nil, err
	}
	if !spaced {
		return m.tokens(ctx, text, facts, false)
	}
	newline, err := m.tokens(ctx, "\n", facts, false)
	if err != nil {
		return nil, err
	}
	both, err := m.tokens(ctx, "\n"+text, facts, false)
	if err != nil {
		return nil, err
	}
	if len(both) < len(newline) || !slices.Equal(both[:len(newline)], newline) {
		return nil, &PromptError{Reason: "the text to score cannot be cut into tokens without what stands before it"}
	}
	return both[len(newline):], nil
}

// tokens asks for the ids of a text.
func (m *openai) tokens(ctx context.Context, text string, facts openaiFacts, special bool) ([]int, error) {
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	err := m.call(ctx, http.MethodPost, "/tokenize", map[string]any{
		"model": facts.model, "prompt": text, "add_special_tokens": special,
	}, &answer)
	return answer.Tokens, err
}
