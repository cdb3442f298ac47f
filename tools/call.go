package tools

import (
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
	Failed       Status = "failed"   // the tool returned an error or panicked
	TimedOut     Status = "timeout"  // the deadline passed
	LimitReached Status = "limit"    // the call limit of the tool was reached
	Cancelled    Status = "canceled" // the run was ended meanwhile
)
