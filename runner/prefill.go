package runner

import (
	"context"

	"stopgap/models"
	"stopgap/template"
)

// A prefill is a request that lets the server read what is certain of the next
// prompt while tools run: what the model wrote last, and the words before the
// first result.
type prefill struct {
	cancel context.CancelFunc
	done   chan struct{}
	read   models.Count
}

// prefill begins one where the run wants it. An error of it says nothing: the
// next request will tell.
func (s *state) prefill() *prefill {
	if !s.Prefill || s.Format.Opening == template.OpenChat {
		return nil
	}
	head, err := s.head()
	if err != nil {
		return nil
	}
	req := models.Request{Prompt: append(s.ledger.prompt(), head...), MaxTokens: 1, Prefill: true, Session: s.Session}
	ctx, cancel := context.WithCancel(s.ctx)
	p := &prefill{cancel: cancel, done: make(chan struct{})}
	model := s.Model
	go func() {
		defer close(p.done)
		for chunk, err := range model.Stream(ctx, req) {
			if err != nil {
				return
			}
			if chunk.Final != nil {
				p.read = chunk.Final.Usage.Evaluated
			} else if chunk.Usage != nil {
				p.read = chunk.Usage.Evaluated
			}
			if chunk.Text != "" || len(chunk.Tokens) > 0 { // it has begun to generate: all is read
				return
			}
		}
	}()
	return p
}

// end leaves the prefill, so that the next request does not wait for it.
func (p *prefill) end(s *state) {
	if p == nil {
		return
	}
	p.cancel()
	<-p.done
	s.outcome.Prefilled += p.read.N
}

// head is what stands before the first result of a turn, whatever it is.
func (s *state) head() ([]models.Segment, error) {
	c := template.Continuation{Results: []template.Result{{Content: "x"}}, InThink: s.ledger.inThink, Open: s.ledger.open}
	parts, err := s.Format.Continue(c)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if p.Source.Untrusted() {
			parts = parts[:i]
			break
		}
	}
	segments := s.ledger.secure(parts, s.speller.text)
	if err := s.spell(segments); err != nil {
		return nil, err
	}
	return (&Ledger{segments: segments}).prompt(), nil
}
