package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stopgap/internal/eval/bfcl"
	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A Call is one that a model made in a rollout of an item with functions.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	// Repairs are what it took to read the call.
	Repairs []template.Repair `json:"repairs,omitempty"`
}

// A CallScore says whether the calls of a rollout are right.
type CallScore struct {
	// Right says that they are once they are repaired, Strict that nothing had to
	// be.
	Right  bool `json:"right"`
	Strict bool `json:"strict"`
	bfcl.Verdict
}

// FaultFailed is the fault of a rollout that failed.
const FaultFailed = "error"

// Equip gives a runner and a task what an item asks for: of one with functions
// these alone are the tools, and its first turn ends the run. They do nothing.
func (it *Item) Equip(r *runner.Runner, task *runner.Task) error {
	if len(it.Functions) == 0 {
		return nil
	}
	row, err := it.row()
	if err != nil {
		return err
	}
	set, err := functionSet(row, underscores(r))
	if err != nil {
		return err
	}
	r.Tools, r.CallsEnd, r.Prefill = set, true, false
	if row.System != "" {
		task.System = row.System
	}
	return nil
}

// underscores reports whether the names of functions must have no dots: chat
// endpoints refuse them.
func underscores(r *runner.Runner) bool { return r.Format.Opening == template.OpenChat }

// functionSet makes tools of a row's functions.
func functionSet(row *bfcl.Item, underscores bool) (*tools.Set, error) {
	described, err := row.Tools(underscores)
	if err != nil {
		return nil, err
	}
	var list []tools.Tool
	for _, d := range described {
		list = append(list, function{tools.Spec{Name: d.Name, Description: d.Description, Parameters: d.Parameters}})
	}
	return tools.NewSet(list, tools.Options{})
}

// A function is a tool that nobody calls.
type function struct{ spec tools.Spec }

// Spec implements tools.Tool.
func (f function) Spec() tools.Spec { return f.spec }

// Run implements tools.Tool.
func (function) Run(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("nobody makes this call")
}

// row gives an item with functions as BFCL's rules know it. One that they do not
// judge can still be asked.
func (it *Item) row() (*bfcl.Item, error) {
	row, _, err := it.judged()
	return row, err
}

func (it *Item) judged() (row *bfcl.Item, ok bool, err error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	said := []message{{"user", it.Question}}
	if it.System != "" {
		said = []message{{"system", it.System}, said[0]}
	}
	text, err := json.Marshal(map[string]any{"id": it.ID, "question": [][]message{said}, "function": it.Functions})
	if err != nil {
		return nil, false, err
	}
	row, err = bfcl.ParseRow(text, it.Calls)
	if errors.Is(err, bfcl.ErrCategory) || errors.Is(err, bfcl.ErrTruth) {
		return row, false, nil
	}
	return row, err == nil, err
}

// Score judges the calls of a rollout by BFCL's rules. It is false where they
// do not judge the item, or nobody knows what is right.
func (it *Item) Score(r *Result) (CallScore, bool) {
	if len(it.Functions) == 0 {
		return CallScore{}, false
	}
	row, ok, err := it.judged()
	if err != nil || !ok {
		return CallScore{}, false
	}
	if r.Failed() {
		return CallScore{Verdict: bfcl.Verdict{Fault: FaultFailed, Reason: r.Error}}, true
	}
	var calls []bfcl.Call
	s := CallScore{Strict: true}
	for _, c := range r.Made {
		calls = append(calls, bfcl.Call{Name: c.Name, Arguments: c.Arguments})
		s.Strict = s.Strict && len(c.Repairs) == 0
	}
	s.Verdict = row.Check(calls, r.Underscores)
	s.Right = s.Verdict.OK()
	s.Strict = s.Strict && s.Right
	return s, true
}

// readFunctions makes an item of a row of BFCL: what the user says in its turn,
// and a system message.
func (it *Item) readFunctions(r row) error {
	text, err := json.Marshal(map[string]json.RawMessage{"id": []byte(`"x"`), "question": r["question"], "function": r["function"]})
	if err != nil {
		return err
	}
	row, err := bfcl.ParseRow(text, nil)
	if row == nil {
		return err
	}
	if row.Conversation {
		return errors.New("it is a conversation in which an assistant has spoken already")
	}
	if _, err := functionSet(row, false); err != nil {
		return fmt.Errorf("its functions cannot be offered: %w", err)
	}
	it.Question, it.System, it.Functions = row.Question, row.System, r["function"]
	return nil
}

// madeCalls gives the calls of a recorded run.
func madeCalls(run *trace.Run) ([]Call, error) {
	events, err := eventsOf(run)
	var out []Call
	for _, ev := range events {
		if c, ok := ev.(runner.Called); ok {
			out = append(out, Call{c.Name, c.Arguments, c.Repairs})
		}
	}
	return out, err
}
