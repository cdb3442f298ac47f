package stopping

// A Matcher follows one stream of generated text. It is not safe for
// concurrent use; a Set gives out as many as are needed.
type Matcher struct {
	text    text
	watches []*watch
	given   int // bytes given out
	tokens  int // tokens received
	ended   bool
	stop    *Decision // set when a criterion fired or Close was called
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
// anywhere, also inside a character.
//
// An error is a [*BudgetError], or [ErrEnded] after the end. With a
// BudgetError the step still holds what may go out, and Close returns the rest.
func (m *Matcher) Write(chunk string, tokens int) (Step, error) {
	if m.ended {
		return Step{}, ErrEnded
	}
	var step Step
	before := len(m.text.bytes)
	m.text.bytes = append(m.text.bytes, chunk...)
	m.tokens += max(tokens, 0)
	for _, w := range m.watches {
		w.receive(tokens)
	}
	if chunk == "" && m.text.end == before {
		// A token without text moves no boundary, but it counts.
		err := m.check(&step, before, true)
		return m.finish(step, err)
	}
	for m.text.next() {
		if err := m.check(&step, before, false); err != nil || step.Stop != nil {
			return m.finish(step, err)
		}
	}
	return m.finish(step, nil)
}

// check asks every criterion about the text up to the last complete character.
// The tokens of the chunk that began at byte before are complete only when the
// chunk is.
func (m *Matcher) check(step *Step, before int, onlyTokens bool) error {
	t := &m.text
	for _, w := range m.watches {
		w.settle(t.end >= before, t.end == len(t.bytes))
		if onlyTokens && w.criterion.Tokens == 0 {
			continue
		}
		found, ok, err := w.advance(t)
		if err != nil {
			return err
		}
		if !ok || w.done || t.end < w.criterion.MinBytes || m.tokens < w.criterion.MinTokens {
			continue
		}
		d := w.decide(t, found)
		if w.criterion.Action == Notify {
			w.reported(t)
			step.Notified = append(step.Notified, d)
			continue
		}
		step.Stop = &d
		return nil
	}
	return nil
}

// finish works out what may go out after a write.
func (m *Matcher) finish(step Step, err error) (Step, error) {
	t := &m.text
	safe := t.end
	switch {
	case step.Stop != nil:
		step.Stop.Discarded = len(t.bytes) - step.Stop.MatchEnd
		step.Stop.KeepEnd = max(step.Stop.KeepEnd, m.given)
		safe = step.Stop.KeepEnd
		m.stop, m.ended = step.Stop, true
	default:
		m.ended = err != nil
		for _, w := range m.watches {
			safe = min(safe, w.held(t))
		}
	}
	step.Emit = m.give(safe)
	return step, err
}

func (m *Matcher) give(to int) string {
	if to <= m.given {
		return ""
	}
	s := string(m.text.bytes[m.given:to])
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
		end := len(m.text.bytes)
		m.stop = &Decision{Reason: Closed, MatchStart: end, MatchEnd: end, KeepEnd: end}
		return Step{Emit: m.give(end), Stop: m.stop}
	}
	return Step{Stop: m.stop}
}

// Tally says where the bytes received so far are.
func (m *Matcher) Tally() Tally {
	n := Tally{Received: len(m.text.bytes), Emitted: m.given}
	if m.stop != nil {
		n.Stripped = m.stop.MatchEnd - m.stop.KeepEnd
		n.Discarded = m.stop.Discarded
	} else {
		n.Held = n.Received - n.Emitted
	}
	return n
}
