package trace

import (
	"errors"

	"stopgap/tools"
)

// ErrCounter says that a run counted its tokens by a function of its caller's,
// which cannot go on without it.
var ErrCounter = errors.New("the run counted tokens by a function of its own, which is not in the journal")

// counts are what a Runner.CountTokens gave.
type counts struct {
	Texts []counted `json:"texts"`
}

type counted struct {
	SHA256 string `json:"sha256"` // of the text, the first half, in hex
	Tokens int    `json:"tokens"`
}

// count gives a CountTokens that is listened to. Each text is told once.
func (rec *recorder) count(inner func(string) int) func(string) int {
	told := map[string]bool{}
	return func(text string) int {
		n, key := inner(text), keyOf(text, false).sum
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if !told[key] {
			told[key] = true
			rec.counted = append(rec.counted, counted{key, n})
		}
		return n
	}
}

// count is a CountTokens that counts as the tape does, and live what it does not
// have.
func (t *tape) count(live func(string) int) func(string) int {
	return func(text string) int {
		if n, ok := t.counts[keyOf(text, false).sum]; ok {
			return n
		}
		if live == nil { // the run has parted from the tape
			return tools.EstimateTokens(text)
		}
		return live(text)
	}
}

// counter gives the CountTokens of a run that goes on, nil where it has none.
func (l *Live) counter(t *tape) (func(string) int, error) {
	switch {
	case !t.run.Header.Counts:
		return nil, nil
	case l.CountTokens == nil:
		return nil, ErrCounter
	}
	return t.count(l.CountTokens), nil
}
