package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A state is one run under way. Its methods are the steps of the loop.
type state struct {
	*Runner
	ctx    context.Context // of the run: the caller's, with the time limit
	outer  context.Context // the caller's
	cancel context.CancelFunc
	yield  func(Event, error) bool
	left   bool // the consumer has left the range
	began  time.Time

	sets    map[bool]*stopping.Set // by whether a generation begins inside the thinking part
	means   map[string]template.Meaning
	offered *tools.Set      // Runner.Tools, or an empty set
	told    []template.Tool // them as the model is told of them
	tools   *tools.Session
	ledger  *Ledger
	speller *speller
	guard   guard

	rendered    []template.Part // the opening, where the server has rendered it
	frame       template.Frame  // of a call, with Runner.Constrain
	chosen      bool            // the words of Runner.Choice have been written
	turn        int
	truncated   bool        // the last generation reached a length limit
	full        bool        // that limit is the context's
	halted      bool        // one of the caller's own criteria ended the last generation
	broken      bool        // the model's stream ended in an error
	forced      Termination // the budget that asked for a last answer
	termination Termination
	outcome     Outcome
}

func newState(r *Runner, task Task, yield func(Event, error) bool) *state {
	s := &state{Runner: r, yield: yield, began: time.Now(), ledger: task.Ledger.clone()}
	s.sets, s.means = map[bool]*stopping.Set{}, map[string]template.Meaning{}
	s.outcome.Usage = noUsage
	return s
}

// start makes the context of the run; s.cancel must be called.
func (s *state) start(ctx context.Context) {
	s.outer = ctx
	limited := s.WithTimeout
	if limited == nil {
		limited = context.WithTimeout
	}
	if s.Limits.Time > 0 {
		s.ctx, s.cancel = limited(ctx, s.Limits.Time)
	} else {
		s.ctx, s.cancel = context.WithCancel(ctx)
	}
}

// emit yields an event. It returns errLeft when the consumer has left.
func (s *state) emit(ev Event) error {
	if s.left {
		return errLeft
	}
	if !s.yield(ev, nil) {
		s.left = true
		s.cancel()
		return errLeft
	}
	return nil
}

// open writes the start of the prompt, or the next question of a conversation.
func (s *state) open(task Task) (err error) {
	if s.speller, err = s.newSpeller(); err != nil {
		s.broken = true
		return err
	}
	s.told = s.describe(s.speller.all)
	if s.Format.Opening == template.OpenChat {
		return s.openChat(task)
	}
	from, offered := len(s.ledger.segments), s.described()
	if from > 0 {
		if s.ledger.spelling != s.speller.Spelling {
			if err := s.respell(); err != nil {
				return err
			}
			from = len(s.ledger.segments)
		}
		s.ledger.spelling = s.speller.Spelling
		if err := s.resume(template.Continuation{Question: task.Question}); err != nil {
			return err
		}
	} else {
		parts, inThink, err := s.opening(task, offered)
		if err != nil {
			return err
		}
		s.ledger.inThink, s.ledger.format, s.ledger.spelling = inThink, s.Format, s.speller.Spelling
		if err := s.appendParts(parts); err != nil {
			return err
		}
	}
	return s.started(task, from)
}

// started is the first event; the prompt's segments begin at from.
func (s *state) started(task Task, from int) error {
	names := []string{}
	for _, t := range s.described() {
		names = append(names, t.Name)
	}
	return s.emit(Started{
		Question: task.Question, Format: s.Format.Name, Model: s.Name, Tools: names,
		Prompt: s.ledger.Segments()[from:],
	})
}

// opening renders the beginning of the prompt and says whether it ends inside
// the thinking part.
func (s *state) opening(task Task, offered []template.Tool) ([]template.Part, bool, error) {
	if think := s.Format.Think.Open; s.rendered != nil {
		last := s.rendered[len(s.rendered)-1].Text
		return s.rendered, think != "" && strings.HasSuffix(strings.TrimSpace(last), think), nil
	}
	parts, err := s.Format.Open(template.Opening{
		System: task.System, Question: task.Question, Tools: offered,
		Date: task.Date, MaxCalls: s.offered.Limit(), Values: task.Values, Texts: task.Texts,
	})
	return parts, s.Format.Think.Opened, err
}

// answer ends the run with the answer of a turn.
func (s *state) answer(turn template.Turn) error {
	s.termination = TermAnswered
	if s.forced != "" {
		s.termination = TermAnsweredForced
	}
	s.outcome.Answer = turn.Answer
	return s.emit(Answered{Turn: s.turn, Answer: turn.Answer, Forced: s.forced != "", Truncated: s.truncated})
}

// call runs the calls of a turn, in parallel, and appends what they gave. A
// problem that stands in the place of a call is answered like a call, in the
// format's words.
func (s *state) call(turn template.Turn) error {
	if err := s.ctx.Err(); err != nil { // nothing is begun any more
		return err
	}
	items := inOrder(turn)
	var calls []tools.Call
	for i, it := range items {
		if it.call == nil {
			continue
		}
		calls = append(calls, tools.Call{Name: it.call.Name, Arguments: s.unescape(it.call.Arguments)})
		if err := s.emit(Called{
			Turn: s.turn, Index: i, Name: it.call.Name, Arguments: calls[len(calls)-1].Arguments, Repairs: it.call.Repairs,
		}); err != nil {
			return err
		}
	}
	s.outcome.Calls += len(calls)
	if s.CallsEnd {
		s.handOver(len(calls), len(items))
		return nil
	}
	ahead := s.prefill()
	given := s.tools.Run(s.ctx, calls)
	ahead.end(s)
	if err := s.ctx.Err(); err != nil { // the run was ended meanwhile: the results do not count
		return err
	}
	results, err := s.results(items, given)
	if err != nil {
		return err
	}
	s.fit(results)
	var c template.Continuation
	var print []string
	for i, res := range results {
		if err := s.emit(Returned{
			Turn: s.turn, Index: i, Name: res.Name, Status: res.Status, Content: res.Content,
			Cut: res.Cut, Duration: res.Duration,
		}); err != nil {
			return err
		}
		s.ledger.results++
		c.Results = append(c.Results, template.Result{
			Name: res.Name, ID: fmt.Sprintf("call%05d", s.ledger.results), Content: res.Content, Error: res.Status != tools.OK,
		})
		print = append(print, items[i].source, res.Content)
	}
	return s.proceed(c, print)
}

// handOver ends the run with calls that nobody makes. Where none of a turn's
// calls could be read, they are as if the model had made none.
func (s *state) handOver(calls, items int) {
	if items > calls {
		s.outcome.Problems++
	}
	if s.termination = TermCalled; calls == 0 {
		s.termination = TermFormatError
	}
}

// results are the answers to the items of a turn: what the tools gave, and the
// words for problems.
func (s *state) results(items []item, given []tools.Result) ([]tools.Result, error) {
	var out []tools.Result
	problems := 0
	for _, it := range items {
		if it.call != nil {
			if st := given[0].Status; st == tools.UnknownTool || st == tools.BadArguments {
				problems = 1
			}
			out, given = append(out, given[0]), given[1:]
			continue
		}
		problems = 1
		words, err := s.Format.Problem(*it.problem, s.names())
		if err != nil {
			return nil, err
		}
		out = append(out, tools.Result{Content: words, Status: tools.BadArguments})
	}
	s.outcome.Problems += problems // the budget counts turns
	return out, nil
}

// fit cuts results that would leave no room for an answer. What a short one
// does not need goes to the longer ones.
func (s *state) fit(results []tools.Result) {
	limit := s.tokenLimit()
	if limit == 0 {
		return
	}
	tokens, order := make([]int, len(results)), make([]int, len(results))
	for i, res := range results {
		tokens[i], order[i] = s.escaped(res.Content), i
	}
	slices.SortFunc(order, func(a, b int) int { return tokens[a] - tokens[b] })
	room := max(limit-s.ledger.tokens-answerReserve, 0)
	for n, i := range order {
		share := room / (len(order) - n)
		if tokens[i] > share {
			content, cut := tools.Cut(results[i].Content, share, s.escaped)
			results[i].Content, results[i].Cut = content, results[i].Cut+cut
		}
		room -= min(tokens[i], share)
	}
}

// correct answers a turn that has neither a call nor an answer.
func (s *state) correct(turn template.Turn) error {
	kind := template.NoCallNoAnswer
	if len(turn.Problems) > 0 {
		kind = turn.Problems[0].Kind
	}
	if s.halted { // the caller wanted the text to end here: there is nothing to mend
		s.termination = TermNoAnswer
		return nil
	}
	s.outcome.Problems++
	switch reason := s.exhausted(nil); {
	case s.CallsEnd:
		s.termination = TermNoAnswer
		return nil
	case s.truncated: // the length limit cut a thought: another one would be as long
		return s.force(template.Continuation{}, TermTokenLimit)
	case s.outcome.Problems > s.problems():
		s.termination = TermNoAnswer
		if kind != template.NoCallNoAnswer {
			s.termination = TermFormatError
		}
		return nil
	case reason != "":
		return s.force(template.Continuation{}, reason)
	}
	note, err := s.Format.Nudge(kind)
	if err != nil {
		return err
	}
	if err := s.emit(Nudged{Turn: s.turn, Reason: string(kind), Note: note}); err != nil {
		return err
	}
	return s.resume(template.Continuation{Note: note})
}

// proceed appends what stands between two generations. When a budget is
// reached it asks for a last answer.
func (s *state) proceed(c template.Continuation, fingerprint []string) error {
	if reason := s.exhausted(c.Results); reason != "" {
		return s.force(c, reason)
	}
	if len(fingerprint) > 0 && s.guard.add(fingerprint...) {
		if s.guard.nudged {
			return s.force(c, TermLoop)
		}
		s.guard.nudged = true
		note, err := s.Format.Nudge(template.RepeatedCall)
		if err != nil {
			return err
		}
		c.Note = note
		if err := s.emit(Nudged{Turn: s.turn, Reason: string(template.RepeatedCall), Note: note}); err != nil {
			return err
		}
	}
	return s.resume(c)
}

// force asks for a last answer without tools. The note comes after the results
// and never in place of them.
func (s *state) force(c template.Continuation, reason Termination) error {
	note, err := s.Format.Force(reasons[reason])
	if err != nil {
		return err
	}
	c.Note, s.forced = note, reason
	if err := s.emit(Nudged{Turn: s.turn, Reason: string(reason), Note: note, Forced: true}); err != nil {
		return err
	}
	return s.resume(c)
}

// resume appends a continuation to the ledger.
func (s *state) resume(c template.Continuation) error {
	if s.Format.Opening == template.OpenChat {
		s.resumeChat(c)
		return nil
	}
	c.InThink, c.Open = s.ledger.inThink, s.ledger.open
	parts, err := s.Format.Continue(c)
	if err != nil {
		return err
	}
	s.ledger.inThink, s.ledger.open = s.Format.StartsInThink(c), false
	return s.appendParts(parts)
}

// handedOver reports whether whoever asked has what they wanted.
func (s *state) handedOver() bool { return errors.Is(context.Cause(s.outer), ErrHandedOver) }

// end closes the run: what is still missing of the outcome, the last event,
// and the error that ended it.
func (s *state) end(err error) {
	if s.left {
		return
	}
	var overflow *models.OverflowError
	var limit *LimitError
	switch {
	case s.termination == "" && s.handedOver():
		s.termination, err = TermHandedOver, nil
	case err == nil:
	case errors.Is(s.outer.Err(), context.DeadlineExceeded):
		s.termination, err = TermDeadline, s.outer.Err()
	case s.outer.Err() != nil:
		s.termination, err = TermCancelled, s.outer.Err()
	case s.ctx.Err() != nil: // our own time limit: an ending, not an error
		s.termination, err = TermDeadline, nil
	case errors.As(err, &limit):
		if s.termination = TermTokenLimit; s.turn > 0 { // a budget that was used up: an ending like others
			err = nil
		}
	case errors.As(err, &overflow) && s.turn > 1:
		s.termination = TermTokenLimit
	case s.broken:
		s.termination = TermServerError
	default: // a format that cannot be rendered, a criterion over its budget
		s.termination = TermFormatError
	}
	s.outcome.Termination, s.outcome.Turns = s.termination, s.turn
	s.outcome.Duration, s.outcome.Ledger = time.Since(s.began), s.ledger
	if err != nil {
		s.outcome.Error = err.Error()
	}
	if s.emit(Ended{s.outcome}) == nil && err != nil {
		s.yield(nil, err)
	}
}
