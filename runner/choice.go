package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A Choice says whether the model may, must or must not call tools. It is for
// the first turn of a run; None is for all of them.
type Choice struct {
	Mode ChoiceMode
	Tool string // with Named
}

// A ChoiceMode is one of OpenAI's values of tool_choice.
type ChoiceMode string

const (
	Auto     ChoiceMode = ""         // the model decides
	None     ChoiceMode = "none"     // no tool is offered
	Required ChoiceMode = "required" // the first turn begins with a call
	Named    ChoiceMode = "named"    // of the tool Choice.Tool
)

// A ChoiceError says that a choice of tools cannot be made.
type ChoiceError struct {
	Choice Choice
	Format string
	Reason string
}

func (e *ChoiceError) Error() string {
	what := string(e.Choice.Mode)
	if e.Choice.Mode == Named {
		what = strconv.Quote(e.Choice.Tool)
	}
	return fmt.Sprintf("tool choice %s: %s", what, e.Reason)
}

// A ConstrainError says that the calls of a format cannot be held to a schema.
type ConstrainError struct{ Format string }

func (e *ConstrainError) Error() string {
	return fmt.Sprintf("the calls of format %s are not JSON objects after an opening: they cannot be held to a schema", e.Format)
}

// callOpening is the name of the criterion that ends free text where a call is
// to go on under its schema.
const callOpening = "call opening"

// mostConstrained bounds the constrained calls of a turn.
const mostConstrained = 16

// checkChoice refuses a choice of tools that the format or the run cannot make.
func (s *state) checkChoice() error {
	fail := func(reason string) error {
		return &ChoiceError{Choice: s.Choice, Format: s.Format.Name, Reason: reason}
	}
	offered := s.described()
	switch s.Choice.Mode {
	case Auto, None:
	case Required, Named:
		if len(offered) == 0 {
			return fail("no tools are offered")
		}
		if s.Choice.Mode == Named && !slices.ContainsFunc(offered, func(t template.Tool) bool { return t.Name == s.Choice.Tool }) {
			return fail("there is no such tool")
		}
		if s.Format.Opening == template.OpenChat {
			return nil // the server's to say
		}
		if _, ok := s.Format.Prefix(s.Choice.Tool, offered, false); !ok {
			return fail(fmt.Sprintf("format %s cannot spell the beginning of such a call", s.Format.Name))
		}
	default:
		return fail("it is auto, none, required or named")
	}
	if s.Constrain && s.Format.Opening != template.OpenChat {
		frame, ok := s.Format.Frame()
		if !ok {
			return &ConstrainError{s.Format.Name}
		}
		if len(offered) > 0 {
			s.frame = frame
		}
	}
	return nil
}

// openingCriterion halts where a call begins.
func (s *state) openingCriterion(inThink bool) stopping.Criterion {
	c := stopping.Criterion{Name: callOpening, Regex: s.frame.Opening}
	if think := s.Format.Think; think.Close != "" && !think.Calls {
		c.Scope = stopping.Scope{Open: think.Open, Close: think.Close, Outside: true, StartsInside: inThink}
	}
	return c
}

// choose puts the words of a tool choice into the model's mouth, at the first
// turn, and says whether the turn is over.
func (g *generation) choose() (over bool, err error) {
	c := g.Choice
	if g.chosen || c.Mode != Required && c.Mode != Named {
		return false, nil
	}
	g.state.chosen = true
	prefix, _ := g.Format.Prefix(c.Tool, g.described(), g.began) // checked in begin
	if !g.Constrain {
		return false, g.put(prefix, template.FromTemplate)
	}
	if thought := prefix[:strings.Index(prefix, g.frame.Opened)]; thought != "" {
		if err := g.put(thought, template.FromTemplate); err != nil {
			return true, err
		}
	}
	err = g.constrained(c.Tool, "")
	return g.complete(), err
}

// opened reports whether a call begins that is to be constrained.
func (g *generation) opened() bool {
	return g.stop != nil && g.stop.Criterion.Name == callOpening
}

// complete reports whether nothing follows a constrained call in its turn.
func (g *generation) complete() bool {
	call := g.Format.Call
	return g.truncated || g.spent() >= g.allowed || g.SingleCall || g.Format.SingleCall || call.List || call.Close == "" && call.Kind == template.JSONCalls ||
		g.written >= mostConstrained
}

// constrained writes a call whose opening stands already: the tool's name, out
// of those that are offered, then its arguments under the tool's schema.
func (g *generation) constrained(tool, opened string) error {
	g.written++
	g.stop = nil // until the call has its end, the turn is in the middle of it
	if err := g.put(strings.TrimPrefix(g.frame.Before, opened), template.FromTemplate); err != nil {
		return err
	}
	offered := g.described()
	if tool == "" && len(offered) == 1 {
		tool = offered[0].Name
	}
	var err error
	from := template.FromTemplate
	if tool == "" {
		from = template.FromModel
		if tool, err = g.chooseName(offered); err != nil || tool == "" {
			return err
		}
	}
	name := tool
	if g.frame.Quoted {
		name = quote(tool)
	}
	if err := g.put(name, from); err != nil {
		return err
	}
	if err := g.put(g.frame.Between, template.FromTemplate); err != nil {
		return err
	}
	i := slices.IndexFunc(offered, func(t template.Tool) bool { return t.Name == tool })
	schema := offered[i].Parameters
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if whole, err := g.fill(schema); err != nil || !whole {
		return err
	}
	return g.put(g.frame.After, template.FromTemplate)
}

// chooseName lets the model choose among the tools, as a JSON string under a
// schema that has their names. It gives "" where the text was cut.
func (g *generation) chooseName(offered []template.Tool) (string, error) {
	var names []string
	for _, t := range offered {
		names = append(names, t.Name)
	}
	schema, err := json.Marshal(map[string]any{"type": "string", "enum": names})
	if err != nil {
		return "", err
	}
	var name string
	chosen := func(text string) bool {
		return json.Unmarshal([]byte(text), &name) == nil && slices.Contains(names, name)
	}
	r, err := g.held(schema, chosen, func(*receipt) (int, error) { return 0, nil })
	if err != nil || g.truncated {
		return "", err
	}
	if !chosen(r.draft.text.String()) {
		g.broken = true
		return "", &models.ProtocolError{Server: g.server(), Reason: "the server did not keep to the schema of the tool's name"}
	}
	return name, nil
}

// fill lets the model write the arguments under their schema. whole says that
// they have their end, which may be the last token that was left.
func (g *generation) fill(schema json.RawMessage) (whole bool, err error) {
	shown := 0 // white space at the end is not part of the value
	show := func(r *receipt) (int, error) {
		text := r.draft.text.String()
		end := len(strings.TrimRight(text, " \t\r\n"))
		end -= torn(text[:end])
		piece := text[shown:end]
		shown = end
		return shown, g.spans(g.lexer.Write(piece))
	}
	r, err := g.held(schema, object, show)
	g.kept.WriteString(r.draft.text.String()[:shown])
	if kept := g.append(r.draft.segments(g.turn, shown)...); err == nil {
		err = kept
	}
	if err != nil {
		return false, err
	}
	value := r.draft.text.String()
	switch whole = json.Valid([]byte(value)); {
	case object(value):
		g.truncated = g.full
	case g.truncated: // another value may have been longer
		return false, nil
	case !whole:
		g.broken = true
		return false, &models.ProtocolError{Server: g.server(), Reason: "the server did not keep to the schema of the arguments"}
	}
	return true, nil
}

// object reports whether a text is a JSON object with its end.
func object(text string) bool {
	return json.Valid([]byte(text)) && strings.HasSuffix(strings.TrimSpace(text), "}")
}

// kit is the tools of the run.
func (r *Runner) kit() (*tools.Set, error) {
	if r.Tools == nil || r.Choice.Mode == None {
		return tools.NewSet(nil, tools.Options{})
	}
	return r.Tools, nil
}
