package stopping

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// An outcome is all that a stream led to.
type outcome struct {
	emitted  string
	notified []Decision
	stop     *Decision
	tally    Tally
}

// fired is the stop, nil when the text was closed.
func (o outcome) fired() *Decision {
	if o.stop.Reason == Closed {
		return nil
	}
	return o.stop
}

// stream writes the chunks, one token each, and closes. The error is that of
// the matcher, or says that the bytes do not add up, that a byte was given out
// that is not in its place, or, when nothing strips, that more is held back
// than an incomplete character.
func stream(set *Set, strips bool, chunks []string) (outcome, error) {
	m := set.Matcher()
	var o outcome
	received := ""
	whole := 0 // bytes of complete characters
	for _, chunk := range chunks {
		step, err := m.Write(chunk, 1)
		received += chunk
		o.emitted += step.Emit
		o.notified = append(o.notified, step.Notified()...)
		if o.tally = m.Tally(); misplaced(o.tally, received, o.emitted) {
			return o, fmt.Errorf("%+v after %q with %q given out", o.tally, received, o.emitted)
		}
		if err != nil {
			if rest := m.Close(); o.emitted+rest.Emit != received || rest.Stop.Reason != Closed {
				return o, fmt.Errorf("%q and %q given out of %q after: %v", o.emitted, rest.Emit, received, err)
			}
			return o, err
		}
		if step.Stop != nil {
			if err := stopped(m, step.Stop, received, o); err != nil {
				return o, err
			}
			break
		}
		for whole < len(received) && utf8.FullRuneInString(received[whole:]) {
			_, size := utf8.DecodeRuneInString(received[whole:])
			whole += size
		}
		if !strips && o.tally.Held != len(received)-whole {
			return o, fmt.Errorf("%d bytes of %q held back with nothing to strip", o.tally.Held, received)
		}
	}
	last := m.Close()
	o.emitted += last.Emit
	o.stop = last.Stop
	o.tally = m.Tally()
	switch again := m.Close(); {
	case misplaced(o.tally, received, o.emitted) || o.tally.Held != 0:
		return o, fmt.Errorf("%+v after %q was closed with %q given out", o.tally, received, o.emitted)
	case o.stop.Reason == Closed && o.emitted != received:
		return o, fmt.Errorf("closed with %q of %q", o.emitted, received)
	case again.Emit != "" || again.Stop != o.stop:
		return o, fmt.Errorf("the second Close gave %+v", again)
	}
	return o, nil
}

// stopped says what is wrong with a stop.
func stopped(m *Matcher, d *Decision, received string, o outcome) error {
	if again, err := m.Write("more", 1); err != ErrEnded || !reflect.DeepEqual(again, Step{}) {
		return fmt.Errorf("write after a stop: %+v, %v", again, err)
	}
	if d.Criterion == nil || d.Reason != Matched || o.emitted != received[:d.KeepEnd] {
		return fmt.Errorf("stop %+v with %q given out of %q", d, o.emitted, received)
	}
	if d.Discarded != len(received)-d.MatchEnd || d.Discarded != o.tally.Discarded || o.tally.Stripped != d.MatchEnd-d.KeepEnd {
		return fmt.Errorf("stop %+v and %+v after %d bytes", d, o.tally, len(received))
	}
	return nil
}

// misplaced reports whether the bytes do not add up, or were given out that are
// not in their place.
func misplaced(n Tally, received, emitted string) bool {
	return n.Emitted+n.Held+n.Stripped+n.Discarded != n.Received || min(n.Emitted, n.Held, n.Stripped, n.Discarded) < 0 ||
		n.Received != len(received) || n.Emitted != len(emitted) || !strings.HasPrefix(received, emitted)
}

// strips reports whether any criterion removes its match.
func strips(list []Criterion) bool {
	return slices.ContainsFunc(list, func(c Criterion) bool { return c.Strip || c.StripGroup != "" })
}

// follow is stream for texts that must not lead to an error.
func follow(t testing.TB, set *Set, chunks []string) outcome {
	t.Helper()
	o, err := stream(set, true, chunks)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// sameOutcome compares all but the bytes past the match, which depend on how
// much the last chunk brought.
func sameOutcome(a, b outcome) error {
	clean := func(o outcome) outcome {
		stop := *o.stop
		o.tally.Received -= o.tally.Discarded
		stop.Discarded, o.tally.Discarded = 0, 0
		o.stop = &stop
		return o
	}
	if a, b = clean(a), clean(b); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%+v %+v, but %+v %+v", a, *a.stop, b, *b.stop)
	}
	return nil
}

// kinds of criteria that do not count tokens: where tokens end inside a chunk
// is not known, so how they are cut matters.
func randomCriteria(r *rand.Rand) []Criterion {
	var list []Criterion
	for i := range r.IntN(4) + 1 {
		c := Criterion{Name: fmt.Sprint(i), MinBytes: r.IntN(3) * r.IntN(20)}
		switch r.IntN(8) {
		case 0:
			c.Literal = pieces[r.IntN(30)] + pieces[r.IntN(30)]
		case 1:
			c.Repetition = &Repetition{Min: r.IntN(3), Max: 3 + r.IntN(9), Count: 2 + r.IntN(3)}
		case 2:
			c.JSON = true
		case 3:
			c.Sentences = 1 + r.IntN(3)
		case 4:
			c.Bytes = 1 + r.IntN(60)
		default:
			c.Regex = patterns[r.IntN(len(patterns))]
		}
		if r.IntN(2) == 0 {
			c.Scope = scopes[r.IntN(len(scopes))]
		}
		counts := c.Sentences+c.Bytes > 0
		switch {
		case r.IntN(3) == 0:
			c.Action = Notify
		case r.IntN(2) == 0 && !counts:
			c.Strip = true
		case strings.Contains(c.Regex, "(?<g>"):
			c.StripGroup = "g"
		}
		if r.IntN(2) == 0 {
			c.Captures = Nearest
		}
		list = append(list, c)
	}
	return list
}

// TestChunksNeverMatter: however a text is cut, what goes out, what fires and
// where every byte went are the same.
func TestChunksNeverMatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	rounds := 2500
	if testing.Short() {
		rounds = 600
	}
	fired := 0
	for range rounds {
		list := randomCriteria(r)
		set, err := Compile(list...)
		if err != nil {
			t.Fatal(err)
		}
		text := randomText(r, 24)
		whole := follow(t, set, []string{text})
		if whole.fired() != nil {
			fired++
		}
		for name, chunks := range cuts(r, text) {
			got, err := stream(set, strips(list), chunks)
			if err == nil {
				err = sameOutcome(whole, got)
			}
			if err != nil {
				t.Errorf("%+v in %q, %s: %v", list, text, name, err)
			}
		}
	}
	t.Logf("%d texts, %d stopped", rounds, fired)
}

// FuzzChunks looks for a text and a way to cut it that change the outcome.
func FuzzChunks(f *testing.F) {
	r := rand.New(rand.NewPCG(11, 12))
	for i, p := range patterns {
		f.Add(p, randomText(r, 24), uint64(i), i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, regex, text string, seed uint64, strip, nearest bool) {
		if len(text) > 400 || len(regex) > 100 {
			t.Skip("long inputs find nothing that short ones do not")
		}
		c := Criterion{Name: "p", Regex: regex, Strip: strip}
		if nearest {
			c.Captures = Nearest
		}
		set, err := Compile(c)
		if err != nil {
			t.Skip("not a pattern")
		}
		if _, err := set.Matcher().Write(text, 1); err != nil {
			t.Skip("beyond its budget")
		}
		whole := follow(t, set, []string{text})
		for name, chunks := range cuts(rand.New(rand.NewPCG(seed, 1)), text) {
			if err := sameOutcome(whole, follow(t, set, chunks)); err != nil {
				t.Errorf("%q in %q, %s: %v", regex, text, name, err)
			}
		}
	})
}
