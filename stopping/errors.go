package stopping

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrEnded is returned by [Matcher.Write] after a stop, an error or Close.
	ErrEnded = errors.New("stopping: the text has ended")
	// ErrTime is in a [BudgetError] when the time budget of a criterion ran out.
	ErrTime = errors.New("the time budget ran out")
	// ErrStack is in a [BudgetError] when a pattern needs too much backtracking stack.
	ErrStack = errors.New("the backtracking stack is full")
)

// A CompileError says why a criterion was refused.
type CompileError struct {
	Criterion string // name of the criterion, or its place in the list when it has none
	Field     string // field of [Criterion] that is wrong
	Pattern   string // the pattern, when Field is Regex
	Position  int    // byte of Pattern where reading failed, -1 when not known
	Problem   string // what is wrong
	Hint      string // what to do about it; may be empty
}

// Error says which criterion was refused and why, without the hint.
func (e *CompileError) Error() string {
	if e.Pattern != "" && e.Position >= 0 {
		return fmt.Sprintf("stop criterion %q: %s at byte %d of %q", e.Criterion, e.Problem, e.Position, e.Pattern)
	}
	return fmt.Sprintf("stop criterion %q: %s: %s", e.Criterion, e.Field, e.Problem)
}

// A BudgetError says that a pattern could not be checked within its limits.
// It never carries the text.
type BudgetError struct {
	Criterion string        // name of the criterion
	Budget    time.Duration // its time budget
	Offset    int           // bytes of text that the check looked at
	Err       error         // ErrTime or ErrStack
}

// Error names the criterion, the offset and the limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("stop criterion %q gave up at byte %d of the text: %v (budget %v)",
		e.Criterion, e.Offset, e.Err, e.Budget)
}

// Unwrap returns ErrTime or ErrStack.
func (e *BudgetError) Unwrap() error { return e.Err }

// A Warning is about a criterion that is valid but may not do what it seems to.
type Warning struct {
	Criterion string // name of the criterion
	Problem   string // what will happen
	Hint      string // what to write instead
}

// String is the warning on one line.
func (w Warning) String() string {
	return fmt.Sprintf("stop criterion %q: %s; %s", w.Criterion, w.Problem, w.Hint)
}
