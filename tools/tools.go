// Package tools runs what the model asked for.
//
// It validates arguments against a tool's JSON schema, runs the calls of a
// turn in parallel under a deadline, and cuts what is too long. It never sees
// the prompt and never decides whether the run goes on.
package tools

import (
	"context"
	"encoding/json"
)

// A Tool does one thing for the model.
type Tool interface {
	// Spec describes the tool. It never changes.
	Spec() Spec
	// Run does the work. args has been validated against Spec().Parameters.
	// An error becomes a message for the model, and text that comes with it is
	// kept as the output so far; ctx carries the deadline.
	Run(ctx context.Context, args json.RawMessage) (string, error)
}

// A Spec is what the model is told about a tool.
type Spec struct {
	Name        string
	Description string
	// Parameters is a JSON schema of type object; its key order is kept. Empty
	// means no parameters. References to other documents are refused.
	Parameters json.RawMessage
	// SideEffects says that a call changes something outside: nobody runs it a
	// second time where it is not known whether it ran, and Options.Approve is
	// asked before it runs. The model is not told.
	SideEffects bool
	// Capabilities are what the tool can reach outside of the run; none for a tool
	// that only computes. A program that offers tools decides which it allows.
	// The model is not told.
	Capabilities []Capability
}

// A Capability is something outside of a run that a tool can reach.
type Capability string

const (
	Net   Capability = "net"   // the network, but for the model's server
	Files Capability = "files" // files of this machine
	Code  Capability = "code"  // programs, or code that a model writes
)
