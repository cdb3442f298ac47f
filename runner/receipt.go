package runner

import (
	"slices"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
)

// noUsage is the sum of no requests.
var noUsage = models.Usage{
	Prompt: models.Known(0), Evaluated: models.Known(0), Reused: models.Known(0), Generated: models.Known(0),
}

// A receipt is what one request gave, and those before it whose streams were cut.
type receipt struct {
	draft  draft // of them all
	usage  models.Usage
	final  *models.Final
	pieces int
}

// receive sends a request and passes on what comes, until take says that it is
// enough or the server ends. Leaving the range is what ends the request there.
func (r *receipt) receive(g *generation, req models.Request, take func(models.Chunk) (more bool, err error)) error {
	g.event.Requests++
	from := r.draft.text.Len()
	for chunk, err := range g.Model.Stream(g.ctx, req) {
		if err == nil && r.draft.text.Len()-from > req.MaxTokens*longestToken {
			err = &models.ProtocolError{Server: g.server(), Reason: "much more text than tokens were asked for"}
		}
		if err != nil {
			g.broken = true
			return err
		}
		if err := r.note(g.state, chunk); err != nil {
			return err
		}
		r.draft.add(chunk.Text, chunk.Tokens)
		if chunk.Text != "" {
			r.pieces++
		}
		more, err := take(chunk)
		if err != nil || !more {
			return err
		}
		r.final = chunk.Final
	}
	if r.final == nil { // it is never inferred how a stream ended
		g.broken = true
		return &models.CutError{Bytes: r.draft.text.Len() - from, Tokens: r.pieces}
	}
	return nil
}

// note keeps the counts of a chunk and yields its progress.
func (r *receipt) note(s *state, chunk models.Chunk) error {
	if chunk.Usage != nil {
		r.usage = *chunk.Usage
	}
	if chunk.Final != nil {
		r.usage = chunk.Final.Usage
	}
	if err := s.compare(r.usage.Prompt); err != nil {
		s.broken = true
		return err
	}
	if p := chunk.Progress; p != nil {
		return s.emit(Waiting{Turn: s.turn, Phase: p.Phase, Done: p.Done, Total: p.Total})
	}
	return nil
}

// spent is how many tokens the turn has taken so far, about.
func (g *generation) spent() int { return max(g.event.Pieces, g.event.Usage.Generated.N) }

// account adds a request to the sums of the turn.
func (g *generation) account(r *receipt) {
	if !r.usage.Generated.Known {
		r.usage.Generated = r.draft.generated()
	}
	ev := &g.event
	ev.Pieces += r.pieces
	ev.Usage = sum(ev.Usage, r.usage)
	if g.stop != nil {
		ev.Discarded += g.stop.Discarded
	}
	g.full = r.final != nil && r.final.Finish == models.FinishContext
	g.truncated = g.full || r.final != nil && r.final.Finish == models.FinishLength
}

// total adds a turn to the sums of the run.
func (s *state) total(g *generation) {
	s.halted = g.stop != nil && slices.ContainsFunc(s.Criteria, func(c stopping.Criterion) bool {
		return c.Name == g.stop.Criterion.Name
	})
	o, ev := &s.outcome, &g.event
	o.Usage = sum(o.Usage, ev.Usage)
	o.Requests += ev.Requests
	o.Pieces += ev.Pieces
	o.Discarded += ev.Discarded
	if g.stop != nil && s.means[g.stop.Criterion.Name] == template.MeansInvented {
		o.Invented++
	}
}

func sum(a, b models.Usage) models.Usage {
	return models.Usage{
		Prompt: plus(a.Prompt, b.Prompt), Evaluated: plus(a.Evaluated, b.Evaluated),
		Reused: plus(a.Reused, b.Reused), Generated: plus(a.Generated, b.Generated),
	}
}

// plus adds counts; a sum with an unknown part is unknown.
func plus(a, b models.Count) models.Count {
	if !a.Known || !b.Known {
		return models.Count{}
	}
	return models.Known(a.N + b.N)
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
