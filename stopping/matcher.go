package stopping

import (
	"slices"
	"strings"
)

// A Matcher follows one stream of generated text. It is not safe for
// concurrent use and must not be copied; a Set gives out as many as are needed.
type Matcher struct {
	set      *Set
	text     strings.Builder
	end      int         // byte after the last complete character
	walk     *walk       // nil without patterns and literals
	patterns []*follower // by entry of the automaton
	watches  []*watch
	strips   bool // something may have to be held back
	given    int  // bytes given out
	tokens   int  // tokens received
	ended    bool
	stop     *Decision // set when a criterion fired or Close was called
}

// A Step is what one Write or Close leads to.
type Step struct {
	// Emit is the text that may go out now. Nothing in it is ever taken back.
	Emit string
	// Notified lists the matches of Notify criteria, by their end, then by
	// the order of declaration.
	Notified []Decision
	// Stop is the decision that ended the text, nil while the text goes on.
	Stop *Decision
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
// anywhere, also inside a character. The text is kept until the Matcher goes,
// and Emit is a part of it.
//
// An error is a [*BudgetError], or [ErrEnded] after the end. With a
// BudgetError the step still holds what may go out, and Close returns the rest.
func (m *Matcher) Write(chunk string, tokens int) (Step, error) {
	if m.ended {
		return Step{}, ErrEnded
	}
	before := m.text.Len()
	m.text.WriteString(chunk)
	m.tokens += max(tokens, 0)
	text := m.text.String()
	m.end = complete(text)
	hit := m.walk != nil && m.walk.run(text, m.end)
	if !hit && m.watches == nil {
		return Step{Emit: m.give(text, m.safe())}, nil
	}
	var f findings
	for hit && f.last == nil {
		m.confirm(&f, text)
		hit = f.last == nil && m.walk.run(text, m.end)
	}
	for _, w := range m.watches {
		w.receive(max(tokens, 0), before)
		to := m.end
		if f.last != nil {
			to = f.last.decision.MatchEnd
		}
		w.look(&f, text, to, m.tokens)
	}
	return m.finish(&f, text)
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
		p.reported(w.pos)
		reported = append(reported, a.entry)
	}
	for _, entry := range reported {
		w.forget(entry)
	}
}

// finish turns findings into a step.
func (m *Matcher) finish(f *findings, text string) (Step, error) {
	var step Step
	slices.SortFunc(f.notified, func(a, b finding) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	for i := range f.notified {
		if f.last == nil || f.notified[i].before(f.last) {
			step.Notified = append(step.Notified, f.notified[i].decision)
		}
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
	m.ended = true
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
