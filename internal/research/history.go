package research

import (
	"cmp"
	"sort"
	"strings"
	"unicode/utf8"
)

// A step is something that was done in the planning: in full, and in a line for
// when an outline has taken it up, which is empty for what needs no memory.
type step struct{ full, short string }

func (s *state) remember(st step) {
	if st.full != "" {
		s.history = append(s.history, st)
	}
}

// settle makes the history short: what it found stands in the outline.
func (s *state) settle() {
	var out []step
	for _, st := range s.history {
		if st.short != "" {
			out = append(out, step{st.short, st.short})
		}
	}
	s.history = out
}

// past is the last part of the history, in whole steps: so many characters and
// tokens at most. Of a single step that is longer, the end is given.
func (s *state) past(tokens int) string {
	characters := cmp.Or(s.Limits.History, defaultHistory)
	from := len(s.history)
	for ; from > 0; from-- {
		full := s.history[from-1].full
		n, size := utf8.RuneCountInString(full)+1, s.count(full)+1
		if n > characters || size > tokens {
			break
		}
		characters, tokens = characters-n, tokens-size
	}
	if last := len(s.history) - 1; last >= 0 && from > last {
		return s.tail(s.history[last].full, characters, tokens)
	}
	var lines []string
	for _, st := range s.history[from:] {
		lines = append(lines, st.full)
	}
	return strings.Join(lines, "\n")
}

// tail is the end of a text: so many characters and tokens at most.
func (s *state) tail(text string, characters, tokens int) string {
	runes := []rune(text)
	runes = runes[max(0, len(runes)-characters):]
	// The first place behind which there are few enough.
	from := sort.Search(len(runes), func(i int) bool { return s.count(string(runes[i:])) <= tokens })
	return string(runes[from:])
}
