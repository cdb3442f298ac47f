// Package template turns a question into a prompt and generated text into a turn.
//
// A format is a text file: a YAML head that says how calls and answers are
// spelled and where generation stops, and text/template blocks that render the
// prompt; see [Compile]. Text from users and tools never passes through the
// template engine, and every rendered [Part] says who wrote it.
//
// The package never talks to a server, and it never parses anything but the
// bytes that the model generated in one turn: not the prompt, not earlier turns.
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

// A Part is a piece of rendered prompt. Neighbours never have the same source,
// and no part is empty.
type Part struct {
	Text   string
	Source Source
}

// An Opening is what a prompt is rendered from.
type Opening struct {
	System   string // the user's system message, trusted; empty means the format's own default
	Question string // untrusted
	Tools    []Tool
	Date     string // YYYY-MM-DD; empty leaves the date out
	MaxCalls int    // tool calls that the model may make; zero means the format's own number
	// Values are the user's own settings for the format's blocks (--set key=value).
	Values map[string]string
	// Texts are more than the question, by name, for formats that know them: what
	// was found, what was written. They are untrusted; an empty one is none.
	Texts map[string]string
}

// A Tool is what a prompt says of a tool. It is printed as it is: who fills it in
// with words of others escapes them, as package runner does.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON schema of type object; its key order is kept.
	// Empty means a tool without parameters.
	Parameters json.RawMessage
}

// A Result is a tool's answer, or an error message, on its way into the prompt.
// Name and Content are untrusted: the model chose the one, the tool the other.
type Result struct {
	Name string
	// ID tells the results of a conversation apart, where a format names the
	// call that it answers. It is made by whoever runs the tools, and trusted.
	ID      string
	Content string
	Error   bool
}

// A Continuation is what stands between two generations: the results of the
// last turn's calls, a note in the format's words, a next question, or several
// of these; they are rendered in this order.
type Continuation struct {
	Results  []Result
	Note     string // from Format.Force or Format.Nudge
	Question string // untrusted
	// Open says that the last turn ended in the middle of its text, at the
	// length limit, so that blocks may close what is open.
	Open bool
	// InThink says that the last turn ended inside its thinking part
	// (Turn.InThink), so that blocks may close it.
	InThink bool
}
