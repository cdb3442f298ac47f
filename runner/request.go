package runner

import (
	"cmp"
	"encoding/json"

	"stopgap/models"
)

// request is the next request of a turn: the whole ledger, and as many tokens
// as fit and the turn has left. A schema holds the text to it; no special token
// has a place there. The error is a *LimitError.
func (g *generation) request(schema json.RawMessage) (models.Request, error) {
	limit, err := g.turnTokens()
	if err != nil {
		return models.Request{}, err
	}
	req := models.Request{
		Prompt: g.ledger.prompt(), MaxTokens: min(limit, max(g.allowed-g.spent(), 1)), Sampling: g.sampling(),
		Schema: schema, Session: g.Session,
	}
	if len(schema) == 0 {
		req.Preserve = g.Format.Preserve
	}
	return req, nil
}

// turnTokens is how many tokens a turn that begins here may have.
func (s *state) turnTokens() (int, error) {
	limit := cmp.Or(s.Limits.TurnTokens, s.Format.MaxTokens, defaultTurnTokens)
	most := s.tokenLimit()
	if most <= 0 {
		return limit, nil
	}
	room := most - s.ledger.tokens
	if s.CountTokens == nil && most == s.Context {
		room = max(room, leastRoom) // the server knows best, and says so
	}
	if room <= 0 {
		return 0, &LimitError{Tokens: s.ledger.tokens, Limit: most, Estimated: s.estimated()}
	}
	if s.forced == "" {
		room -= min(answerReserve, room/2)
	}
	return min(limit, max(room, 1)), nil
}

// server is the model's name in errors.
func (s *state) server() string { return cmp.Or(s.Name, "the model") }
