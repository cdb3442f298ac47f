package stopping

import (
	"slices"
	"strings"
	"sync/atomic"
)

// A Matcher follows one stream of generated text. It is not safe for
// concurrent use and must not be copied; a Set gives out as many as are needed.
type Matcher struct {
	text     strings.Builder
	end      int         // byte after the last complete character
	walk     *walk       // nil without patterns and literals
	patterns []*follower // by entry of the automaton
	watches  []*watch
	strips   bool // something may have to be held back
	quick    bool // nothing is held back and no watch looks, so glide may be tried
	given    int  // bytes given out
	tokens   int  // tokens received
	ended    bool
	stop     *Decision // set when a criterion fired or Close was called
}

// A Step is what one Write or Close leads to. It has four words, so that it is
// returned in registers: with more, that would take longer than the check.
type Step struct {
	// Emit is the text that may go out now. Nothing in it is ever taken back.
	Emit string
	// Stop is the decision that ended the text, nil while the text goes on.
	Stop *Decision

	notified *[]Decision
}

// Notified lists the matches of Notify criteria, by their end, then by the
// order of declaration.
func (s Step) Notified() []Decision {
	if s.notified == nil {
		return nil
	}
	return *s.notified
}

// A Tally says where the received bytes are:
// Emitted + Held + Stripped + Discarded == Received, always.
type Tally struct {
	Received  int
	Emitted   int // given out
	Held      int // not given out yet
	Stripped  int // removed because they belong to the match
	Discarded int // received past the match
}

// Write takes the next chunk of received text and the number of tokens in it
// (zero or less when the chunk completes no token). The chunk may be cut
// anywhere, also inside a character. The text is kept until the Matcher goes;
// Emit is a part of it, or the chunk itself.
//
// An error is a [*BudgetError], or [ErrEnded] after the end. With a
// BudgetError the step still holds what may go out, and Close returns the rest.
func (m *Matcher) Write(chunk string, tokens int) (Step, error) {
	if m.glide(chunk) {
		m.tokens += max(tokens, 0)
		return Step{Emit: chunk}, nil
	}
	return m.write(chunk, max(tokens, 0))
}

// glide takes a chunk if, as for nearly every token, no match begins or ends in
// it and nothing is held back.
func (m *Matcher) glide(chunk string) bool {
	w := m.walk
	if !m.quick {
		return false
	}
	next, ascii, place := w.next, w.ascii, w.place
	for i := range len(chunk) {
		v := atomic.LoadInt32(&next[uint32(place)+uint32(ascii[chunk[i]])])
		if v == place { // mostly, so that the next look-up need not wait for this one
			continue
		}
		if v < 0 {
			var n int
			if n, place = w.skip(chunk, i, place); n < len(chunk) {
				return false
			}
			break
		}
		place = v
	}
	m.append(chunk)
	m.given += len(chunk)
	w.pos, w.place = m.given, place
	return true
}

// append doubles the room when it is full: otherwise a long text would be
// copied more often.
func (m *Matcher) append(chunk string) {
	if m.text.Cap()-m.text.Len() < len(chunk) {
		m.text.Grow(max(len(chunk), 512))
	}
	m.text.WriteString(chunk)
}

// write takes a chunk with all that it may lead to.
func (m *Matcher) write(chunk string, tokens int) (Step, error) {
	if m.ended {
		return Step{}, ErrEnded
	}
	m.append(chunk)
	m.tokens += tokens
	text := m.text.String()
	m.end = complete(text)
	var f findings
	for m.walk != nil && f.last == nil && m.walk.run(text, m.end) {
		m.confirm(&f, text)
	}
	for _, w := range m.watches {
		w.receive(tokens)
		to := m.end
		if f.last != nil {
			to = f.last.decision.MatchEnd
		}
		w.look(&f, text, to, m.tokens)
	}
	step, err := m.finish(&f, text)
	m.quick = m.watches == nil && !m.ended && m.given == len(text) && m.walk.quick()
	return step, err
}

// confirm looks at the matches that the automaton has found where it stands.
func (m *Matcher) confirm(f *findings, text string) {
	w := m.walk
	var reported []int
	for _, a := range w.state().accepts {
		p := m.patterns[a.entry]
		if w.pos < p.MinBytes || m.tokens < p.MinTokens {
			continue
		}
		found, ok, err := p.confirm(text, w, a)
		if err != nil {
			f.end(finding{place: p.place, err: err, decision: Decision{MatchEnd: w.pos}})
			return
		}
		if !ok {
			continue
		}
		if f.add(p.place, &p.Criterion, found) {
			return
		}
		p.reported()
		reported = append(reported, a.entry)
	}
	for _, entry := range reported {
		w.forget(entry)
	}
}

// finish turns findings into a step.
func (m *Matcher) finish(f *findings, text string) (Step, error) {
	var step Step
	if f.last == nil && len(f.notified) == 0 {
		step.Emit = m.give(text, m.safe())
		return step, nil
	}
	slices.SortFunc(f.notified, func(a, b finding) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	var notified []Decision
	for i := range f.notified {
		if f.last == nil || f.notified[i].before(f.last) {
			notified = append(notified, f.notified[i].decision)
		}
	}
	if notified != nil {
		step.notified = &notified
	}
	switch {
	case f.last == nil:
		step.Emit = m.give(text, m.safe())
		return step, nil
	case f.last.err != nil:
		m.ended = true
		m.end = min(m.end, f.last.decision.MatchEnd)
		step.Emit = m.give(text, m.safe())
		return step, f.last.err
	}
	m.ended, m.stop = true, &f.last.decision
	m.stop.Discarded = len(text) - m.stop.MatchEnd
	step.Stop = m.stop
	step.Emit = m.give(text, m.stop.KeepEnd)
	return step, nil
}

// safe is the byte up to which the text may go out.
func (m *Matcher) safe() int {
	safe := m.end
	if !m.strips {
		return safe
	}
	if m.walk != nil {
		safe = min(safe, m.walk.held())
	}
	for _, w := range m.watches {
		safe = min(safe, w.held(m.end))
	}
	return safe
}

func (m *Matcher) give(text string, to int) string {
	if to <= m.given {
		return ""
	}
	s := text[m.given:to]
	m.given = to
	return s
}

// Close ends the text and gives back every byte that was held, also a character
// that never became complete. Stop is the decision that ended the text: the
// earlier one when a criterion had fired, otherwise one with the reason Closed.
// Closing again gives back nothing more.
func (m *Matcher) Close() Step {
	m.ended, m.quick = true, false
	if m.stop == nil {
		text := m.text.String()
		end := len(text)
		m.stop = &Decision{Reason: Closed, MatchStart: end, MatchEnd: end, KeepEnd: end}
		return Step{Emit: m.give(text, end), Stop: m.stop}
	}
	return Step{Stop: m.stop}
}

// Tally says where the bytes received so far are.
func (m *Matcher) Tally() Tally {
	n := Tally{Received: m.text.Len(), Emitted: m.given}
	if m.stop != nil {
		n.Stripped = m.stop.MatchEnd - m.stop.KeepEnd
		n.Discarded = m.stop.Discarded
	} else {
		n.Held = n.Received - n.Emitted
	}
	return n
}
