package template

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	searchTool = Tool{
		Name: "search", Description: "Finds documents.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"array","items":{"type":"string"}}},"required":["query"]}`),
	}
	readTool = Tool{
		Name: "read", Description: "Reads one document.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
	}
)

// tagValues are arguments for formats that have a tag for each tool.
var tagValues = map[string]string{
	"query": `"owl"`, "url": `"https://example.org/owl"`, "goal": `"who found it"`, "id": `[7, 12]`, "text": `"## The owl\n\nAnn found it."`,
}

// offers are the tools of the dialogues and a call of each.
func (f *Format) offers() ([]Tool, []Call) {
	if f.Call.Kind != TagCalls {
		return []Tool{searchTool, readTool}, []Call{
			{Name: "search", Arguments: json.RawMessage(`{"query": ["owl"]}`)}, {Name: "read", Arguments: json.RawMessage(`{"id": "7"}`)},
		}
	}
	var tools []Tool
	var calls []Call
	for _, tag := range f.Call.Tags {
		values, properties := map[string]json.RawMessage{}, map[string]any{}
		for _, argument := range tag.arguments() {
			values[argument] = json.RawMessage(tagValues[argument])
			properties[argument] = map[string]string{"type": kindOf(values[argument])}
		}
		arguments, _ := encode(values) // they always encode
		schema, _ := encode(map[string]any{"type": "object", "properties": properties})
		tools = append(tools, Tool{Name: tag.name(), Description: "Does " + tag.name() + ".", Parameters: schema})
		calls = append(calls, Call{Name: tag.name(), Arguments: arguments})
	}
	return tools, calls
}

// A dialogue is one case of the goldens.
type dialogue struct {
	name    string
	opening Opening
	turns   []exchange
}

// An exchange is what the model says, a turn that Write spells or cut off text,
// and what it is told then.
type exchange struct {
	turn   Turn
	cut    string
	next   Continuation
	force  bool        // with the note that asks for the answer
	nudge  ProblemKind // with the note for this
	failed bool        // the result is the words for a call that is not JSON
}

func (f *Format) dialogues() []dialogue {
	tools, calls := f.offers()
	plain := Opening{Question: "Who found the owl?"}
	one := Opening{Question: "Who found the owl?", Tools: tools[:1], Date: "2025-03-14"}
	full := Opening{System: "Be brief.", Question: "Who found the owl?\nAnd {{when}}?", Date: "2025-03-14", MaxCalls: 3, Tools: tools}
	// Where the prompt opens the thinking, models think.
	thinking := func(words string, t Turn) Turn {
		t.InThink = len(t.Calls) > 0
		if f.Think.Opened {
			t.Think = words
		}
		return t
	}
	call := thinking("I should look.", Turn{Calls: calls[:1]})
	several := Turn{Calls: calls[:min(2, len(calls))], InThink: true}
	if f.SingleCall {
		several.Calls = several.Calls[len(several.Calls)-1:]
	}
	thought := call
	switch {
	case f.Think.Opened:
		thought.Think = "I should look.\n\nAnd then?"
	case f.Think.Open != "":
		thought.Think = "I should look."
	case !f.Call.Bare: // a bare call begins the text
		thought.Text = "I should look."
	}
	answer := thinking("It says so.", Turn{Answer: "Ann found it [7].", Answered: true})
	then := func(t Turn, contents ...string) exchange {
		return exchange{turn: t, next: Continuation{Results: numbered(contents)}}
	}
	forced := then(thought, "[7] Ann found it.")
	forced.force = true
	return []dialogue{
		{"plain", plain, nil},
		{"one_tool", one, nil},
		{"full", full, nil},
		{"single_call", one, []exchange{then(call, "[7] Ann {found} it.")}},
		{"several_calls", full, []exchange{then(several, "[7] Ann found it.", "whole\n\ntext")}},
		{"think_before_call", one, []exchange{then(thought, "[7] Ann found it.")}},
		{"two_rounds", full, []exchange{then(call, "see 7"), then(several, "Ann.")}},
		{"error_response", full, []exchange{{turn: call, failed: true}}},
		{"forced", one, []exchange{then(call, "see 7"), forced}},
		{"forced_in_think", one, []exchange{{cut: "Let me think", next: Continuation{Open: true}, force: true}}},
		{"nudged", one, []exchange{{cut: "Hm", nudge: NoCallNoAnswer}}},
		{"repeated", one, []exchange{then(call, "see 7"), {turn: call, nudge: RepeatedCall}}},
		{"next_question", one, []exchange{
			then(call, "[7] Ann found it."), {turn: answer, next: Continuation{Question: "And when?"}},
			{turn: thinking("The same page.", Turn{Answer: "In 1999.", Answered: true})},
		}},
	}
}

// numbered are results with the IDs that formats may need.
func numbered(contents []string) []Result {
	out := results(contents)
	for i := range out {
		out[i].ID = fmt.Sprintf("call%05d", i+1)
	}
	return out
}

// TestGoldens renders whole dialogues; the goldens show who wrote what.
func TestGoldens(t *testing.T) {
	for _, name := range rendering() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.dialogues() {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				checkGolden(t, filepath.Join("testdata", name, d.name+".golden"), f.play(t, d))
			})
		}
	}
}

// play runs a dialogue as a runner does and gives its prompt with the sources.
func (f *Format) play(t *testing.T, d dialogue) string {
	t.Helper()
	var shown, prompt strings.Builder
	write := func(parts []Part, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			shown.WriteString("⟦" + string(p.Source) + "⟧" + p.Text)
			prompt.WriteString(p.Text)
		}
	}
	write(f.Open(d.opening))
	inThink := f.Think.Opened
	for i, e := range d.turns {
		generated, next := e.cut, e.next
		if generated == "" {
			generated = f.speak(t, e.turn, prompt.String(), inThink)
		}
		write([]Part{{generated, FromModel}}, nil)
		e.tell(t, f, &next)
		next.InThink = f.Parse(generated, Reading{InThink: inThink}).InThink
		if i < len(d.turns)-1 || len(next.Results) > 0 || next.Note != "" || next.Question != "" {
			write(f.Continue(next))
		}
		inThink = f.StartsInThink(next)
	}
	return shown.String()
}

// speak spells a turn behind a prompt. Where that ends in the answer's marker,
// an answer goes on from there and a call begins on the next line.
func (f *Format) speak(t *testing.T, turn Turn, prompt string, inThink bool) string {
	t.Helper()
	text, err := f.Write(turn, inThink)
	if err != nil {
		t.Fatal(err)
	}
	if f.Answer.After == "" || !strings.HasSuffix(prompt, f.Answer.After) {
		return text
	}
	if rest, ok := strings.CutPrefix(text, f.Answer.After); ok {
		return rest
	}
	return "\n" + text
}

// tell adds the format's own words to what the model is told.
func (e exchange) tell(t *testing.T, f *Format, next *Continuation) {
	t.Helper()
	var err error
	switch {
	case e.force:
		next.Note, err = f.Force("the limit of 5 calls is reached")
	case e.nudge != "":
		next.Note, err = f.Nudge(e.nudge)
	case e.failed:
		var words string
		words, err = f.Problem(Problem{Kind: BadJSON, Message: "the call is not a JSON object"}, []string{"search", "read"})
		next.Results = []Result{{ID: "call00001", Content: words, Error: true}}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
