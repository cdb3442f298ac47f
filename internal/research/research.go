// Package research answers a question with a cited report: a planner searches,
// reads pages for a goal and has an outline written, a writer fetches what the
// outline cites and writes section by section, and the question is answered
// from the report. It is ASearcherWeaver.
//
// A phase is a format and a set of tools, and the loop is runner's. The prompt
// of a run only grows, so a phase is a chain of runs, its legs: each begins with
// the question, the outline and what the phase needs, and no more. What was read
// is kept outside of the prompts, numbered, in a bank.
//
// A research is what its journals tell, in their order: nothing else is kept but
// the bank and the settings. So one that was killed goes on by reading its
// journals again. The package never prints, and knows neither corpora nor the
// web: it is given sources.
package research

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"stopgap/internal/research/bank"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// A Research is a question and what it takes to answer it. Its fields are not
// changed.
type Research struct {
	Question string
	Date     string // YYYY-MM-DD, as the prompts tell it
	// Folder keeps the journals and the settings, and the bank where Bank is
	// empty. It is made where it does not exist.
	Folder string
	// Bank is the file of the bank. One that has summaries already gives them to
	// the planner.
	Bank string
	// Runner is what every leg is made with. Its Format, Tools, Choice, Criteria
	// and Constrain are not used, and of its Limits only TurnTokens and Resumes.
	// Seeds follow from its seed, the question and the number of the leg.
	Runner  *runner.Runner
	About   trace.About // without the format
	Scripts Scripts
	Sources []Source
	Limits  Limits
	// Settings are what else decides about the report, by name: a research goes on
	// with those that it began with, or not at all.
	Settings map[string]string
}

// Limits are the budgets of a research. A zero field means its default, which
// is ASearcherWeaver's.
type Limits struct {
	// Context is how many tokens a prompt may have with what is generated. Default
	// 32 000, or the model's context where that is smaller.
	Context int
	// History is how many characters of what was done a planner's leg begins with.
	// Default 25 000; a fifth of the context is the most.
	History int
	// Reading is how many tokens of a page are read at once. Default 28 000, or
	// what the context has room for.
	Reading int
	// Piece is how many characters a piece of a page has, and Pieces how many are
	// read. Default 10 000 and 10.
	Piece, Pieces int
	// Pages is how many pages may be read. Default 100.
	Pages int
	Plan  Budget
	Write Budget
}

// A Budget bounds a phase.
type Budget struct {
	Turns  int           // default 128
	Tokens int           // generated; default none
	Time   time.Duration // default none
}

// The defaults of Limits.
const (
	defaultContext = 32_000
	defaultHistory = 25_000
	defaultReading = 28_000
	defaultPiece   = 10_000
	defaultPieces  = 10
	defaultPages   = 100
	defaultTurns   = 128

	// leastContext is what the prompts of all phases need at least.
	leastContext = 4096
)

var (
	// ErrNoQuestion says that a Research asks nothing.
	ErrNoQuestion = errors.New("the question is empty")
	// ErrNoSource says that there is nothing to search.
	ErrNoSource = errors.New("there is nothing to search")
	// ErrContext says that the model's context is too small.
	ErrContext = errors.New("the model's context is too small for research")
)

// errLeft ends a research whose consumer has left the range. It is never seen
// outside.
var errLeft = errors.New("research: the consumer left")

// Run does the research and yields what happens. The first event is Began and
// the last is Ended, with the report of what there is; an error that ended it
// follows alone, as the last pair. Where nothing could begin the error comes
// alone: ErrNoQuestion, ErrNoSource, ErrContext, a *FolderError, a
// *ChangedError or one of bank.Open.
//
// When ctx is done the leg at work is left as a kill would leave it. The same
// Research in the same folder goes on there.
func (r *Research) Run(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s, err := r.begin(ctx, yield)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.close()
		if s.emit(Began{Question: r.Question, Folder: r.Folder, Bank: s.bankPath, Given: s.given, Resumed: s.resumed}) != nil {
			return
		}
		s.end(s.work())
	}
}

// work is the research: each phase works on what the one before has left.
func (s *state) work() error {
	for _, phase := range []func() error{s.plan, s.write, s.conclude} {
		if err := phase(); err != nil {
			return err
		}
	}
	return nil
}

// A state is one research under way.
type state struct {
	*Research
	ctx   context.Context
	yield func(Event, error) bool
	left  bool
	began time.Time

	folder   *folder
	bank     *bank.Bank
	bankPath string
	given    int
	resumed  bool
	context  int // tokens of a prompt, with what is generated

	leg     int // the number of the last one
	reading reading
	progress
}

// A progress is what a research has come to: what its journals tell.
type progress struct {
	tally map[Phase]*tally

	known    []int // numbers of the summaries that this research may use, in their order
	covered  int   // how many of them an outline has seen
	pages    int   // that were read for this research
	searches int
	history  []step
	outline  string
	changes  int   // how often the outline was written
	fetched  []int // numbers that the writer has before it
	report   []section
	log      []Noted
	answer   string
}

// snapshot copies what the research has come to, for restore: a leg that turns
// out not to play as it was recorded is made anew.
func (s *state) snapshot() progress {
	p := s.progress
	p.tally = map[Phase]*tally{}
	for phase, t := range s.tally {
		one := *t
		p.tally[phase] = &one
	}
	p.known, p.history, p.fetched = slices.Clone(p.known), slices.Clone(p.history), slices.Clone(p.fetched)
	p.report, p.log = slices.Clone(p.report), slices.Clone(p.log)
	return p
}

func (s *state) restore(p progress) { s.progress = p }

// begin opens what the research needs.
func (r *Research) begin(ctx context.Context, yield func(Event, error) bool) (*state, error) {
	if strings.TrimSpace(r.Question) == "" {
		return nil, ErrNoQuestion
	}
	if len(r.Sources) == 0 {
		return nil, ErrNoSource
	}
	s := &state{Research: r, ctx: ctx, yield: yield, began: time.Now(), progress: progress{tally: map[Phase]*tally{}}}
	s.context = cmp.Or(r.Limits.Context, defaultContext)
	if n := r.Runner.Context; n > 0 && n < s.context {
		s.context = n
	}
	if s.context < leastContext {
		return nil, ErrContext
	}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the folder and the bank, and takes up what the bank gives.
func (s *state) open() (err error) {
	if s.folder, err = openFolder(s.Research); err != nil {
		return err
	}
	s.bankPath = cmp.Or(s.Bank, s.folder.file("bank.db"))
	if s.bank, err = bank.Open(s.ctx, s.bankPath); err != nil {
		return err
	}
	last, err := s.bank.Last(s.ctx)
	if err != nil {
		return err
	}
	if s.resumed, err = s.folder.begin(last); err != nil {
		return err
	}
	s.given = s.folder.record.Given
	all, err := s.bank.Since(s.ctx, 0)
	for _, summary := range all {
		if summary.Number <= s.given {
			s.known = append(s.known, summary.Number)
		}
	}
	return err
}

func (s *state) close() {
	if s.bank != nil {
		_ = s.bank.Close() // all that was added is on the disk
	}
}

// emit yields an event. It returns errLeft when the consumer has left.
func (s *state) emit(ev Event) error {
	if s.left {
		return errLeft
	}
	if !s.yield(ev, nil) {
		s.left = true
		return errLeft
	}
	return nil
}

// note writes a line of the log.
func (s *state) note(phase Phase, what, text string) error {
	n := Noted{Phase: phase, What: what, Text: text}
	s.log = append(s.log, n)
	return s.emit(n)
}

// count counts the tokens of a text, exactly or from above.
func (s *state) count(text string) int {
	if s.Runner.CountTokens != nil {
		return s.Runner.CountTokens(text)
	}
	return tools.EstimateTokens(text)
}

// share is a part of the context, in tokens.
func (s *state) share(parts int) int { return s.context / parts }

// cut shortens a text to so many tokens, from its middle.
func (s *state) cut(text string, tokens int) string {
	if s.count(text) <= tokens {
		return text
	}
	text, _ = tools.Cut(text, tokens, s.count)
	return text
}

// end closes the research: the report of what there is, the last event, and
// the error that ended it.
func (s *state) end(err error) {
	if s.left {
		return
	}
	e := Ended{
		Answer: s.answer, Sections: len(s.report), Summaries: len(s.known), Notes: len(s.log),
		Duration: time.Since(s.began), Partial: err != nil,
	}
	if err != nil {
		e.Error = err.Error()
	}
	var fault error
	if e.Report, fault = s.compile(context.WithoutCancel(s.ctx), e.Partial); fault != nil && err == nil {
		err, e.Partial, e.Error = fault, true, fault.Error()
	}
	if s.tellChecks(e.Report) != nil {
		return
	}
	e.Citations, e.Unsupported = len(e.Report.Citations), e.Report.Unsupported()
	if s.emit(e) == nil && err != nil {
		s.yield(nil, err)
	}
}

// sampling is the runner's, with the seed of a leg or of a page.
func (s *state) sampling(of ...string) models.Sampling {
	out := s.Runner.Sampling
	seed := seedOf(out.Seed, s.Question, of...)
	out.Seed = &seed
	return out
}
