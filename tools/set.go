package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// The defaults of Options.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxTokens = 4000
	DefaultParallel  = 8
)

// grace is how long a tool may take to come back once its context is done.
// What it still says in that time, such as the output so far, is kept.
const grace = 500 * time.Millisecond

// A Deadliner is a tool that has its own deadline. Optional; zero or less
// means that of the set.
type Deadliner interface {
	Deadline() time.Duration
}

// Options are the bounds within which a Set runs its tools. The zero value
// has useful defaults.
type Options struct {
	// Timeout ends a call of a tool that is no Deadliner; zero means
	// DefaultTimeout.
	Timeout time.Duration
	// MaxTokens caps the content of one result; zero means DefaultMaxTokens,
	// a negative number no cap. The notice that names a cut comes on top.
	MaxTokens int
	// CountTokens counts the tokens of a text; nil means EstimateTokens.
	// It must be safe for concurrent use.
	CountTokens func(string) int
	// Parallel is how many calls of a turn run at once; zero means
	// DefaultParallel.
	Parallel int
	// Limit is how often each tool may run in one run; zero means without limit.
	Limit int
	// Limits are limits for single tools, by name, instead of Limit; zero or
	// less means without limit.
	Limits map[string]int
	// Approve is asked before each call of a tool with side effects, outside of
	// the tool's deadline; nil approves of all. An error is why the tool does not
	// run, in a clause for the model. It must be safe for concurrent use.
	Approve func(context.Context, Call) error
}

// A Set is the tools of a run and the bounds they run within. It is immutable
// and may serve many runs at once; each run has its own Session.
type Set struct {
	options  Options
	handler  Handler // nil for none
	entries  []entry
	byName   map[string]int
	timeout  time.Duration
	cutter   cutter
	parallel int
	limit    int
}

// An entry is one tool with what was compiled for it.
type entry struct {
	tool      Tool
	spec      Spec
	arguments *arguments
	timeout   time.Duration
	limit     int
}

// A SpecError says that a tool cannot be part of a set.
type SpecError struct {
	Index int    // of the tool in the list, from 0
	Name  string // its name, which may be empty
	Err   error
}

func (e *SpecError) Error() string {
	return fmt.Sprintf("tool %d (%q): %v", e.Index+1, e.Name, e.Err)
}

func (e *SpecError) Unwrap() error { return e.Err }

// What may be wrong with a name; SpecError wraps one of them.
var (
	ErrNoName        = errors.New("it has no name")
	ErrDuplicateName = errors.New("another tool has the same name")
)

// NewSet compiles the tools' schemas. The order of the tools is that of Specs.
// A tool without a name, with another's name or with a schema that does not
// compile gives a *SpecError; so does a limit for a tool that is not there.
func NewSet(list []Tool, opts Options) (*Set, error) {
	s := &Set{
		options:  opts,
		byName:   make(map[string]int, len(list)),
		timeout:  positive(opts.Timeout, DefaultTimeout),
		parallel: positive(opts.Parallel, DefaultParallel),
		limit:    max(opts.Limit, 0),
		cutter:   cutter{max: opts.MaxTokens, count: opts.CountTokens},
	}
	if s.cutter.max == 0 {
		s.cutter.max = DefaultMaxTokens
	}
	if s.cutter.count == nil {
		s.cutter.count = EstimateTokens
	}
	for i, t := range list {
		e, err := s.compile(t, opts)
		if err != nil {
			return nil, &SpecError{Index: i, Name: e.spec.Name, Err: err}
		}
		s.byName[e.spec.Name] = i
		s.entries = append(s.entries, e)
	}
	for name := range opts.Limits {
		if _, ok := s.byName[name]; !ok {
			return nil, &SpecError{Index: len(list), Name: name, Err: errors.New("there is a limit for it, but no such tool")}
		}
	}
	return s, nil
}

func (s *Set) compile(t Tool, opts Options) (entry, error) {
	e := entry{tool: t, spec: t.Spec(), timeout: s.timeout, limit: opts.Limit}
	if e.spec.Name == "" {
		return e, ErrNoName
	}
	if _, ok := s.byName[e.spec.Name]; ok {
		return e, ErrDuplicateName
	}
	if d, ok := t.(Deadliner); ok {
		e.timeout = positive(d.Deadline(), s.timeout)
	}
	if n, ok := opts.Limits[e.spec.Name]; ok {
		e.limit = n
	}
	var err error
	e.arguments, err = compileArguments(e.spec.Parameters)
	return e, err
}

func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Specs gives what the model is told about the tools, in the order of NewSet.
func (s *Set) Specs() []Spec {
	specs := make([]Spec, len(s.entries))
	for i, e := range s.entries {
		specs[i] = e.spec
	}
	return specs
}

// Tools gives the tools, in the order of NewSet.
func (s *Set) Tools() []Tool {
	list := make([]Tool, len(s.entries))
	for i, e := range s.entries {
		list[i] = e.tool
	}
	return list
}

// Options gives the bounds as NewSet got them.
func (s *Set) Options() Options { return s.options }

// With gives the same tools, whose calls go through a handler, and from there
// through the one that they had.
func (s *Set) With(h Handler) *Set {
	with, inner := *s, s.handler
	with.handler = h
	if inner != nil {
		with.handler = func(ctx context.Context, at int, call Call, run func() Result) Result {
			return h(ctx, at, call, func() Result { return inner(ctx, at, call, run) })
		}
	}
	return &with
}

// Check says whether a call would be admitted, but for limits on their number:
// OK, UnknownTool or BadArguments, and what is wrong in a clause.
func (s *Set) Check(call Call) (Status, string) {
	i, ok := s.byName[call.Name]
	if !ok {
		return UnknownTool, "there is no tool of that name"
	}
	if _, err := s.entries[i].arguments.check(call.Arguments); err != nil {
		return BadArguments, reason(err)
	}
	return OK, ""
}

// Limit is how often each tool that has no limit of its own may run in one
// run; zero means without limit.
func (s *Set) Limit() int { return s.limit }

// Session starts the counting of one run.
func (s *Set) Session() *Session {
	return &Session{set: s, used: make([]int, len(s.entries))}
}

// A Session runs the calls of one run and counts them. It is safe for
// concurrent use.
type Session struct {
	set       *Set
	mu        sync.Mutex
	used      []int // by entry
	abandoned atomic.Int64
}

// Abandoned says how many calls were given up on because the tool did not
// come back when its context was done. Each holds a goroutine until it does.
func (s *Session) Abandoned() int { return int(s.abandoned.Load()) }

// Run runs the calls of one turn in parallel and gives one result a call, in
// the order of the calls. It never fails: whatever goes wrong is a result that
// says so. When ctx is done, what still runs becomes Cancelled.
//
// A call counts against its tool's limit once its arguments are valid; within
// a turn the earlier calls come first.
func (s *Session) Run(ctx context.Context, calls []Call) []Result {
	results := make([]Result, len(calls))
	var group errgroup.Group
	group.SetLimit(s.set.parallel)
	for i, call := range calls {
		e, args, refused := s.admit(call)
		if refused != nil {
			results[i] = s.set.finish(call.Name, *refused)
			continue
		}
		group.Go(func() error {
			start := time.Now()
			res := s.handle(ctx, i, e, args)
			res.Duration = time.Since(start)
			results[i] = s.set.finish(call.Name, res)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return results
}

// admit checks a call and counts it. A refused call has a result in its place.
func (s *Session) admit(call Call) (*entry, []byte, *Result) {
	i, ok := s.set.byName[call.Name]
	if !ok {
		return nil, nil, &Result{Status: UnknownTool, Content: s.set.unknown(call.Name)}
	}
	e := &s.set.entries[i]
	args, err := e.arguments.check(call.Arguments)
	if err != nil {
		return nil, nil, &Result{Status: BadArguments, Content: e.arguments.explain(call.Name, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.limit > 0 && s.used[i] >= e.limit {
		return nil, nil, &Result{Status: LimitReached, Content: fmt.Sprintf(
			"Error: %s may be called %s and was. Go on with what you have.", call.Name, times(e.limit))}
	}
	s.used[i]++
	return e, args, nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// handle makes one call, through the handler where there is one.
func (s *Session) handle(ctx context.Context, at int, e *entry, args []byte) Result {
	run := func() Result { return s.call(ctx, e, args) }
	if s.set.handler == nil {
		return run()
	}
	return s.set.handler(ctx, at, Call{Name: e.spec.Name, Arguments: args}, run)
}

// call runs one tool under its deadline.
func (s *Session) call(ctx context.Context, e *entry, args []byte) Result {
	refusal := s.set.approve(ctx, e, args)
	switch {
	case ctx.Err() != nil:
		return Result{Status: Cancelled, Content: cancelledWords}
	case refusal != nil:
		return Result{Status: Refused, Content: fmt.Sprintf("Error: %s was not run: %v", e.spec.Name, refusal)}
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	done := make(chan outcome, 1) // room for one: an abandoned tool can still end
	go guarded(limited, e.tool, args, done)
	var out outcome
	select {
	case out = <-done:
	case <-limited.Done():
		select {
		case out = <-done:
		case <-time.After(grace):
			s.abandoned.Add(1)
			out.err = limited.Err()
		}
	}
	return s.set.judge(ctx, limited, e, out)
}

// approve gives why a tool with side effects must not run, or nil.
func (s *Set) approve(ctx context.Context, e *entry, args []byte) error {
	if !e.spec.SideEffects || s.options.Approve == nil || ctx.Err() != nil {
		return nil
	}
	return s.options.Approve(ctx, Call{Name: e.spec.Name, Arguments: args})
}

// An outcome is what a tool gave.
type outcome struct {
	text string
	err  error
}

// guarded runs a tool and sends what it gave, whichever way it ended.
func guarded(ctx context.Context, t Tool, args []byte, done chan<- outcome) {
	out := outcome{err: errors.New("it ended without a result")}
	defer func() {
		if r := recover(); r != nil {
			out.err = fmt.Errorf("it broke: %v", r)
		}
		done <- out
	}()
	out.text, out.err = t.Run(ctx, args)
}

const cancelledWords = "Error: the run was ended before the tool had finished."

// judge turns a tool's outcome into a result. A tool that finished keeps its
// output, even when the deadline passed at that moment.
func (s *Set) judge(ctx, limited context.Context, e *entry, out outcome) Result {
	var res Result
	switch {
	case out.err == nil:
		return Result{Status: OK, Content: out.text}
	case ctx.Err() != nil:
		res = Result{Status: Cancelled, Content: cancelledWords}
	case limited.Err() != nil:
		res = Result{Status: TimedOut, Content: fmt.Sprintf("Error: %s did not finish within %s.", e.spec.Name, e.timeout)}
	default:
		res = Result{Status: Failed, Content: fmt.Sprintf("Error: %s failed: %v", e.spec.Name, out.err)}
	}
	if out.text != "" {
		res.Content += "\nOutput so far:\n" + out.text
	}
	return res
}

// finish makes the content fit for a prompt: valid UTF-8, never empty, not
// longer than the cap.
func (s *Set) finish(name string, res Result) Result {
	res.Name = name
	res.Content, res.Cut = s.cutter.cut(clean(res.Content))
	return res
}
