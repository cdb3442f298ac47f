package runner

import (
	"cmp"
	"encoding/json"

	"stopgap/models"
)

// request is the next request: the whole ledger, and as many tokens as fit. A
// schema holds the text to it. The error is a *LimitError.
func (s *state) request(schema json.RawMessage) (models.Request, error) {
	limit, err := s.turnTokens()
	if err != nil {
		return models.Request{}, err
	}
	return models.Request{
		Prompt: s.ledger.prompt(), MaxTokens: limit, Sampling: s.sampling(), Schema: schema,
		Preserve: s.Format.Preserve, Session: s.Session,
	}, nil
}

// turnTokens is how many tokens the next generation may have.
func (s *state) turnTokens() (int, error) {
	limit := cmp.Or(s.Limits.TurnTokens, s.Format.MaxTokens, defaultTurnTokens)
	most := s.tokenLimit()
	if most <= 0 {
		return limit, nil
	}
	room := most - s.ledger.tokens
	estimated := s.CountTokens == nil
	if estimated && most == s.Context {
		room = max(room, leastRoom) // the server knows better, and says so
	}
	if room <= 0 {
		return 0, &LimitError{Tokens: s.ledger.tokens, Limit: most, Estimated: estimated}
	}
	if s.forced == "" {
		room -= min(answerReserve, room/2)
	}
	return min(limit, max(room, 1)), nil
}

// server is the model's name in errors.
func (s *state) server() string { return cmp.Or(s.Name, "the model") }
