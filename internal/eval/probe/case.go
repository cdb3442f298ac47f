// Package probe asks a model for tool calls that nobody runs, and judges them.
//
// A case is one turn: a question, tools, perhaps calls and responses that stand
// before it. The turn is played by the real runner, in any format, and ends
// before a tool would run. What is judged is what the runner would have done.
package probe

import (
	"encoding/json"
	"slices"

	"stopgap/internal/eval/bfcl"
	"stopgap/template"
	"stopgap/tools"
)

// A Case is one turn to ask for.
type Case struct {
	ID       string
	Group    string // what it is about, or BFCL's category
	Language string // "en" or "zh", "" where nobody says
	System   string
	Question string
	Tools    []tools.Spec
	// History are turns that stand before, each with calls and their responses.
	History [][]Exchange
	// Wanted says that a call is right; false that none is.
	Wanted bool
	judge  func(Reply) Verdict
}

// An Exchange is a call that was made and its response.
type Exchange struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Response  string          `json:"response"`
}

// A Reply is what the model did in its turn.
type Reply struct {
	Calls  []Call `json:"calls"`
	Answer string `json:"answer,omitempty"`
}

// A Call is one call as it was read.
type Call struct {
	Name      string            `json:"name"`
	Arguments json.RawMessage   `json:"arguments"`
	Repairs   []template.Repair `json:"repairs,omitempty"`
}

// A Verdict says what is wrong with a reply; the zero value says nothing is.
type Verdict = bfcl.Verdict

// What may be wrong with a reply to a case of the suite.
const (
	FaultNoCall     = "no_call"             // a call was wanted
	FaultCall       = "unwanted_call"       // none was
	FaultCount      = "wrong_count"         // of calls
	FaultTool       = "wrong_tool"          // another tool than the right one
	FaultMissing    = "missing_argument"    // one that must be given
	FaultUnexpected = "unexpected_argument" // one that nobody asked for
	FaultValue      = "wrong_value"         // of an argument
	FaultAnswer     = "wrong_answer"        // the text is not as it must be
	FaultError      = "error"               // the server gave an error in place of a reply
)

// FromBFCL makes cases of rows of BFCL. Conversations in which an assistant has
// spoken are left out and counted. underscores is as in bfcl.Item.Check.
func FromBFCL(items []*bfcl.Item, underscores bool) (cases []*Case, left int, err error) {
	for _, it := range items {
		if it.Conversation {
			left++
			continue
		}
		described, err := it.Tools(underscores)
		if err != nil {
			return nil, 0, err
		}
		c := &Case{
			ID: it.ID, Group: it.Category, System: it.System, Question: it.Question,
			Wanted: !slices.Contains([]string{"irrelevance", "live_irrelevance"}, it.Category),
			judge:  func(r Reply) Verdict { return it.Check(plainCalls(r.Calls), underscores) },
		}
		for _, t := range described {
			c.Tools = append(c.Tools, tools.Spec{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
		cases = append(cases, c)
	}
	return cases, left, nil
}

func plainCalls(calls []Call) []bfcl.Call {
	var out []bfcl.Call
	for _, c := range calls {
		out = append(out, bfcl.Call{Name: c.Name, Arguments: c.Arguments})
	}
	return out
}
