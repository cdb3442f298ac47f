package builtin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// A Request is one generation.
type Request struct {
	Prompt    []int
	MaxTokens int // zero: until the context is full
	Context   int // tokens, the prompt among them; zero: as many as the model was trained with
	Sampling  Sampling
	// Session names a conversation: what is known of its last prompt makes
	// place for what is known of this one. Prompts share their beginnings in
	// any case.
	Session string
}

// A Step is a part of a generation.
type Step struct {
	// Token is the next one, and the last is the end-of-generation token where
	// End is Stop. It is -1 while the prompt is read.
	Token int
	End   End
	Usage Usage
}

// An End says why a generation ended.
type End int

// The ends. The zero value is none.
const (
	_       End = iota
	Stop        // the end-of-generation token
	Length      // MaxTokens
	Context     // the context is full
)

// Usage counts tokens.
type Usage struct {
	Prompt    int // the whole prompt
	Evaluated int // of the prompt, computed so far
	Reused    int // of the prompt, known already
	Generated int // the end-of-generation token included
}

// An OverflowError says that a prompt leaves no room in the context.
type OverflowError struct {
	Prompt, Context int // tokens
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("a prompt of %d tokens in a context of %d", e.Prompt, e.Context)
}

// ErrEmpty is the error of a prompt without tokens.
var ErrEmpty = errors.New("the prompt is empty")

// errNumbers is what a file gives whose numbers go out of bounds.
var errNumbers = errors.New("the model's numbers overflow: its file is damaged")

// Generate reads the prompt and yields what follows, token by token. Every id
// of the prompt must be one of the tokenizer's. Leaving the range ends it; the
// context is looked at in every layer.
func (m *Model) Generate(ctx context.Context, req Request) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if err := m.generate(ctx, req, func(s Step) bool { return yield(s, nil) }); err != nil {
			yield(Step{Token: -1}, err)
		}
	}
}

// generate does that until yield is false.
func (m *Model) generate(ctx context.Context, req Request, yield func(Step) bool) error {
	limit := req.Context
	if limit <= 0 || limit > m.context {
		limit = m.context
	}
	switch n := len(req.Prompt); {
	case n == 0:
		return ErrEmpty
	case n >= limit:
		return &OverflowError{n, limit}
	}
	p := m.newPass(m.prefixes.begin(req.Prompt))
	defer func() { m.prefixes.keep(p.sequence, req.Session) }()
	u := Usage{Prompt: len(req.Prompt), Reused: len(p.tokens)}
	logits, err := p.prompt(ctx, req.Prompt, func() bool {
		u.Evaluated = len(p.tokens) - u.Reused
		return yield(Step{Token: -1, Usage: u})
	})
	if err != nil || logits == nil {
		return err
	}
	u.Evaluated = u.Prompt - u.Reused
	said := slices.Clone(req.Prompt)
	for s := newSampler(req.Sampling); ; {
		token := s.sample(logits, said)
		if token < 0 {
			return errNumbers
		}
		said = append(said, token)
		u.Generated++
		step := Step{Token: token, Usage: u}
		switch {
		case m.tokenizer.EOG(token):
			step.End = Stop
		case u.Generated == req.MaxTokens:
			step.End = Length
		case len(said) == limit:
			step.End = Context
		}
		if !yield(step) || step.End != 0 {
			return nil
		}
		if logits, err = p.read(ctx, []int{token}, 1); err != nil {
			return err
		}
	}
}

// prompt reads what is missing of a prompt and gives the logits after it.
// Between two batches it asks whether to go on, and gives nil where not.
func (p *pass) prompt(ctx context.Context, prompt []int, more func() bool) ([]float32, error) {
	for {
		left := prompt[len(p.tokens):]
		if !more() {
			return nil, nil
		}
		if len(left) <= batch {
			return p.read(ctx, left, 1)
		}
		if _, err := p.read(ctx, left[:batch], 0); err != nil {
			return nil, err
		}
	}
}

// Score gives the natural logarithms of the probabilities of the tokens of text
// as they follow the prompt, before any sampling option.
func (m *Model) Score(ctx context.Context, prompt, text []int) ([]float64, error) {
	all := slices.Concat(prompt, text)
	switch {
	case len(prompt) == 0:
		return nil, ErrEmpty
	case len(all) > m.context:
		return nil, &OverflowError{len(all), m.context}
	}
	p := m.newPass(m.prefixes.begin(prompt))
	defer func() { m.prefixes.keep(p.sequence, "") }()
	var scores []float64
	for len(scores) < len(text) {
		// The last token is scored and needs no reading.
		next := all[len(p.tokens) : len(all)-1]
		next = next[:min(len(next), batch)]
		n := max(0, len(p.tokens)+len(next)-(len(prompt)-1)-len(scores))
		logits, err := p.read(ctx, next, n)
		if err != nil {
			return nil, err
		}
		for ; n > 0; n-- {
			row := logits[:m.vocabulary]
			scores = append(scores, logProbability(row, text[len(scores)]))
			logits = logits[m.vocabulary:]
		}
	}
	if slices.ContainsFunc(scores, math.IsNaN) {
		return nil, errNumbers
	}
	return scores, nil
}

// logProbability is the logarithm of the softmax of logits at id.
func logProbability(logits []float32, id int) float64 {
	largest, sum := float64(slices.Max(logits)), 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - largest)
	}
	return float64(logits[id]) - largest - math.Log(sum)
}
