// Package runner alternates generation and tools until there is an answer.
//
// It owns the loop, the ledger (the prompt, which only grows), the budgets and
// the events. It never prints, never renders text of its own (all words come
// from the format) and never parses anything but what the model generated in
// the turn at hand.
package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A Runner answers questions. Its fields are not changed by a run; one Runner
// may serve several runs at once.
type Runner struct {
	Model  models.Model
	Format *template.Format
	Tools  *tools.Set // nil for none
	Limits Limits

	// Sampling overrides the format's defaults, field by field.
	Sampling models.Sampling

	// SingleCall ends a turn at its first call also where the format allows
	// several.
	SingleCall bool

	// CallsEnd ends the run with its first turn, whatever that is: an answer, or
	// calls, which are told (Called) and not made. It is for measuring which calls
	// a model makes.
	CallsEnd bool

	// Choice says whether the model may, must or must not call tools.
	Choice Choice

	// Constrain holds calls to their schemas: free text ends where a call
	// begins, the tool's name is chosen among those offered, its arguments are
	// written under its schema, and the model goes on freely. It costs a
	// request for the name, where there are several tools, one for the
	// arguments and one for what follows; a server that keeps its cache reads
	// no prompt again.
	Constrain bool

	// CallsInThink says whether calls inside the thinking part count.
	CallsInThink Switch

	// Strict takes only calls that are spelled as the format asks; nothing is
	// repaired.
	Strict bool

	// Criteria are further stop criteria, beside the format's, anywhere in the
	// generated text; their names must differ from the format's. Halt and Call
	// end the turn, and what it holds is read as the format spells it. Finish
	// ends the run: the text of the turn is the answer, and its calls are not
	// made. Notify lets the model go on and gives a Noticed.
	//
	// They see all of a turn, words of Choice and calls under a schema included,
	// and fire only where the model writes freely: a match may begin in what was
	// put in or constrained, and ends after it. With the format chat they see
	// the answer's text, without thoughts and calls.
	Criteria []stopping.Criterion

	// Reserved are strings, beside the format's and the model's special tokens as
	// far as a models.Speller tells them, that untrusted text must not contain.
	Reserved []string

	// Context is how many tokens the model's context takes; zero means unknown.
	Context int

	// CountTokens counts the tokens of a text, exactly, and is safe for
	// concurrent use. Default: the model's own count where it is a
	// models.Speller, else tools.EstimateTokens, an estimate from above.
	CountTokens func(string) int

	// Name is the model's name in events.
	Name string

	// Prefill lets the server read, while tools run, what of the next prompt is
	// certain: the words before the first result. It costs a request for each
	// turn with calls and saves the reading of some ten tokens.
	Prefill bool

	// Session names the conversation to servers with fixed slots. Runs at the
	// same time share it, and with it the slot.
	Session string

	// WithTimeout makes the context that Limits.Time ends; nil means
	// context.WithTimeout. A replay has the recorded moment in place of a clock.
	WithTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

// A Switch is on, off, or left to the format.
type Switch int

const (
	AsFormat Switch = iota
	On
	Off
)

// or gives the switch, or what the format has.
func (s Switch) or(format bool) bool { return s == On || s == AsFormat && format }

// A Task is one question.
type Task struct {
	Question string
	System   string            // replaces the format's system text
	Date     string            // YYYY-MM-DD, as the prompt tells it
	Values   map[string]string // settings for the format's blocks
	Texts    map[string]string // untrusted, for them too: see template.Opening
	// Ledger, where it is not empty, is a conversation that the question
	// continues (Outcome.Ledger of the run before, however that ended). It is
	// not changed: the run goes on with a copy.
	Ledger *Ledger
}

var (
	// ErrNoModel and ErrNoFormat say that a Runner is not complete.
	ErrNoModel  = errors.New("runner: no model")
	ErrNoFormat = errors.New("runner: no format")
	// ErrNoQuestion says that a Task asks nothing.
	ErrNoQuestion = errors.New("runner: the question is empty")
	// ErrHandedOver, as the cause of the end of Run's context, says that whoever
	// asked has what they wanted: that is an ending like others, and no error.
	ErrHandedOver = errors.New("runner: handed over")
	// ErrLedger says that the messages of a chat endpoint cannot go on as a
	// prompt, nor a prompt as messages.
	ErrLedger = errors.New("runner: a conversation with a chat endpoint and one with a prompt cannot continue each other")
)

// errLeft ends a run whose consumer has left the range. It is never seen outside.
var errLeft = errors.New("runner: the consumer left")

// Run works on a task and yields what happens. A task or a Runner that is not
// complete, or an opening that the server does not render, gives an error and
// nothing else. Otherwise the first event is Started, unless the server could
// not even be asked for its tokens, and the last is Ended; where an error ended
// the run it follows, alone, as the last pair. Leaving the range ends the
// generation at the server and the tools that run; nothing happens after that.
func (r *Runner) Run(ctx context.Context, task Task) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s, err := r.begin(ctx, task, yield)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.cancel()

		err = s.open(task)
		for err == nil && s.termination == "" && !s.handedOver() {
			var turn template.Turn
			if turn, err = s.generate(); err != nil {
				break
			}
			switch {
			case turn.Answered:
				err = s.answer(turn)
			case s.forced != "":
				s.termination = s.forced
			case s.full: // no more words fit
				s.termination = TermTokenLimit
			case s.wantsTools(turn):
				err = s.call(turn)
			default:
				err = s.correct(turn)
			}
		}
		s.end(err)
	}
}

// begin checks what the runner was given and makes the state of one run.
func (r *Runner) begin(ctx context.Context, task Task, yield func(Event, error) bool) (*state, error) {
	switch {
	case r.Model == nil:
		return nil, ErrNoModel
	case r.Format == nil:
		return nil, ErrNoFormat
	case strings.TrimSpace(task.Question) == "":
		return nil, ErrNoQuestion
	}
	s := newState(r, task, yield)
	s.start(ctx)
	if err := s.prepare(task); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// prepare settles all that can be wrong before the first request to the model.
func (s *state) prepare(task Task) (err error) {
	if s.offered, err = s.kit(); err != nil {
		return err
	}
	s.tools = s.offered.Session()
	if err := s.settle(task); err != nil {
		return err
	}
	if err := s.checkChoice(); err != nil {
		return err
	}
	if err := s.checkThink(); err != nil {
		return err
	}
	for _, inThink := range []bool{false, true} { // where a turn begins is known turn by turn
		if s.sets[inThink], err = s.set(inThink, 0); err != nil {
			return err
		}
	}
	return nil
}

// set compiles the criteria of a turn. Its first bytes, from of them, are not
// the model's, or have been looked at: a match ends after them.
func (s *state) set(inThink bool, from int) (*stopping.Set, error) {
	if set := s.sets[inThink]; set != nil && from == 0 {
		return set, nil
	}
	criteria := s.criteria(inThink)
	for i := range criteria {
		if c := &criteria[i]; from > 0 {
			c.MinBytes = max(c.MinBytes, from+1)
		}
	}
	set, err := stopping.Compile(criteria...)
	if err != nil {
		return nil, fmt.Errorf("stop criteria of the run and of format %s: %w", s.Format.Name, err)
	}
	return set, nil
}

// criteria are the format's stops and the caller's own; what each means is
// noted in s.means.
func (s *state) criteria(inThink bool) []stopping.Criterion {
	var out []stopping.Criterion
	for _, stop := range s.Format.Stops {
		if stop.SingleCall && !s.Format.SingleCall && !s.SingleCall {
			continue
		}
		c := stopping.Criterion{
			Name: stop.Name, Literal: stop.Literal, Regex: stop.Regex,
			Strip: stop.Strip, StripGroup: stop.StripGroup,
			Captures: stopping.Nearest, Scope: stopping.Scope{After: stop.After},
		}
		if think := s.Format.Think; stop.OutsideThink {
			c.Scope = stopping.Scope{Open: think.Open, Close: think.Close, Outside: true, StartsInside: inThink}
		}
		out, s.means[stop.Name] = append(out, c), stop.Means
	}
	for _, c := range s.Criteria {
		switch c.Action {
		case stopping.Call:
			s.means[c.Name] = template.MeansCall
		case stopping.Finish:
			s.means[c.Name] = template.MeansAnswer
		default:
			s.means[c.Name] = template.MeansEnd
		}
		out = append(out, c)
	}
	if s.frame.Opening != "" { // last: the caller may want to end the turn there
		out, s.means[callOpening] = append(out, s.openingCriterion(inThink)), template.MeansCall
	}
	return out
}

// wantsTools reports whether a turn has calls, or problems that stand where a
// call was meant to be. Where the caller's own criterion ended the turn, there
// is nothing to mend.
func (s *state) wantsTools(t template.Turn) bool {
	return len(t.Calls) > 0 || !s.halted && slices.ContainsFunc(t.Problems, inCall)
}
