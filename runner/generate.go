package runner

import (
	"time"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
)

// generate lets the model write until a criterion fires or the server ends,
// appends what is kept to the ledger and parses it. Whatever ends it, all that
// was received and is not cut by a stop is in the events and in the ledger.
func (s *state) generate() (template.Turn, error) {
	s.turn++
	g := &generation{state: s, matcher: s.sets[s.ledger.inThink].Matcher(), lexer: s.Format.Lexer(s.ledger.inThink)}
	err := g.stream(s.request())
	if closing := g.flush(); err == nil {
		err = closing
	}
	text := g.draft.text.String()[:g.keep()]
	s.ledger.add(s.count, g.draft.segments(g.keep())...)
	s.total(g)
	if err != nil {
		return template.Turn{}, err
	}
	if err := s.emit(g.stopped()); err != nil {
		return template.Turn{}, err
	}
	turn := s.Format.Parse(text, s.ledger.inThink)
	s.ledger.inThink = turn.InThink
	return turn, nil
}

// request is the next request: the whole ledger, and as many tokens as fit.
func (s *state) request() models.Request {
	limit := s.Limits.TurnTokens
	if limit == 0 {
		limit = s.Format.MaxTokens
	}
	if limit == 0 {
		limit = 4096
	}
	if s.Context > 0 { // the count is an estimate from above: never ask for nothing
		limit = min(limit, max(s.Context-s.ledger.tokens, answerReserve/4))
	}
	return models.Request{
		Prompt: s.ledger.prompt(), MaxTokens: limit, Sampling: s.sampling(),
		Preserve: s.Format.Preserve, Session: s.Session,
	}
}

// A generation is one stream on its way through the matcher.
type generation struct {
	*state
	matcher *stopping.Matcher
	lexer   *template.Lexer
	draft   draft
	pieces  int
	stop    *stopping.Decision
	final   *models.Final
	usage   models.Usage
	halt    time.Duration
	err     error // of an event that could not be yielded
}

// stream reads until a stop, the server's end or an error. Leaving the range
// is what ends the request at the server.
func (g *generation) stream(req models.Request) error {
	var matched time.Time
	for chunk, err := range g.Model.Stream(g.ctx, req) {
		if err != nil {
			g.broken = true
			return err
		}
		if chunk.Usage != nil {
			g.usage = *chunk.Usage
		}
		if p := chunk.Progress; p != nil {
			if err := g.emit(Waiting{Turn: g.turn, Phase: p.Phase, Done: p.Done, Total: p.Total}); err != nil {
				return err
			}
		}
		if err := g.write(chunk); err != nil {
			return err
		}
		if g.stop != nil {
			matched = time.Now()
			break
		}
		if chunk.Final != nil {
			g.final, g.usage = chunk.Final, chunk.Final.Usage
		}
	}
	if g.stop != nil {
		g.halt = time.Since(matched)
	}
	return nil
}

// write passes a chunk's text through the matcher and yields what comes out.
func (g *generation) write(chunk models.Chunk) error {
	if chunk.Text == "" {
		return nil
	}
	g.pieces++
	g.draft.add(chunk)
	step, err := g.matcher.Write(chunk.Text, max(1, len(chunk.Tokens)))
	if err != nil {
		return err
	}
	g.stop = step.Stop
	return g.spans(g.lexer.Write(step.Emit))
}

// flush gives out what the matcher and the lexer still hold.
func (g *generation) flush() error {
	held := ""
	if g.stop == nil {
		held = g.matcher.Close().Emit
	}
	if err := g.spans(g.lexer.Write(held)); err != nil {
		return err
	}
	return g.spans(g.lexer.Close())
}

func (g *generation) spans(spans []template.Span) error {
	for _, sp := range spans {
		if err := g.emit(Text{Turn: g.turn, Span: sp.Kind, Text: sp.Text}); err != nil {
			return err
		}
	}
	return nil
}

// keep is how many bytes of the received text stay.
func (g *generation) keep() int {
	if g.stop != nil {
		return g.stop.KeepEnd
	}
	return g.draft.text.Len()
}

// stopped is the event that ends this generation.
func (g *generation) stopped() Stopped {
	ev := Stopped{
		Turn: g.turn, Means: template.MeansEnd, KeepEnd: g.keep(), Usage: g.usage, Halt: g.halt, Pieces: g.pieces,
	}
	if g.final != nil {
		ev.Finish, ev.Timings = g.final.Finish, g.final.Timings
	}
	if d := g.stop; d != nil {
		ev.Criterion, ev.Means = d.Criterion.Name, g.means[d.Criterion.Name]
		ev.MatchStart, ev.MatchEnd, ev.Discarded = d.MatchStart, d.MatchEnd, d.Discarded
	}
	return ev
}

// total adds a generation to the sums of the run.
func (s *state) total(g *generation) {
	s.truncated = g.final != nil && g.final.Finish != models.FinishStop
	o := &s.outcome
	o.Usage.Prompt = plus(o.Usage.Prompt, g.usage.Prompt)
	o.Usage.Evaluated = plus(o.Usage.Evaluated, g.usage.Evaluated)
	o.Usage.Reused = plus(o.Usage.Reused, g.usage.Reused)
	o.Usage.Generated = plus(o.Usage.Generated, g.usage.Generated)
	o.Pieces += g.pieces
	if g.stop != nil {
		o.Discarded += g.stop.Discarded
		if g.means[g.stop.Criterion.Name] == template.MeansInvented {
			o.Invented++
		}
	}
}

// plus adds counts; a sum with an unknown part is unknown.
func plus(a, b models.Count) models.Count {
	if !a.Known || !b.Known {
		return models.Count{}
	}
	return models.Known(a.N + b.N)
}
