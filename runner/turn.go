package runner

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
// the order of the text, which is the order of their answers. The same problem
// many times in a row, as a model writes that repeats itself, is one.
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
	slices.SortStableFunc(out, func(a, b item) int { return a.start - b.start })
	return slices.CompactFunc(out, func(a, b item) bool { return a.problem != nil && b.problem != nil && a.source == b.source })
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
		tokens += s.escaped(r.Content)
	}
	switch limit := s.tokenLimit(); {
	case limit > 0 && tokens+resultReserve+answerReserve >= limit:
		return TermTokenLimit
	case s.turn >= cmp.Or(s.Limits.Turns, defaultTurns):
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
func (s *state) problems() int { return cmp.Or(s.Limits.Problems, defaultProblems) }

// tokenLimit is how long the ledger may become, zero for no limit.
func (s *state) tokenLimit() int {
	limit := s.Limits.Tokens
	if limit == 0 || s.Context > 0 && s.Context < limit {
		limit = s.Context
	}
	return limit
}

// count counts the tokens of a text, exactly or from above.
func (s *state) count(text string) int {
	if s.CountTokens != nil {
		return s.CountTokens(text)
	}
	return s.countAs(text, false)
}

// countSpecial counts the tokens of a text in which special tokens are
// recognised.
func (s *state) countSpecial(text string) int { return s.countAs(text, true) }

func (s *state) countAs(text string, special bool) int {
	if s.speller.counts() && utf8.ValidString(text) {
		if tokens, err := s.speller.Encode(s.ctx, text, special); err == nil {
			return len(tokens)
		}
	}
	return tools.EstimateTokens(text)
}

// estimated reports whether counts are estimates.
func (s *state) estimated() bool { return s.CountTokens == nil && !s.speller.counts() }

// reserved are the strings that are escaped in text that is not the template's.
func (s *state) reserved() template.Reserved { return s.speller.text }

// escaped counts the tokens of an untrusted text as it will stand in the prompt.
func (s *state) escaped(text string) int { return s.count(template.Escape(text, s.reserved())) }

// jsonString is a string of a JSON text.
var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// unescape gives arguments as the model means them: a string that it copied
// from an escaped text has the marks of the escape. All else stays byte for
// byte as it is.
func (s *state) unescape(arguments json.RawMessage) json.RawMessage {
	reserved := s.reserved()
	return inStrings(arguments, func(text string) string {
		if !strings.ContainsRune(text, template.Mark) {
			return text
		}
		return template.Unescape(text, reserved)
	})
}

// quote spells a text as a JSON string, without escapes that are meant for HTML.
func quote(text string) string {
	var quoted strings.Builder
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text has a spelling always
	return strings.TrimSuffix(quoted.String(), "\n")
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
