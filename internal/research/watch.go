package research

import (
	"encoding/json"
	"slices"
	"strings"

	"stopgap/runner"
	"stopgap/tools"
)

// An ending is how a leg ended.
type ending struct {
	by     string // the tool that ended it, empty for another end
	full   bool   // no more fits its prompt, or a budget is used up
	answer string // where the model wrote one
	reason runner.Termination
	turn   string // the model's last turn
}

// A watch looks at the events of a leg and says where it ends. What it says
// follows from the events alone, so that a journal is read as it was written.
type watch struct {
	part
	count func(string) int
	most  int // tokens: a leg that has more is full

	used      int // tokens of the prompt
	generated int // pieces of text
	turn      strings.Builder
	pending   map[int]runner.Called
	end       ending
	// took is told of each turn that ended and each call that was made; nil for
	// nobody.
	took func(Phase, happening) error
}

// A happening is a turn of the model, or a call with what came of it.
type happening struct {
	stopped *runner.Stopped
	turn    string // all of it, with stopped
	nudged  *runner.Nudged
	call    *runner.Called
	result  *runner.Returned
}

// The room that a leg keeps free is that of one more turn, with what its tool
// gives, and of the runner's own last words.
const reserve = 1536

func (s *state) watch(p part) *watch {
	return &watch{part: p, count: s.count, most: s.context - p.write - p.result - reserve, pending: map[int]runner.Called{}}
}

// see takes one event and reports whether the leg is over.
func (w *watch) see(ev runner.Event) (over bool, err error) {
	switch ev := ev.(type) {
	case runner.Started:
		for _, seg := range ev.Prompt {
			w.used += w.count(seg.Text)
		}
	case runner.Text:
		w.turn.WriteString(ev.Text)
	case runner.Stopped:
		w.end.turn = w.turn.String()
		w.turn.Reset()
		w.used += w.count(w.end.turn)
		w.generated += ev.Pieces
		clear(w.pending)
		return false, w.tell(happening{stopped: &ev, turn: w.end.turn})
	case runner.Called:
		w.pending[ev.Index] = ev
	case runner.Returned:
		return w.returned(ev)
	case runner.Nudged:
		w.used += w.count(ev.Note)
		switch {
		case !ev.Forced:
			return false, w.tell(happening{nudged: &ev})
		case w.phase == Outlining || w.phase == Answering: // what is asked for is what the leg is for
			return false, nil
		}
		w.end.reason = runner.Termination(ev.Reason)
		w.end.full = w.end.reason == runner.TermTokenLimit
		return true, nil
	case runner.Answered:
		w.end.answer = ev.Answer
	case runner.Ended:
		w.end.reason = ev.Termination
		w.end.full = w.end.reason == runner.TermTokenLimit || w.end.reason == runner.TermHandedOver
		switch ev.Termination {
		case runner.TermServerError, runner.TermCancelled:
			return false, nil // to be made again
		}
		return ev.Error == "" || w.end.full, nil
	}
	return false, nil
}

// returned takes what a call gave.
func (w *watch) returned(ev runner.Returned) (bool, error) {
	w.used += w.count(ev.Content)
	h := happening{result: &ev}
	if call, ok := w.pending[ev.Index]; ok {
		h.call = &call
	}
	if err := w.tell(h); err != nil {
		return false, err
	}
	if ev.Status == tools.OK && slices.Contains(w.ends, ev.Name) {
		w.end.by = ev.Name
		return true, nil
	}
	w.end.full = w.used >= w.most || w.tokens > 0 && w.generated >= w.tokens
	return w.end.full, nil
}

func (w *watch) tell(h happening) error {
	if w.took == nil {
		return nil
	}
	if w.heard != nil {
		w.heard(h)
	}
	return w.took(w.phase, h)
}

// arguments reads the arguments of a call. What cannot be read is empty: the
// tool has said so.
func arguments[T any](call *runner.Called) T {
	var out T
	_ = json.Unmarshal(call.Arguments, &out)
	return out
}
