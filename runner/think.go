package runner

import (
	"fmt"
	"strings"

	"stopgap/template"
)

// ThinkLimit is the reason of a Nudged that has closed the thinking part.
const ThinkLimit = "think_limit"

// thinkPatience is how many tokens a thinking part may take over its limit
// until nothing is held that may be the beginning of a tag or of a stop.
const thinkPatience = 16

// A ThinkError says that a format has no thinking part that could be closed.
type ThinkError struct{ Format string }

func (e *ThinkError) Error() string {
	return fmt.Sprintf("format %s has no thinking part whose tokens could be limited", e.Format)
}

// checkThink refuses a limit that means nothing.
func (s *state) checkThink() error {
	if s.Limits.Think > 0 && s.Format.Think.Close == "" {
		return &ThinkError{s.Format.Name}
	}
	return nil
}

// thinking is the thinking part of a turn.
type thinking struct {
	tokens int
	over   bool // it is to be closed
	closed bool // it has been
}

// overthinks counts the tokens of the thinking part and reports whether the
// generation is to be halted there. That is done once a turn: a model that
// begins to think again has its reasons, and the limit of the turn.
func (st *stretch) overthinks(tokens int) bool {
	kind, held := st.lexer.Inside()
	if st.Limits.Think <= 0 || st.think.closed || kind != template.SpanThink {
		return false
	}
	st.think.tokens += tokens
	over := st.think.tokens - st.Limits.Think
	settled := !held && st.shown-st.fed == st.draft.text.Len()
	st.think.over = over >= 0 && settled || over >= thinkPatience
	return st.think.over
}

// closeThought ends the thinking part in the model's place.
func (g *generation) closeThought() error {
	g.think.over, g.think.closed = false, true
	words := g.Format.Think.Close + "\n\n"
	if !strings.HasSuffix(g.kept.String(), "\n") {
		words = "\n" + words
	}
	if err := g.emit(Nudged{Turn: g.turn, Reason: ThinkLimit, Note: words}); err != nil {
		return err
	}
	return g.put(words, template.FromTemplate)
}
