package researchtest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"stopgap/internal/automaton"
)

// A Rehearsal writes down what an Author says after which prompt, so that a
// model file can say the same.
type Rehearsal struct {
	mu    sync.Mutex
	lines []line // in the order of their first prompts
}

type line struct{ prompt, text string }

// Watch gives the author, whose words are written down.
func (r *Rehearsal) Watch(a Author) Author {
	return func(ctx context.Context, prompt string) (string, error) {
		text, err := a(ctx, prompt)
		if err != nil {
			return text, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.ContainsFunc(r.lines, func(l line) bool { return l.prompt == prompt }) {
			r.lines = append(r.lines, line{prompt, text})
		}
		return text, nil
	}
}

// word is what tokenizers of Qwen's kind cut text into, but for digits.
var word = regexp.MustCompile(`[^\r\n\pL\pN]?\pL+| ?[^\s\pL\pN]+[\r\n]*`)

// Script is what was said, and the words of the prompts. The errors are those of
// Turns.
func (r *Rehearsal) Script() (automaton.Script, error) {
	turns, err := r.Turns()
	r.mu.Lock()
	defer r.mu.Unlock()
	words := map[string]bool{}
	for _, l := range r.lines {
		for _, w := range word.FindAllString(l.prompt, -1) {
			words[w] = true
		}
	}
	return automaton.Script{Turns: turns, Words: slices.Sorted(maps.Keys(words))}, err
}

// Turns is the script of what was said. Each turn begins after the shortest end
// of its prompt that no other prompt has. The error names a prompt in which a
// server would not read that end as one token.
func (r *Rehearsal) Turns() ([]automaton.Turn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turns := make([]automaton.Turn, len(r.lines))
	for i, l := range r.lines {
		shared := 0
		for j, other := range r.lines {
			if i != j {
				shared = max(shared, commonEnd(l.prompt, other.prompt))
			}
		}
		if shared == len(l.prompt) {
			return nil, fmt.Errorf("the prompt of turn %d is the end of another one", i+1)
		}
		from := len(l.prompt) - shared - 1
		for !utf8.RuneStart(l.prompt[from]) {
			from--
		}
		turns[i] = automaton.Turn{After: l.prompt[from:], Text: l.text}
	}
	for i, l := range r.lines {
		if !whole(l.prompt, turns, i) {
			return nil, fmt.Errorf("a server does not read the end of prompt %d as one token: %.200q", i+1, turns[i].After)
		}
	}
	return turns, nil
}

// commonEnd is how many bytes the ends of two texts have in common.
func commonEnd(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// whole reports whether the beginning of turn i is the last token of its
// prompt: servers look for the longer special tokens first, and what is part of
// one is part of no other.
func whole(prompt string, turns []automaton.Turn, i int) bool {
	order := slices.Clone(turns)
	slices.SortStableFunc(order, func(a, b automaton.Turn) int { return len(b.After) - len(a.After) })
	taken := make([]bool, len(prompt))
	for _, t := range order {
		for at := 0; ; {
			n := strings.Index(prompt[at:], t.After)
			if n < 0 {
				break
			}
			at += n
			if end := at + len(t.After); !slices.Contains(taken[at:end], true) {
				if t.After == turns[i].After && end == len(prompt) {
					return true
				}
				for k := at; k < end; k++ {
					taken[k] = true
				}
			}
			at++
		}
	}
	return false
}
