package trace

import (
	"fmt"
	"slices"
	"strings"

	"stopgap/tools"
)

// A Finding is something in a run that a whole run does not have.
type Finding struct {
	Seq    int    `json:"seq"` // of the record, from 1
	Reason string `json:"reason"`
}

func (f Finding) String() string { return fmt.Sprintf("record %d: %s", f.Seq, f.Reason) }

// Verify looks for what the frames of a journal do not tell: that every record
// can be read and stands where it belongs, that the hash of every prompt is that
// of its pieces, and that every prompt begins with the one before, in text and
// in token ids. A question that continues a conversation begins with the last
// prompt of the run before it.
func (d *Deck) Verify(i int) []Finding {
	t, err := newTape(&d.runs[i])
	if err != nil {
		e := err.(*RecordError)
		return []Finding{{e.Seq, e.Reason}}
	}
	out := []Finding{}
	find := func(seq int, format string, args ...any) {
		out = append(out, Finding{seq, fmt.Sprintf(format, args...)})
	}
	last := d.continued(t)
	var pieces []piece
	for n, x := range t.requests {
		if x.Kept > len(pieces) {
			find(x.seq, "the prompt keeps %d pieces of %d", x.Kept, len(pieces))
			break
		}
		pieces = slices.Concat(pieces[:x.Kept], x.Append)
		if size, sum := digest(pieces); size != x.Bytes || sum != x.SHA256 {
			find(x.seq, "the prompt is not the one that the hash is of")
		}
		if !begins(pieces, last) {
			find(x.seq, "the prompt does not begin with the one before")
		}
		last = pieces
		if x.stream == nil && (t.ended != nil || n < len(t.requests)-1) {
			find(x.seq, "nothing tells what the request gave")
		}
	}
	for at := range t.results {
		if _, ok := t.running[at]; !ok && t.results[at].Status != tools.Interrupted {
			find(len(t.run.Records), "call %d of turn %d gave something and never ran", at.Call+1, at.Turn)
		}
	}
	return out
}

// continued are the pieces of the last prompt before the run.
func (d *Deck) continued(t *tape) []piece {
	if t.run.Header.Continues == "" {
		return nil
	}
	for j := range d.runs {
		before, err := newTape(&d.runs[j])
		if err != nil || !before.endsWith(t.run.Header.Continues) {
			continue
		}
		return before.lastPrompt()
	}
	return nil
}

// begins reports whether a prompt begins with another one: its text, its ids
// where there are any, and its messages.
func begins(now, before []piece) bool {
	flat := func(pieces []piece) (text string, ids []int) {
		var b strings.Builder
		for i := range pieces {
			if pieces[i].Message != nil {
				b.Write(pieces[i].hash(nil))
			}
			b.WriteString(pieces[i].text())
			ids = append(ids, pieces[i].Tokens...)
		}
		return b.String(), ids
	}
	text, ids := flat(now)
	oldText, oldIDs := flat(before)
	return strings.HasPrefix(text, oldText) && len(ids) >= len(oldIDs) && slices.Equal(ids[:len(oldIDs)], oldIDs)
}

// Prompt gives the exact text of the last prompt of a run, as the model got it.
// Of a chat endpoint it gives the messages, one JSON object a line. The error is
// a *RecordError.
func (d *Deck) Prompt(i int) (string, error) {
	t, err := newTape(&d.runs[i])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range t.lastPrompt() {
		if p.Message != nil {
			b.Write(append(p.hash(nil), '\n'))
		}
		b.WriteString(p.text())
	}
	return b.String(), nil
}

// lastPrompt are the pieces of the last request's prompt.
func (t *tape) lastPrompt() []piece {
	var pieces []piece
	for _, x := range t.requests {
		pieces = slices.Concat(pieces[:min(x.Kept, len(pieces))], x.Append)
	}
	return pieces
}
