package export

import (
	"slices"
	"strings"

	"stopgap/internal/trace"
	"stopgap/template"
)

// A rollout is a run on its way into a line.
type rollout struct {
	*trace.Rollout
	number  int      // in the journal, from 1
	before  *rollout // that its question continues; nil for none
	wanted  bool     // it passes the filters
	earlier bool     // a later line that is wanted begins with it
	counted bool     // what the model wrote in it stands in a line with its loss

	text string
	ids  []int // of the text; nil where not all of it was sent as ids
	// written is what the model wrote in this run, in bytes of the text, and
	// generated the same in ids, where the ledger has those that it generated.
	written, generated []span
	ends               []ending
}

// A span is a stretch of the text, or of the ids.
type span struct{ from, to int }

// An ending is the token with which the model ended a turn. The ledger does not
// have it as the model's: the template writes its own.
type ending struct {
	at, idAt int // where it stands, or would
	text     string
	id       int  // -1 where it is not known
	hidden   bool // the server did not show it
}

// A place is a segment of the ledger with its offsets.
type place struct {
	from, to, idFrom, idTo int
	model                  bool // it wrote it
}

// extends reports whether the ledger begins with that of another run. It does
// not where the conversation went on with another model, whose tokens are not
// those.
func (r *rollout) extends(before *rollout) bool {
	own, old := r.Outcome.Ledger.Segments(), before.Outcome.Ledger.Segments()
	if len(own) < len(old) {
		return false
	}
	for i := range old {
		if own[i].Text != old[i].Text || own[i].Source != old[i].Source || !slices.Equal(own[i].Tokens, old[i].Tokens) {
			return false
		}
	}
	return true
}

// measure finds what the model wrote in this run, and makes sure of it.
func (r *rollout) measure() error {
	if r.Runner.Format.Opening == template.OpenChat || len(r.Exchanges) == 0 {
		return nil
	}
	r.text, r.ids = r.Outcome.Ledger.Text(), r.Outcome.Ledger.IDs()
	places := r.places()
	starts := make([]int, len(r.Exchanges)) // bytes, where each generation begins
	idStarts := make([]int, len(r.Exchanges))
	for i, x := range r.Exchanges {
		var err error
		if starts[i], idStarts[i], err = r.compare(x); err != nil {
			return err
		}
	}
	if err := r.covered(places, starts); err != nil {
		return err
	}
	for i, x := range r.Exchanges {
		end := endOf(places, starts[i])
		if i+1 < len(starts) {
			end = min(end, starts[i+1]) // a stream that was cut, and gone on with
		}
		if err := r.mark(x, places, starts[i], end, idStarts[i]); err != nil {
			return err
		}
		if i+1 == len(r.Exchanges) || r.Exchanges[i+1].Turn != x.Turn {
			r.end(x, places, starts[i], end)
		}
	}
	return nil
}

func (r *rollout) fail(seq, offset int, unit, reason string) error {
	return &Error{Run: r.number, Seq: seq, Offset: offset, Unit: unit, Reason: reason}
}

// places are the ledger's segments; the last one is what would come next.
func (r *rollout) places() []place {
	var out []place
	at, id := 0, 0
	for _, s := range r.Outcome.Ledger.Segments() {
		p := place{at, at + len(s.Text), id, id + len(s.Tokens), s.Source == template.FromModel}
		out, at, id = append(out, p), p.to, p.idTo
	}
	return append(out, place{at, at, id, id, false})
}

// compare makes sure that a prompt is how the exported text begins, and gives
// its length in bytes and, where it was sent as ids, in ids.
func (r *rollout) compare(x trace.Exchange) (bytes, ids int, err error) {
	whole := r.ids != nil
	for _, s := range x.Prompt {
		if n := commonPrefix(s.Text, r.text[bytes:]); n < len(s.Text) {
			return 0, 0, r.fail(x.Seq, bytes+n, "byte", "the text is not the prompt that was sent")
		}
		bytes += len(s.Text)
		whole = whole && len(s.Tokens) > 0
		for i, id := range s.Tokens {
			if whole && (ids+i >= len(r.ids) || r.ids[ids+i] != id) {
				return 0, 0, r.fail(x.Seq, ids+i, "id", "the ids are not those that were sent")
			}
		}
		ids += len(s.Tokens)
	}
	if !whole {
		ids = -1
	}
	return bytes, ids, nil
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// covered makes sure that all that the ledger says the model wrote in this run
// was streamed at that place. Only the name of a tool that was chosen under a
// schema may stand there in another spelling, and then does not count.
func (r *rollout) covered(places []place, starts []int) error {
	streamed := make([]int, len(starts)) // how far each stream reaches
	for i, x := range r.Exchanges {
		var b strings.Builder
		for _, c := range x.Chunks {
			b.WriteString(c.Text)
		}
		streamed[i] = starts[i] + commonPrefix(r.text[starts[i]:], b.String())
	}
	for p := range places {
		if !places[p].model || places[p].from < starts[0] {
			continue
		}
		at, last := places[p].from, 0
		for i := range starts {
			if starts[i] <= at {
				at, last = max(at, min(streamed[i], places[p].to)), i
			}
		}
		switch {
		case at == places[p].to:
		case r.Runner.Constrain && r.names(places[p]):
			places[p].model = false
		default:
			return r.fail(r.Exchanges[last].Seq, at, "byte", "what the ledger says the model wrote is not what it streamed")
		}
	}
	return nil
}

// names reports whether a place has the name of a tool.
func (r *rollout) names(p place) bool {
	return slices.ContainsFunc(r.Tools, func(t template.Tool) bool { return t.Name == strings.Trim(r.text[p.from:p.to], `"`) })
}

// endOf is where what the model wrote from a place on ends.
func endOf(places []place, at int) int {
	for _, p := range places {
		if p.model && p.from <= at && at < p.to {
			at = p.to
		}
	}
	return at
}

// idAt is the number of ids before a byte, where a segment begins there.
func idAt(places []place, at int) (id int, ok bool) {
	for _, p := range places {
		if p.from == at {
			return p.idFrom, true
		}
	}
	return 0, false
}

// mark notes what stays of a stream: the text, and the ids as far as they were
// streamed. A chunk that a halt cut inside stands in the ledger with ids that
// nobody generated: they do not count.
func (r *rollout) mark(x trace.Exchange, places []place, from, end, id int) error {
	if from == end {
		return nil
	}
	r.written = append(r.written, span{from, end})
	if id < 0 {
		return nil
	}
	var pending []int
	at, idFrom := from, id
	defer func() { r.generated = append(r.generated, span{idFrom, id}) }()
	for _, c := range x.Chunks {
		pending = append(pending, c.Tokens...)
		if c.Text == "" {
			continue
		}
		if at += len(c.Text); at > end {
			break
		}
		if len(c.Tokens) == 0 { // it came without ids
			next, ok := idAt(places, at)
			if !ok {
				break
			}
			r.generated = append(r.generated, span{idFrom, id})
			id, idFrom, pending = next, next, nil
			continue
		}
		if n := len(pending); id+n > len(r.ids) || !slices.Equal(r.ids[id:id+n], pending) {
			if r.Runner.Constrain { // a name that was chosen as JSON, and spelled again
				break
			}
			return r.fail(x.Seq, id, "id", "the ids are not those that the model streamed")
		}
		id, pending = id+len(pending), nil
	}
	return nil
}

// end notes the token with which the model ended a turn, after its last request.
func (r *rollout) end(x trace.Exchange, places []place, from, at int) {
	if x.Turn > len(r.Turns) || !r.Turns[x.Turn-1].Whole {
		return
	}
	e := ending{at: at, id: -1}
	id, ok := idAt(places, at)
	if e.idAt = id; !ok {
		e.idAt = -1
	}
	stopped := r.Turns[x.Turn-1].Stopped
	var tail strings.Builder
	var next []int // the ids of the first chunk behind the turn
	for _, c := range x.Chunks {
		if from+tail.Len() == at && next == nil {
			next = c.Tokens
		}
		tail.WriteString(c.Text)
	}
	behind := tail.String()[min(at-from, tail.Len()):]
	switch {
	case stopped.Criterion != "":
		if e.text = r.closing(func(s template.Stop) bool { return s.Name == stopped.Criterion && strings.HasPrefix(behind, s.Literal) }); e.text == "" {
			return
		}
		if id, ok := r.Single(e.text); ok && len(next) == 1 && next[0] == id {
			e.id = id
		}
	case stopped.Finish == "stop":
		words := r.continuation()
		if e.text = r.closing(func(s template.Stop) bool { return strings.HasPrefix(words, s.Literal) }); e.text == "" {
			return
		}
		e.hidden = true
		if id, ok := r.Single(e.text); ok {
			e.id = id
		}
	default:
		return
	}
	r.ends = append(r.ends, e)
}

// closing is the token of the format that ends a turn and that a function takes.
func (r *rollout) closing(take func(template.Stop) bool) string {
	for _, s := range r.Runner.Format.Stops {
		if s.Means == template.MeansEnd && s.Strip && s.Literal != "" && slices.Contains(r.Runner.Format.Reserved.Strings, s.Literal) && take(s) {
			return s.Literal
		}
	}
	return ""
}

// continuation is what stands before a next question.
func (r *rollout) continuation() string {
	parts, err := r.Runner.Format.Continue(template.Continuation{Question: "x"})
	if err != nil || len(parts) == 0 {
		return ""
	}
	return parts[0].Text
}
