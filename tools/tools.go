// Package tools runs what the model asked for.
//
// It validates arguments against a tool's JSON schema, runs the calls of a
// turn in parallel under a deadline, and cuts what is too long. It never sees
// the prompt and never decides whether the run goes on.
package tools

import (
	"context"
	"encoding/json"
	"time"
)

// A Tool does one thing for the model.
type Tool interface {
	// Spec describes the tool. It never changes.
	Spec() Spec
	// Run does the work. args has been validated against Spec().Parameters.
	// An error becomes a message for the model; ctx carries the deadline.
	Run(ctx context.Context, args json.RawMessage) (string, error)
}

// A Spec is what the model is told about a tool.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema of type object; its key order is kept
}

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
