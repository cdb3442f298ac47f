package tools

import (
	"context"
	"encoding/json"
	"time"
)

// A Call is one call of a turn.
type Call struct {
	Name      string
	Arguments json.RawMessage
}

// A Result is what a call gave. Content is never empty: whatever went wrong is
// said in words for the model.
type Result struct {
	Name    string
	Content string
	Status  Status
	// Cut is how many tokens of the output were left out, zero for none.
	Cut      int
	Duration time.Duration
}

// A Status is how a call went.
type Status string

const (
	OK           Status = "ok"
	UnknownTool  Status = "unknown_tool"
	BadArguments Status = "bad_arguments"
	Failed       Status = "failed"      // the tool returned an error or panicked
	TimedOut     Status = "timeout"     // the deadline passed
	LimitReached Status = "limit"       // the call limit of the tool was reached
	Refused      Status = "refused"     // Options.Approve did not let the tool run
	Cancelled    Status = "canceled"    // the run was ended meanwhile
	Interrupted  Status = "interrupted" // the process was: whether the tool did its work is not known
)

// A Handler stands between a Set and the calls that it admits, one at a time or
// several at once: a journal records them, a replay answers in their place. at
// is the place of the call among those of its turn; run makes it, under the
// tool's deadline. What comes back has not been cut yet.
type Handler func(ctx context.Context, at int, call Call, run func() Result) Result
