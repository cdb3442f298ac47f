package runner

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
)

// generate lets the model write until a criterion fires or the server ends,
// appends what is kept to the ledger and parses it. Whatever ends it, all that
// was received and is not cut by a stop is in the events and in the ledger.
func (s *state) generate() (template.Turn, error) {
	req, err := s.request()
	if err != nil {
		return template.Turn{}, err
	}
	s.turn++
	l := s.ledger
	g := &generation{state: s, matcher: s.sets[l.inThink].Matcher(), lexer: s.Format.Lexer(l.inThink)}
	err = g.stream(req)
	if closing := g.flush(); err == nil {
		err = closing
	}
	turn := g.read(g.draft.text.String()[:g.keep()], l.inThink)
	l.add(s.count, g.draft.segments(g.keep())...)
	s.total(g)
	l.inThink, l.open = turn.InThink, g.stop == nil && (g.final == nil || s.truncated)
	if err == nil {
		err = s.emit(g.stopped())
	}
	return turn, err
}

// request is the next request: the whole ledger, and as many tokens as fit.
// The error is a *LimitError.
func (s *state) request() (models.Request, error) {
	limit := cmp.Or(s.Limits.TurnTokens, s.Format.MaxTokens, defaultTurnTokens)
	if most := s.tokenLimit(); most > 0 {
		room := most - s.ledger.tokens
		estimated := s.CountTokens == nil
		if estimated && most == s.Context {
			room = max(room, leastRoom) // the server knows better, and says so
		}
		if room <= 0 {
			return models.Request{}, &LimitError{Tokens: s.ledger.tokens, Limit: most, Estimated: estimated}
		}
		if s.forced == "" {
			room -= min(answerReserve, room/2)
		}
		limit = min(limit, max(room, 1))
	}
	return models.Request{
		Prompt: s.ledger.prompt(), MaxTokens: limit, Sampling: s.sampling(),
		Preserve: s.Format.Preserve, Session: s.Session,
	}, nil
}

// A generation is one stream on its way through the matcher.
type generation struct {
	*state
	matcher *stopping.Matcher
	lexer   *template.Lexer
	draft   draft
	torn    int // bytes at the end that never became a character
	pieces  int
	stop    *stopping.Decision
	matched time.Time // when stop fired
	final   *models.Final
	usage   models.Usage
	halt    time.Duration
}

// stream reads until a stop, the server's end or an error. Leaving the range
// is what ends the request at the server.
func (g *generation) stream(req models.Request) error {
	for chunk, err := range g.Model.Stream(g.ctx, req) {
		if err == nil && g.draft.text.Len() > req.MaxTokens*longestToken {
			err = &models.ProtocolError{Server: cmp.Or(g.Name, "the model"), Reason: "much more text than tokens were asked for"}
		}
		if err != nil {
			g.broken = true
			return err
		}
		if chunk.Usage != nil {
			g.usage = *chunk.Usage
		}
		if chunk.Final != nil {
			g.usage = chunk.Final.Usage
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
			break
		}
		g.final = chunk.Final
	}
	switch {
	case g.stop != nil:
		g.halt = time.Since(g.matched)
	case g.final == nil: // it is never inferred how a stream ended
		g.broken = true
		return &models.CutError{Bytes: g.draft.text.Len(), Tokens: g.pieces}
	}
	return nil
}

// write passes a chunk's text through the matcher and yields what comes out.
func (g *generation) write(chunk models.Chunk) error {
	g.draft.add(chunk.Text, chunk.Tokens)
	if chunk.Text == "" {
		return nil
	}
	g.pieces++
	step, err := g.matcher.Write(chunk.Text, max(1, len(chunk.Tokens)))
	if g.stop = step.Stop; g.stop != nil {
		g.matched = time.Now()
	}
	if shown := g.spans(g.lexer.Write(step.Emit)); err == nil {
		err = shown
	}
	for _, d := range step.Notified() {
		if err == nil {
			err = g.emit(Noticed{Turn: g.turn, Criterion: d.Criterion.Name, MatchStart: d.MatchStart, MatchEnd: d.MatchEnd})
		}
	}
	return err
}

// flush gives out what the matcher and the lexer still hold. The beginning of
// a character at the end of the stream is dropped: no prompt can carry it.
func (g *generation) flush() error {
	held := ""
	if g.stop == nil {
		held = g.matcher.Close().Emit
		g.torn = torn(held)
		held = held[:len(held)-g.torn]
	}
	if err := g.spans(g.lexer.Write(held)); err != nil {
		return err
	}
	return g.spans(g.lexer.Close())
}

// torn is how many bytes at the end of a text are the beginning of a character.
func torn(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
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
	return g.draft.text.Len() - g.torn
}

// read parses what is kept. What a stop says of the turn comes on top: it may
// have cut off what the parser would have seen.
func (g *generation) read(text string, inThink bool) template.Turn {
	t := g.Format.Parse(text, template.Reading{InThink: inThink})
	if d := g.stop; d != nil {
		invented := g.means[d.Criterion.Name] == template.MeansInvented
		switch {
		case d.Criterion.Action == stopping.Finish && !t.Answered:
			t.Answer, t.Answered = cmp.Or(t.Text, t.Think), true
		case invented && len(t.Calls) == 0 && g.forced == "":
			p := template.Problem{Kind: template.InventedResponse, Start: len(text), End: len(text)}
			t.Answered, t.Problems = false, append([]template.Problem{p}, t.Problems...)
		}
	}
	t.Answered = t.Answered && t.Answer != ""
	return t
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
	s.full = g.final != nil && g.final.Finish == models.FinishContext
	s.truncated = s.full || g.final != nil && g.final.Finish == models.FinishLength
	if !g.usage.Generated.Known {
		g.usage.Generated = g.draft.generated()
	}
	s.halted = g.stop != nil && slices.ContainsFunc(s.Criteria, func(c stopping.Criterion) bool {
		return c.Name == g.stop.Criterion.Name
	})
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
