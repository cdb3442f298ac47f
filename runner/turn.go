package runner

import (
	"sort"

	"stopgap/models"
	"stopgap/template"
)

// An item of a turn is a call, or a problem in the place of a call.
type item struct {
	call    *template.Call
	problem *template.Problem
	start   int
	source  string // for the guard: what the model asked for
}

// inOrder lists the calls of a turn and the problems in the place of calls in
// the order of the text, which is the order of their answers.
func inOrder(t template.Turn) []item {
	var out []item
	for i := range t.Calls {
		c := &t.Calls[i]
		out = append(out, item{call: c, start: c.Start, source: c.Name + "\x00" + string(c.Arguments)})
	}
	for i := range t.Problems {
		if p := &t.Problems[i]; p.Kind.InCall() {
			out = append(out, item{problem: p, start: p.Start, source: string(p.Kind) + "\x00" + p.Message})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].start < out[j].start })
	return out
}

// exhausted names the budget that is used up, or gives "".
func (s *state) exhausted() Termination {
	turns := s.Limits.Turns
	if turns == 0 {
		turns = 20
	}
	switch limit := s.tokenLimit(); {
	case limit > 0 && s.ledger.tokens+2*answerReserve >= limit:
		return TermTokenLimit
	case s.turn >= turns:
		return TermTurnLimit
	case s.outcome.Problems > s.problems():
		return TermFormatError
	}
	return ""
}

func (s *state) problems() int {
	if s.Limits.Problems == 0 {
		return 3
	}
	return s.Limits.Problems
}

// tokenLimit is how long the ledger may become, zero for no limit.
func (s *state) tokenLimit() int {
	limit := s.Limits.Tokens
	if limit == 0 || s.Context > 0 && s.Context < limit {
		limit = s.Context
	}
	return limit
}

// maxCalls is the number of calls that the prompt tells the model.
func (s *state) maxCalls() int {
	if s.Limits.DefaultCalls > 0 {
		return s.Limits.DefaultCalls
	}
	return s.Format.MaxCalls
}

func (s *state) count(text string) int {
	if s.CountTokens != nil {
		return s.CountTokens(text)
	}
	return EstimateTokens(text)
}

func (s *state) names() []string {
	var out []string
	for _, t := range s.offered() {
		out = append(out, t.Name)
	}
	return out
}

// sampling is the format's, overridden field by field by the run's.
func (s *state) sampling() models.Sampling {
	f, r := s.Format.Sampling, s.Sampling
	return models.Sampling{
		Temperature: first(r.Temperature, f.Temperature), TopP: first(r.TopP, f.TopP), TopK: first(r.TopK, f.TopK),
		MinP: first(r.MinP, f.MinP), PresencePenalty: first(r.PresencePenalty, f.PresencePenalty),
		RepeatPenalty: first(r.RepeatPenalty, f.RepeatPenalty), Seed: first(r.Seed, f.Seed),
	}
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
