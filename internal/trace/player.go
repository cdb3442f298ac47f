package trace

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"

	"stopgap/models"
	"stopgap/tools"
)

// A player answers in place of a model and of tools, as a tape has it.
type player struct {
	*tape
	// live answers what is not on the tape; nil means nobody does.
	live models.Model
	// turns is how many turns are played; the rest is live.
	turns int
	// foreign says that live has other tokens than the tape.
	foreign bool
	// spelled are the turns as another format spells them; nil for as they were.
	spelled []string
	// stop makes the context of the run done, where the tape's was; nil where
	// somebody else does.
	stop func()

	// spells gives the speller of a spelling on the tape.
	spells func(spelling) *speller

	mu       sync.Mutex
	next     int  // request
	asked    bool // something that is not on the tape
	rendered int
}

var (
	errOver = errors.New("the journal ends here")
	// errWentOn says that what is played is not what was recorded.
	errWentOn = errors.New("the recorded run ended this request here")
)

// exchange gives what the next request is answered with, or nil where that is
// not on the tape.
func (p *player) exchange() *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.requests) || p.requests[p.next].Turn > p.turns {
		p.asked = true
		return nil
	}
	x := p.requests[p.next]
	p.next++
	if p.spelled == nil {
		return &x
	}
	for p.next < len(p.requests) && p.requests[p.next].Turn == x.Turn {
		p.next++ // the turn is one request now
	}
	x.stream = &stream{Chunks: []chunk{{Text: p.spelled[x.Turn-1]}, {Final: &models.Final{Finish: models.FinishStop}}}}
	return &x
}

// model gives the player the abilities of another model.
func (p *player) model(like abilities) models.Model {
	return assemble(p, like, playedChat{p}, playedRendering{p}, playedSpelling{p})
}

// Stream implements models.Model.
func (p *player) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		if req.Prefill { // it is not on the tape, and nobody misses it
			return
		}
		x := p.exchange()
		if x == nil && p.live != nil {
			p.live.Stream(ctx, req)(yield)
			return
		}
		play(p, x, func(c *chunk) models.Chunk {
			out := c.chunk()
			if p.foreign {
				out.Tokens = nil
			}
			return out
		}, yield)
	}
}

type playedChat struct{ *player }

// Chat implements models.Chatter.
func (p playedChat) Chat(ctx context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		x := p.exchange()
		if x == nil && p.live != nil {
			p.live.(models.Chatter).Chat(ctx, req)(yield)
			return
		}
		play(p.player, x, (*chunk).chatChunk, yield)
	}
}

// play yields a recorded stream.
func play[C any](p *player, x *exchange, read func(*chunk) C, yield func(C, error) bool) {
	var none C
	if x == nil {
		yield(none, errOver)
		return
	}
	for i := range x.stream.Chunks {
		if !yield(read(&x.stream.Chunks[i]), nil) {
			return
		}
	}
	switch {
	case x.stream.Left:
		yield(none, errWentOn)
	case x.stream.Error != nil:
		p.done(x.stream.Done)
		yield(none, x.stream.Error.err())
	}
}

// done ends the context of the run where it had ended then.
func (p *player) done(then bool) {
	if then && p.stop != nil {
		p.stop()
	}
}

type playedRendering struct{ *player }

// Render implements models.Renderer. The question that is asked now stands where
// the recorded one stood.
func (p playedRendering) Render(ctx context.Context, c models.Conversation) (string, error) {
	p.mu.Lock()
	n := p.rendered
	p.rendered++
	p.mu.Unlock()
	if n >= len(p.renders) {
		if p.live != nil {
			return p.live.(models.Renderer).Render(ctx, c)
		}
		return "", errOver
	}
	r := p.renders[n]
	if r.Error != nil {
		p.done(r.Done)
		return "", r.Error.err()
	}
	return strings.ReplaceAll(r.Text, r.Mark, questionOf(c)), nil
}

// result gives what a call gave.
func (p *player) result(at place) (tools.Result, bool) {
	r, ok := p.results[at]
	if !ok || at.Turn > p.turns {
		return tools.Result{}, false
	}
	p.done(r.Done)
	return r.result(), true
}

// A described tool has a spec and does nothing.
type described struct{ spec tools.Spec }

// Spec implements tools.Tool.
func (d described) Spec() tools.Spec { return d.spec }

// Run implements tools.Tool.
func (d described) Run(context.Context, json.RawMessage) (string, error) { return "", errOver }
