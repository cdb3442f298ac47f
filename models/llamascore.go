package models

import (
	"context"
	"io"
	"iter"
	"math"
	"strings"
)

// A llamaProb is a token and the probability that it had before any sampler,
// logit_bias included, saw it.
type llamaProb struct {
	ID      int         `json:"id"`
	LogProb *float64    `json:"logprob"`
	Top     []llamaProb `json:"top_logprobs"`
}

// A llamaScoring is what the requests of one Score have in common.
type llamaScoring struct {
	facts  llamaFacts
	parts  []any // the prompt
	tokens []Token
}

// Score implements Scorer. The server scores what it samples, so each token is
// asked for by one request that leaves it no other choice and is told what the
// model itself gave it. The prompt is read once: what a request adds to the
// one before is one token, and no slot is named, because the server then takes
// the one that has the prompt already, with any flags.
//
// The server sums over the vocabulary in 32-bit floats: the values are good to
// about five digits, and a probability below e^-103 is 0, its logarithm -Inf.
func (m *llama) Score(ctx context.Context, prompt []Segment, text string) ([]Scored, error) {
	if text == "" {
		return nil, ctx.Err()
	}
	var (
		s      llamaScoring
		scored []Scored
	)
	for i := 0; i == 0 || i < len(s.tokens); i++ {
		p, err := m.score(ctx, &s, prompt, text, i)
		if err != nil {
			return nil, m.withholdFrom(err, []Segment{{Text: text}})
		}
		scored = append(scored, Scored{Token: s.tokens[i], LogProb: p})
	}
	return scored, nil
}

// score gives the log-probability of one token. A token that ends inside a
// character is not scored when it is sampled: it is looked for among the most
// likely, and among all, where the server is made to say a letter instead.
func (m *llama) score(ctx context.Context, s *llamaScoring, prompt []Segment, text string, i int) (float64, error) {
	for _, listed := range []int{1, 1000, math.MaxInt32} {
		probs, err := m.probabilities(ctx, prompt, func(ctx context.Context) (any, error) {
			if err := m.prepareScoring(ctx, s, prompt, text); err != nil {
				return nil, err
			}
			said := s.tokens[i].ID
			if listed > 1 {
				said = s.facts.letter
			}
			return s.request(i, said, listed), nil
		})
		if err != nil {
			return 0, err
		}
		for _, p := range probs {
			for _, p := range append([]llamaProb{p}, p.Top...) {
				if p.ID == s.tokens[i].ID && p.LogProb != nil {
					return logProb(*p.LogProb), nil
				}
			}
		}
	}
	return 0, &ProtocolError{Server: m.kind, Reason: "it does not tell the log-probability of a token"}
}

// logProb reads a log-probability as servers write it, whose JSON has no
// infinity: llama-server says the least 32-bit float instead, vLLM -9999.
func logProb(p float64) float64 {
	if p <= -9999 {
		return math.Inf(-1)
	}
	return p
}

// prepareScoring fills in s once the server is ready.
func (m *llama) prepareScoring(ctx context.Context, s *llamaScoring, prompt []Segment, text string) error {
	if s.tokens != nil {
		return nil
	}
	var err error
	if s.facts, err = m.facts(ctx); err != nil {
		return err
	}
	if s.parts, err = llamaParts(prompt, s.facts); err != nil {
		return err
	}
	tokens, err := m.following(ctx, text, s.facts)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return &PromptError{Reason: "the text to score has no tokens"}
	}
	s.tokens = tokens
	return nil
}

// following gives the tokens of a text that stands after another one. Where the
// tokenizer puts a space before each text, a newline takes it: in these
// vocabularies none joins what follows it.
func (m *llama) following(ctx context.Context, text string, facts llamaFacts) ([]Token, error) {
	if !facts.spaced {
		return m.tokenize(ctx, text, false)
	}
	tokens, err := m.tokenize(ctx, "\n"+text, false)
	if err != nil {
		return nil, err
	}
	for i, t := range tokens {
		if t.Piece == "\n" {
			return tokens[i+1:], nil
		}
		if strings.Trim(t.Piece, " ") != "" {
			break
		}
	}
	return nil, &PromptError{Reason: "the text to score cannot be cut into tokens without what stands before it"}
}

// request asks for one token after the prompt and the first i tokens of the
// text. A bias of this size leaves no doubt.
func (s *llamaScoring) request(i, said, listed int) map[string]any {
	parts := s.parts[:len(s.parts):len(s.parts)]
	for _, t := range s.tokens[:i] {
		parts = append(parts, t.ID)
	}
	body := llamaRequest(joinParts(parts), Request{MaxTokens: 1}, pinned{})
	body["temperature"] = 0
	body["logit_bias"] = [][]any{{said, 1e9}}
	body["n_probs"] = listed
	return body
}

// probabilities runs a generation for what it tells of its tokens.
func (m *llama) probabilities(ctx context.Context, prompt []Segment, prepare func(context.Context) (any, error)) ([]llamaProb, error) {
	reader := llamaReader{kind: m.kind, failed: m.failed}
	for _, err := range m.generate(ctx, generation{
		path:    "/completion",
		media:   "text/event-stream",
		prepare: prepare,
		prompt:  prompt,
		read:    func(r io.Reader) iter.Seq2[Chunk, error] { return reader.read(r) },
	}) {
		if err != nil {
			return nil, err
		}
	}
	return reader.probs, nil
}
