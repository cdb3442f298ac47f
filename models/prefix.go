package models

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// A PrefixReport says whether a server keeps the beginning of a prompt between
// the turns of two sessions that alternate, as two runs at the same time do.
type PrefixReport struct {
	Turns []PrefixTurn
	// Exact says that the server counts the tokens that it reused. Otherwise
	// Verdict is an estimate from the time that reading the prompts took.
	Exact   bool
	Verdict PrefixVerdict
	// Advice is the flag or the setting that makes the server keep prefixes,
	// empty where none is known or needed.
	Advice string
}

// A PrefixTurn is one request of the measurement.
type PrefixTurn struct {
	Session string // "a" or "b"
	Turn    int    // from 1
	Usage   Usage
	Added   Count         // tokens of the prompt that were not in the session's last one
	Time    time.Duration // reading the prompt, or until the first token
}

// A PrefixVerdict is what the measurement shows.
type PrefixVerdict string

const (
	PrefixKept    PrefixVerdict = "kept"    // a turn costs its own tokens
	PrefixLost    PrefixVerdict = "lost"    // a turn costs the whole prompt again, or much of it
	PrefixUnknown PrefixVerdict = "unknown" // the server does not say enough
)

// prefixSlack are tokens that a server may read again though it keeps
// prefixes: whole blocks of 16, and the end of the last turn.
const prefixSlack = 64

// prefixTurns is the number of turns of each session.
const prefixTurns = 3

// An adviser knows what makes its server keep prefixes.
type adviser interface{ prefixAdvice() string }

// MeasurePrefix runs two sessions of three short turns against the model, one
// turn of each in turn. Both begin alike, as sessions with one system prompt
// do. It generates a few tokens and takes as long as reading the prompts does.
func MeasurePrefix(ctx context.Context, m Model) (PrefixReport, error) {
	// Nothing of an earlier measurement may be in the cache.
	return measurePrefix(ctx, m, "Ledger "+rand.Text())
}

func measurePrefix(ctx context.Context, m Model, title string) (PrefixReport, error) {
	var report PrefixReport
	start := title + ".\n" + prefixLines("common", 20)
	prompts := map[string][]Segment{}
	for _, s := range []string{"a", "b"} {
		prompts[s] = []Segment{{Text: start + prefixLines("session "+s, 10)}}
	}
	for turn := 1; turn <= prefixTurns; turn++ {
		for _, s := range []string{"a", "b"} {
			t, said, err := prefixTurn(ctx, m, s, prompts[s])
			if err != nil {
				return report, err
			}
			t.Turn = turn
			if turn > 1 {
				before := report.Turns[len(report.Turns)-2].Usage
				if t.Usage.Prompt.Known && before.Prompt.Known {
					t.Added = Known(t.Usage.Prompt.N - before.Prompt.N)
				}
			}
			report.Turns = append(report.Turns, t)
			next := Segment{Text: "\n" + prefixLines(fmt.Sprintf("turn %d of %s", turn, s), 2)}
			prompts[s] = append(prompts[s], said, next)
		}
	}
	report.judge()
	if a, ok := m.(adviser); ok && report.Verdict == PrefixLost {
		report.Advice = a.prefixAdvice()
	}
	return report, nil
}

// prefixLines is text of about ten tokens a line.
func prefixLines(of string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Entry %d (%s): %d units.\n", i+1, of, 100+7*i)
	}
	return b.String()
}

// prefixTurn generates a few tokens and gives what the model said.
func prefixTurn(ctx context.Context, m Model, session string, prompt []Segment) (PrefixTurn, Segment, error) {
	t := PrefixTurn{Session: session}
	said := Segment{}
	whole := true // every chunk had its ids
	req := Request{Prompt: prompt, MaxTokens: 4, Session: "prefix-" + session}
	for c, err := range m.Stream(ctx, req) {
		if err != nil {
			return t, said, err
		}
		said.Text += c.Text
		said.Tokens = append(said.Tokens, c.Tokens...)
		whole = whole && (c.Text == "" || c.Tokens != nil)
		if c.Final != nil {
			t.Usage, t.Time = c.Final.Usage, c.Final.Timings.Prompt
			if t.Time == 0 {
				t.Time = c.Final.Timings.FirstToken
			}
		}
	}
	if !whole {
		said.Tokens = nil
	}
	return t, said, nil
}

// judge fills in Exact and Verdict from the turns.
func (r *PrefixReport) judge() {
	r.Exact, r.Verdict = true, PrefixKept
	var first, later time.Duration
	for _, t := range r.Turns {
		if t.Turn == 1 {
			first = max(first, t.Time)
			continue
		}
		later = max(later, t.Time)
		if !t.Usage.Evaluated.Known || !t.Added.Known {
			r.Exact = false
		} else if t.Usage.Evaluated.N > t.Added.N+prefixSlack {
			r.Verdict = PrefixLost
		}
	}
	if r.Exact {
		return
	}
	// The first prompt was read whole. A later one is longer: read whole, it
	// takes longer too; where its beginning is kept, a fraction of the time.
	switch {
	case first <= 0:
		r.Verdict = PrefixUnknown
	case later > first/2:
		r.Verdict = PrefixLost
	default:
		r.Verdict = PrefixKept
	}
}

// Ollama has no advice. Sessions with a common start share a slot there however
// many slots it has; OLLAMA_MULTIUSER_CACHE=1 is meant to change that, and with
// it the llama.cpp engine of Ollama 0.17.4 aborts.

func (m *llama) prefixAdvice() string { return "-np 2" }

func (m *openai) prefixAdvice() string {
	if facts, ok := m.known.peek(); ok && facts.brand == vllm {
		return "--enable-prefix-caching"
	}
	return ""
}
