// Package template turns a question into a prompt and generated text into a turn.
//
// A format is a text file: a YAML head that says how calls and answers are
// spelled and where generation stops, and text/template blocks that render the
// prompt. The package never talks to a server and never parses anything but
// the bytes that the model generated in one turn.
package template

import "encoding/json"

// A Source says who wrote a piece of the prompt.
type Source string

const (
	FromTemplate Source = "template" // the format
	FromUser     Source = "user"     // untrusted
	FromTool     Source = "tool"     // untrusted
	FromModel    Source = "model"    // generated
	FromRunner   Source = "runner"   // a note of the loop, in the format's words
)

// Untrusted reports whether text from this source may never become structure.
func (s Source) Untrusted() bool { return s == FromUser || s == FromTool }

// A Part is a piece of rendered prompt.
type Part struct {
	Text   string
	Source Source
}

// An Opening is what a prompt is rendered from.
type Opening struct {
	System   string // the user's system message; empty means the format's own default
	Question string
	Tools    []Tool
	Date     string // YYYY-MM-DD
	MaxCalls int    // tool calls that the model may make, zero for no limit
	// Values are the user's own settings for the format's blocks (--set key=value).
	Values map[string]string
}

// A Tool is what a prompt says of a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema, key order kept
}

// A Result is a tool's answer, or an error message, on its way into the prompt.
type Result struct {
	Name    string
	Content string
	Error   bool
}

// A Continuation is what stands between two generations: the results of the
// last turn's calls, a note in the format's words, or a next question.
type Continuation struct {
	Results  []Result
	Note     string // from Format.Force or Format.Nudge
	Question string
	// Open says that the last turn ended in the middle of its text, at the
	// length limit, so that blocks may close what is open.
	Open bool
}

// A Turn is what the model wrote between two stops, parsed. All offsets are
// bytes of the text given to Parse.
type Turn struct {
	Think  string // the text of the thinking part
	Text   string // the rest, without calls
	Calls  []Call
	Answer string
	// Answered says that the turn has an answer, possibly an empty one.
	Answered bool
	Problems []Problem
}

// A Call is one tool call as the model spelled it.
type Call struct {
	Name      string
	Arguments json.RawMessage
	Start     int // of the whole call, tags included
	End       int
}

// A Problem is something in a turn that is not as the format asks.
type Problem struct {
	Kind    ProblemKind
	Start   int
	End     int
	Message string
}

// A ProblemKind names a problem.
type ProblemKind string

const (
	UnclosedCall     ProblemKind = "unclosed_call"
	BadJSON          ProblemKind = "bad_json"
	MissingName      ProblemKind = "missing_name"
	CallInThink      ProblemKind = "call_in_think"
	InventedResponse ProblemKind = "invented_response"
	TextAfterCall    ProblemKind = "text_after_call"
	NoCallNoAnswer   ProblemKind = "no_call_no_answer"
)

// A Stop is a stop criterion of a format.
type Stop struct {
	Name       string
	Literal    string
	Regex      string
	Strip      bool
	StripGroup string
	// Means is what the stop says of the turn: "call", "answer", "end", or
	// "invented" (the model began to write the tool's response itself).
	Means Meaning
	// OutsideThink limits the criterion to text outside the thinking part.
	OutsideThink bool
	// SingleCall limits the criterion to runs that take one call a turn.
	SingleCall bool
}

// A Meaning is what a stop says of the turn.
type Meaning string

const (
	MeansCall     Meaning = "call"
	MeansAnswer   Meaning = "answer"
	MeansEnd      Meaning = "end"
	MeansInvented Meaning = "invented"
)
