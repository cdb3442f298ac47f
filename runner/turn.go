package runner

import (
	"encoding/json"
	"sort"

	"stopgap/models"
	"stopgap/template"
	"stopgap/tools"
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
		if p := &t.Problems[i]; inCall(*p) {
			out = append(out, item{problem: p, start: p.Start, source: string(p.Kind) + "\x00" + p.Message})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].start < out[j].start })
	return out
}

// inCall reports whether a problem stands in the place of a call, so that the
// model waits for an answer to it.
func inCall(p template.Problem) bool {
	switch p.Kind {
	case template.UnclosedCall, template.BadJSON, template.MissingName:
		return true
	}
	return false
}

// exhausted names the budget that is used up once the results stand in the
// ledger, or gives "".
func (s *state) exhausted(results []template.Result) Termination {
	tokens := s.ledger.tokens
	for _, r := range results {
		tokens += s.count(r.Content)
	}
	turns := s.Limits.Turns
	if turns == 0 {
		turns = 20
	}
	switch limit := s.tokenLimit(); {
	case limit > 0 && tokens+resultReserve+answerReserve >= limit:
		return TermTokenLimit
	case s.turn >= turns:
		return TermTurnLimit
	case s.outcome.Problems > s.problems():
		return TermFormatError
	}
	return ""
}

// reasons are the clauses that a forced answer's note gives.
var reasons = map[Termination]string{
	TermTurnLimit:   "the limit of turns is reached",
	TermTokenLimit:  "the limit of tokens is reached",
	TermLoop:        "the same calls were made again and again",
	TermFormatError: "too many calls could not be read",
}

// problems is the budget of turns that are not as the format asks.
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

// count counts tokens, exactly or from above.
func (s *state) count(text string) int {
	if s.CountTokens != nil {
		return s.CountTokens(text)
	}
	return tools.EstimateTokens(text)
}

// reserved are the strings that untrusted text must not bring into the prompt.
func (s *state) reserved() template.Reserved { return s.Format.Reserved.With(s.Reserved...) }

// unescape gives arguments as the model means them: what it copied from an
// escaped text has the marks of the escape.
func (s *state) unescape(arguments json.RawMessage) json.RawMessage {
	return json.RawMessage(template.Unescape(string(arguments), s.reserved()))
}

// names are those of the tools, for messages to the model.
func (s *state) names() []string {
	var out []string
	for _, t := range s.described() {
		out = append(out, t.Name)
	}
	return out
}

// sampling is the format's, overridden field by field by the run's.
func (s *state) sampling() models.Sampling {
	f, r := s.Format.Sampling, s.Runner.Sampling
	return models.Sampling{
		Temperature: first(r.Temperature, f.Temperature), TopP: first(r.TopP, f.TopP), TopK: first(r.TopK, f.TopK),
		MinP: first(r.MinP, f.MinP), PresencePenalty: first(r.PresencePenalty, f.PresencePenalty),
		RepeatPenalty: first(r.RepeatPenalty, f.RepeatPenalty), Seed: r.Seed,
	}
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
