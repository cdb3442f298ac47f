package template

import "encoding/json"

// A Turn is what the model wrote between two stops, parsed. All offsets are
// bytes of the text given to Format.Parse.
type Turn struct {
	Think  string // the text of the thinking part, without tags, trimmed
	Text   string // the rest, without calls and tags, trimmed
	Calls  []Call // in the order of the text, complete ones only
	Answer string // trimmed
	// Answered says that the turn has an answer, possibly an empty one.
	Answered bool
	// InThink says that the turn ended inside its thinking part.
	InThink  bool
	Problems []Problem // in the order of the text
}

// A Call is one tool call as the model spelled it.
type Call struct {
	// Name is never empty. Whether there is such a tool is not checked here.
	Name string
	// Arguments is a valid JSON object, byte for byte as the model wrote it.
	Arguments json.RawMessage
	Start     int // of the whole call, tags included
	End       int
	// Repairs are what it took to read it, none for a call that is spelled as
	// the format asks. Arguments of a repaired call may be spelled anew.
	Repairs []Repair
}

// A Problem is something in a turn that is not as the format asks.
type Problem struct {
	Kind  ProblemKind `json:"kind"`
	Start int         `json:"start"`
	End   int         `json:"end"`
	// Message says more, in words that never quote the model's text.
	Message string `json:"message,omitempty"`
}

// A ProblemKind names a problem.
type ProblemKind string

const (
	// UnclosedCall: the text ends inside a call. It is never executed.
	UnclosedCall ProblemKind = "unclosed_call"
	// BadJSON: a call's body or arguments are not a JSON object, or too large.
	BadJSON ProblemKind = "bad_json"
	// MissingName: a call does not say which tool.
	MissingName ProblemKind = "missing_name"
	// UnknownTool: a call names a tool that was not offered. The call is listed.
	UnknownTool ProblemKind = "unknown_tool"
	// BadArguments: the arguments do not fit the tool's schema. The call is
	// listed. Parse never reports it: whoever runs the tools does.
	BadArguments ProblemKind = "bad_arguments"
	// CallInThink: a complete call in the thinking part of a format where
	// those do not count.
	CallInThink ProblemKind = "call_in_think"
	// InventedResponse: the model wrote a tool's response itself. The turn is
	// parsed up to there.
	InventedResponse ProblemKind = "invented_response"
	// TextAfterCall: text outside the thinking part follows the last call.
	TextAfterCall ProblemKind = "text_after_call"
	// NoCallNoAnswer: the turn has neither, and no other problem that says why.
	NoCallNoAnswer ProblemKind = "no_call_no_answer"

	// RepeatedCall is for Format.Nudge: the model makes the same calls over
	// and over. Parse never reports it.
	RepeatedCall ProblemKind = "repeated_call"
)
