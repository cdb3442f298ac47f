package models

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
)

// Score implements Scorer for vLLM (prompt_logprobs) and SGLang (its native
// /generate). Both score the prompt that they read, in one request, before
// temperature and whatever else is sampled with; vLLM reads the whole prompt
// for it, cached or not. Other servers give an *UnsupportedError: what they
// call logprobs is of tokens that they chose.
func (m *openai) Score(ctx context.Context, prompt []Segment, text string) ([]Scored, error) {
	if text == "" {
		return nil, ctx.Err()
	}
	said, err := promptText([]Segment{{Text: text}})
	if err == nil {
		_, err = promptText(prompt)
	}
	if err != nil {
		return nil, err
	}
	scored, err := m.score(ctx, prompt, said)
	return scored, m.withholdFrom(m.complete(ctx, err), append(slices.Clone(prompt), Segment{Text: text}))
}

func (m *openai) score(ctx context.Context, prompt []Segment, text string) ([]Scored, error) {
	facts, err := m.facts(ctx)
	if err != nil {
		return nil, err
	}
	ask := m.scoreVLLM
	switch facts.brand {
	case vllm:
	case sglang:
		ask = m.scoreSGLang
	default:
		return nil, &UnsupportedError{Server: m.kind, What: "scores of a given text"}
	}
	before, err := m.promptTokens(ctx, prompt, facts)
	if err != nil {
		return nil, err
	}
	ids, err := m.following(ctx, text, facts)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 || len(ids) == 0 {
		return nil, &PromptError{Reason: "the prompt or the text to score has no tokens"}
	}
	return ask(ctx, facts, before, ids)
}

// scoreVLLM asks for the log-probabilities of the prompt's tokens: an object
// for each, null for the first, by id. One token is generated, because vLLM
// generates at least one.
func (m *openai) scoreVLLM(ctx context.Context, facts openaiFacts, before, ids []int) ([]Scored, error) {
	var answer struct {
		Choices []struct {
			Prompt []map[string]struct {
				LogProb *float64 `json:"logprob"`
				Piece   string   `json:"decoded_token"`
			} `json:"prompt_logprobs"`
		} `json:"choices"`
	}
	err := m.reply(ctx, generation{path: "/v1/completions", prepare: func(context.Context) (any, error) {
		return map[string]any{
			"model": facts.model, "prompt": slices.Concat(before, ids), "max_tokens": 1, "prompt_logprobs": 0,
		}, nil
	}}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Choices) != 1 || len(answer.Choices[0].Prompt) != len(before)+len(ids) {
		return nil, m.noScores()
	}
	var scored []Scored
	for i, entry := range answer.Choices[0].Prompt[len(before):] {
		p, ok := entry[strconv.Itoa(ids[i])]
		if !ok || p.LogProb == nil {
			return nil, m.noScores()
		}
		scored = append(scored, Scored{Token{ids[i], p.Piece}, logProb(*p.LogProb)})
	}
	return scored, nil
}

// scoreSGLang asks for the same, from the last token of the prompt on, whose
// own value may be null. Each is a list: log-probability, id, text.
func (m *openai) scoreSGLang(ctx context.Context, _ openaiFacts, before, ids []int) ([]Scored, error) {
	var answer struct {
		Meta struct {
			Input [][]json.RawMessage `json:"input_token_logprobs"`
		} `json:"meta_info"`
	}
	err := m.reply(ctx, generation{path: "/generate", prepare: func(context.Context) (any, error) {
		return map[string]any{
			"input_ids":               slices.Concat(before, ids),
			"sampling_params":         map[string]any{"max_new_tokens": 0, "temperature": 1},
			"return_logprob":          true,
			"logprob_start_len":       len(before) - 1,
			"return_text_in_logprobs": true,
		}, nil
	}}, &answer)
	if err != nil {
		return nil, err
	}
	skip := len(answer.Meta.Input) - len(ids)
	if skip < 0 {
		return nil, m.noScores()
	}
	var scored []Scored
	for i, entry := range answer.Meta.Input[skip:] {
		var (
			p     *float64
			id    int
			piece string
		)
		if len(entry) != 3 || json.Unmarshal(entry[0], &p) != nil || p == nil ||
			json.Unmarshal(entry[1], &id) != nil || id != ids[i] || json.Unmarshal(entry[2], &piece) != nil {
			return nil, m.noScores()
		}
		scored = append(scored, Scored{Token{id, piece}, logProb(*p)})
	}
	return scored, nil
}

func (m *openai) noScores() error {
	return &ProtocolError{Server: m.kind, Reason: "it does not tell the log-probabilities of the tokens that it was sent"}
}
