package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"stopgap/models"
)

// stream reads until a stop, the server's end or an error. A stream that was
// cut is gone on with: what it gave stays in the events, is read by a matcher
// once more and ends the next prompt. It reaches the ledger when it is known
// where the turn ends. After a stop nothing is gone on with, so that no call is
// written twice.
func (st *stretch) stream(req models.Request) error {
	before, rest := st.spent(), req
	for {
		err := st.receive(st.generation, rest, st.take)
		var cut *models.CutError
		if !errors.As(err, &cut) || !st.resumes() {
			return err
		}
		st.account(&st.receipt)
		st.next()
		left := req.MaxTokens - (st.spent() - before)
		if left <= 0 { // all that was asked for has come
			st.broken, st.usage = false, noUsage
			st.final = &models.Final{Finish: models.FinishLength, Usage: noUsage}
			return nil
		}
		if err := st.reread(cut); err != nil {
			return err
		}
		rest.Prompt, rest.MaxTokens = slices.Concat(req.Prompt, st.received()), left
	}
}

// held lets the model write a value under a schema. show is told of what comes,
// and says how much of it has been given out.
//
// A server begins a schema where the text begins, so that no request goes on in
// the middle of a value. A stream that was cut is gone on with where that is
// exact all the same: nothing follows a value that has its end, and one of which
// nothing was given out is asked for again. Elsewhere the error stays.
func (g *generation) held(schema json.RawMessage, whole func(text string) bool, show func(*receipt) (int, error)) (receipt, error) {
	for {
		req, err := g.request(schema)
		if err != nil {
			return receipt{}, err
		}
		var r receipt
		shown := 0
		err = r.receive(g, req, func(models.Chunk) (more bool, err error) {
			shown, err = show(&r)
			return true, err
		})
		var cut *models.CutError
		ended := whole(r.draft.text.String())
		again := errors.As(err, &cut) && g.resumes() && (ended || shown == 0)
		if again && ended {
			r.final = &models.Final{Finish: models.FinishStop, Usage: r.usage}
		}
		g.finish = r.final
		g.account(&r)
		if !again {
			return r, err
		}
		g.broken = false
		g.event.Resumed++
		g.outcome.Resumed++
		if err := g.emit(Resumed{Turn: g.turn, Bytes: g.kept.Len() + shown, Error: cut.Error()}); err != nil {
			return r, err
		}
		if ended {
			return r, nil
		}
	}
}

// resumes reports whether one more stream that was cut may be gone on with.
func (g *generation) resumes() bool {
	return g.outcome.Resumed < cmp.Or(g.Limits.Resumes, defaultResumes) && g.ctx.Err() == nil
}

// next makes the receipt ready for one more request.
func (r *receipt) next() {
	r.usage, r.final, r.pieces = models.Usage{}, nil, 0
	r.draft.trim()
}

// reread tells of the cut, and lets a new matcher read what was received: the
// old one has seen the beginning of a character that will come again.
func (st *stretch) reread(cut error) error {
	st.broken = false
	st.event.Resumed++
	st.outcome.Resumed++
	text := st.kept.String() + st.draft.text.String()
	if err := st.emit(Resumed{Turn: st.turn, Bytes: len(text), Error: cut.Error()}); err != nil {
		return err
	}
	set, err := st.set(st.began, len(text)) // what is older has been looked at
	if err != nil {
		return err
	}
	st.matcher, st.skip = set.Matcher(), st.shown
	return st.watch(text, st.spent())
}

// received is the draft as the end of a prompt: ids where they are known.
func (st *stretch) received() []models.Segment {
	var out []models.Segment
	for _, s := range st.draft.segments(st.turn, st.draft.text.Len()) {
		out = append(out, models.Segment{Text: s.Text, Tokens: s.Tokens})
	}
	return out
}

// trim takes the beginning of a character off the end, and ids whose text has
// not come. They are counted; they will come again.
func (d *draft) trim() {
	text := d.text.String()
	text = text[:len(text)-torn(text)]
	d.text.Reset()
	d.text.WriteString(text)
	d.pending, d.counted = nil, d.ids
	for i := range d.chunks {
		c := &d.chunks[i]
		if len(c.Text) > len(text) {
			d.chunks = append(d.chunks[:i], models.Chunk{Text: text}) // where the ids spell more than that
			return
		}
		text = text[len(c.Text):]
	}
}
