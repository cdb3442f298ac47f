package stopping

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// FuzzEquivalence looks for a pattern and a text where the matcher and the
// definition differ. The bits of shape choose what the criterion does.
func FuzzEquivalence(f *testing.F) {
	r := rand.New(rand.NewPCG(17, 18))
	for i, p := range patterns {
		f.Add(p, randomText(r, 12), byte(i))
	}
	for i, p := range callPatterns {
		f.Add(p, transcript(r), byte(i))
	}
	for i := range 100 {
		p := newGrower(r).grow(3)
		f.Add(p.source, p.text(r, pieces, 40), byte(i))
	}
	f.Fuzz(func(t *testing.T, regex, text string, shape byte) {
		if len(text) > 120 || len(regex) > 120 || regex == "" {
			t.Skip("long inputs find nothing that short ones do not, and an empty pattern is none")
		}
		c := Criterion{Name: "p", Regex: regex, Budget: oracleLimit, Strip: shape&1 != 0, Scope: scopes[int(shape>>3)%len(scopes)]}
		if shape&2 != 0 {
			c.Captures = Nearest
		}
		if shape&4 != 0 {
			c.Action, c.Strip = Notify, false
		}
		x := trial{[]Criterion{c}, text}
		switch err := x.verify(judgeLimit); {
		case errors.Is(err, errUndecided):
			t.Skip("regexp2 does not take it, or not in time")
		case err != nil:
			t.Errorf("%s // %v", x.row(), err)
		}
	})
}
