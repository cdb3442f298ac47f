package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"stopgap/models"
	"stopgap/template"
)

// Ask asks the model one thing beside a run, in a prompt of its own: the
// format's, without tools and without the caller's criteria. It is for tools
// that have the model read something. It gives the answer, without thoughts,
// and what it took; the answer is empty where the model gave none. What the
// model copied from a text that was escaped in the prompt is as it was before.
//
// Where schema is not empty, the answer is held to it if the server can do
// that; if not, it is asked for freely, so that it is still to be checked. A
// prompt that does not fit gives a *LimitError or a *models.OverflowError.
func (r *Runner) Ask(ctx context.Context, prompt string, schema json.RawMessage) (string, models.Usage, error) {
	aside := *r
	aside.Tools, aside.Choice, aside.Constrain, aside.Criteria = nil, Choice{}, false, nil
	aside.Limits.Think, aside.WithTimeout = 0, nil
	if r.Session != "" {
		aside.Session = r.Session + "/aside" // it has nothing in common with the run's prompt
	}
	s, err := aside.begin(ctx, Task{Question: prompt}, func(Event, error) bool { return true })
	if err != nil {
		return "", models.Usage{}, err
	}
	defer s.cancel()
	if err := s.open(Task{Question: prompt}); err != nil {
		return "", s.outcome.Usage, err
	}
	if len(schema) > 0 && s.Format.Opening != template.OpenChat {
		text, err := s.hold(schema)
		var unsupported *models.UnsupportedError
		var refused *models.SchemaError
		if !errors.As(err, &unsupported) && !errors.As(err, &refused) {
			return template.Unescape(spelled(text), s.reserved()), s.outcome.Usage, err
		}
	}
	turn, err := s.generate()
	text := cmp.Or(turn.Answer, turn.Text)
	if len(schema) > 0 {
		text = spelled(text)
	}
	return template.Unescape(text, s.reserved()), s.outcome.Usage, err
}

// jsonEscape is an escape of a JSON string.
var jsonEscape = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|.)`)

// spelled writes a JSON text without the escapes that it need not have: what a
// model copied can be told from its marks only where "<" is no "\u003c".
func spelled(text string) string {
	return jsonEscape.ReplaceAllStringFunc(text, func(escape string) string {
		n, err := strconv.ParseUint(escape[2:], 16, 16)
		if c := rune(n); escape[1] == 'u' && err == nil && c != '"' && c != '\\' && unicode.IsPrint(c) {
			return string(c)
		}
		return escape
	})
}

// hold lets the model write one value under a schema. A thinking part that the
// prompt has opened stays empty: nobody can think under a schema.
func (s *state) hold(schema json.RawMessage) (string, error) {
	allowed, err := s.turnTokens()
	if err != nil {
		return "", err
	}
	g := &generation{state: s, lexer: s.Format.Lexer(s.ledger.inThink), allowed: allowed}
	g.event.Usage = noUsage
	ledger := s.ledger.clone() // a server that refuses gets the prompt as it was
	if think := s.Format.Think; think.Opened && think.Close != "" {
		if err := g.put(think.Close+"\n\n", template.FromTemplate); err != nil {
			return "", err
		}
	}
	req, err := g.request(schema)
	if err != nil {
		return "", err
	}
	var rec receipt
	err = rec.receive(g, req, func(models.Chunk) (bool, error) { return true, nil })
	if err != nil {
		s.ledger = ledger
		return "", err
	}
	g.account(&rec)
	s.total(g)
	return strings.TrimSpace(rec.draft.text.String()), nil
}
