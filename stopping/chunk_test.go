package stopping

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
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

// follow writes the chunks, one token each, and closes. It fails the test when
// the bytes do not add up, when a byte was given out that is not in its place,
// or when a kept text is held back longer than a character.
func follow(t testing.TB, set *Set, chunks []string) outcome {
	t.Helper()
	m := set.Matcher()
	var o outcome
	received := ""
	strips := slices.ContainsFunc(set.criteria, func(c compiled) bool { return c.Strip || c.StripGroup != "" })
	for _, chunk := range chunks {
		step, err := m.Write(chunk, 1)
		if err != nil {
			t.Fatalf("%q after %q: %v", chunk, received, err)
		}
		received += chunk
		o.emitted += step.Emit
		o.notified = append(o.notified, step.Notified...)
		o.tally = checkTally(t, m, received, o.emitted)
		if step.Stop != nil {
			if again, err := m.Write("more", 1); err != ErrEnded || !reflect.DeepEqual(again, Step{}) {
				t.Errorf("write after a stop: %+v, %v", again, err)
			}
			if step.Stop.Criterion == nil || step.Stop.Reason != Matched || o.emitted != received[:step.Stop.KeepEnd] {
				t.Errorf("stop %+v with %q given out of %q", step.Stop, o.emitted, received)
			}
			break
		}
		if bounds := boundaries(received); !strips && o.tally.Held != len(received)-bounds[len(bounds)-1] {
			t.Errorf("%d bytes of %q held back with nothing to strip", o.tally.Held, received)
		}
	}
	last := m.Close()
	o.emitted += last.Emit
	o.stop = last.Stop
	o.tally = checkTally(t, m, received, o.emitted)
	if o.tally.Held != 0 {
		t.Errorf("%d bytes of %q held after Close", o.tally.Held, received)
	}
	if o.stop.Reason == Closed && o.emitted != received {
		t.Errorf("closed with %q of %q", o.emitted, received)
	}
	if again := m.Close(); again.Emit != "" || again.Stop != o.stop {
		t.Errorf("the second Close gave %+v", again)
	}
	return o
}

func checkTally(t testing.TB, m *Matcher, received, emitted string) Tally {
	t.Helper()
	n := m.Tally()
	if n.Emitted+n.Held+n.Stripped+n.Discarded != n.Received || n.Received != len(received) || n.Emitted != len(emitted) {
		t.Errorf("%+v for %d bytes received and %d given out", n, len(received), len(emitted))
	}
	if !strings.HasPrefix(received, emitted) {
		t.Errorf("%q was given out of %q", emitted, received)
	}
	return n
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
			if err := sameOutcome(whole, follow(t, set, chunks)); err != nil {
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
