package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stopgap/template"
	"stopgap/tools"
)

// What the model is asked and what it says.
const (
	question       = "Who found the owl of Ely?"
	secondQuestion = "And when was that?"
	thought        = "I should look it up."
	conclusion     = "That settles it."
	answer         = "Ann Weaver found it."
	secondAnswer   = "It was in 1999."
	invention      = "This was never found by any tool."
)

// A stage is where the runs of one format are played.
type stage struct {
	*template.Format
	check string
	found []Finding
	calls []template.Call // that the format can spell, the first with an argument
	tools []*prop         // that they call
}

// A prop is a tool that answers by heart.
type prop struct {
	spec  tools.Spec
	reply string
	fails bool
}

func (p *prop) Spec() tools.Spec { return p.spec }

func (p *prop) Run(context.Context, json.RawMessage) (string, error) {
	if p.fails {
		return "", errors.New("the archive is closed")
	}
	return p.reply, nil
}

func newStage(f *template.Format) *stage {
	s := &stage{Format: f}
	if f.Call.Kind == template.TagCalls {
		for _, t := range f.Call.Tags {
			s.addTag(t)
		}
		slices.SortStableFunc(s.calls, func(a, b template.Call) int { return cmp.Compare(bare(a), bare(b)) })
		return s
	}
	s.add("search", "Finds documents.", map[string]string{"query": "owl of Ely"})
	s.add("read", "Reads one document.", map[string]string{"id": "document 7"})
	if b := f.Call.Body; b.Tool != "" {
		s.add(b.Tool, "Runs a program.", map[string]string{b.Argument: "print(1999)"})
	}
	return s
}

// bare orders calls without arguments behind the others.
func bare(c template.Call) int {
	if string(c.Arguments) == "{}" {
		return 1
	}
	return 0
}

// addTag adds the tool of one tag.
func (s *stage) addTag(t template.CallTag) {
	arguments := map[string]string{}
	for _, name := range append(slices.Collect(maps.Values(t.Children)), t.Text) {
		if name != "" {
			arguments[name] = "the " + name + " of the owl"
		}
	}
	name := cmp.Or(t.Tool, t.Tag)
	if slices.ContainsFunc(s.tools, func(p *prop) bool { return p.spec.Name == name }) {
		return // another tag of the same tool
	}
	s.add(name, "Does what "+t.Tag+" says.", arguments)
}

// replies are what tools answer, by their order.
var replies = []string{"[document 7] The owl of Ely was found by Ann Weaver.", "Ann Weaver found the owl in 1999."}

// add adds a tool with texts as arguments, and a call of it.
func (s *stage) add(name, description string, arguments map[string]string) {
	schema := struct { // in the order that people write
		Type       string                       `json:"type"`
		Properties map[string]map[string]string `json:"properties"`
		Required   []string                     `json:"required,omitempty"`
	}{Type: "object", Properties: map[string]map[string]string{}, Required: slices.Sorted(maps.Keys(arguments))}
	for argument := range arguments {
		schema.Properties[argument] = map[string]string{"type": "string"}
	}
	s.calls = append(s.calls, template.Call{Name: name, Arguments: encode(arguments)})
	s.tools = append(s.tools, &prop{
		spec:  tools.Spec{Name: name, Description: description, Parameters: encode(schema)},
		reply: replies[len(s.tools)%len(replies)],
	})
}

// encode is the JSON of what is made up here, which always has one.
func encode(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("conformance: %v", err))
	}
	return out
}

// set gives the tools that pass.
func (s *stage) set(offered func(*prop) bool) *tools.Set {
	var list []tools.Tool
	for _, p := range s.tools {
		if offered(p) {
			list = append(list, p)
		}
	}
	set, err := tools.NewSet(list, tools.Options{})
	if err != nil { // the tags are not names that a tool can have
		s.find("call.tags", "%v", err)
		set, _ = tools.NewSet(nil, tools.Options{}) // nothing can be wrong with nothing
	}
	return set
}

// described are the tools as formats see them.
func (s *stage) described() []template.Tool {
	var out []template.Tool
	for _, p := range s.tools {
		out = append(out, template.Tool{Name: p.spec.Name, Description: p.spec.Description, Parameters: p.spec.Parameters})
	}
	return out
}

// thinks gives a turn a thought where the format has a place for one.
func (s *stage) thinks(t template.Turn) template.Turn {
	if s.Think.Open != "" {
		t.Think, t.InThink = thought, s.Think.Calls && len(t.Calls) > 0
	}
	return t
}

// calling is a turn that makes calls, thinking first where the format thinks.
func (s *stage) calling(calls ...template.Call) template.Turn {
	return s.thinks(template.Turn{Calls: calls})
}

func (s *stage) answering(text string) template.Turn {
	t := s.thinks(template.Turn{Text: text, Answer: text, Answered: true})
	if t.Think != "" {
		t.Think = conclusion
	}
	return t
}

// written spells a turn; a turn that has no spelling is a finding.
func (s *stage) written(t template.Turn, inThink bool) string {
	text, err := s.Write(t, inThink)
	if err != nil {
		s.find("calls", "%v", err)
	}
	return text
}

// joined is the text of rendered parts.
func joined(parts []template.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
