package conformance

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"stopgap/template"
)

// texts gives the arguments of a call that are texts.
func texts(c template.Call) map[string]string {
	var values map[string]any
	_ = json.Unmarshal(c.Arguments, &values) // the arguments are those of stage.add
	out := map[string]string{}
	for k, v := range values {
		if text, ok := v.(string); ok {
			out[k] = text
		}
	}
	return out
}

// lastText is the argument that a call spells last, "" if it has none.
func lastText(c template.Call) string {
	values := texts(c)
	keys := slices.Sorted(maps.Keys(values))
	if len(keys) == 0 {
		return ""
	}
	return values[keys[len(keys)-1]]
}

// beginnings are the states in which a generation can begin: inside the
// thinking part or not.
func (s *stage) beginnings() []bool {
	out := []bool{s.Think.Opened}
	results := []template.Result{{Name: s.one().Name, Content: "r"}}
	for _, c := range []template.Continuation{{Results: results}, {Results: results, InThink: true}, {Note: "n", InThink: true}} {
		if in := s.StartsInThink(c); !slices.Contains(out, in) {
			out = append(out, in)
		}
	}
	return out
}

// awkward gives a call arguments that are hard to spell.
func (s *stage) awkward() (template.Call, []template.Tool) {
	call, described := s.one(), s.described()
	if s.Call.Kind == template.TagCalls {
		hard := texts(call)
		for k := range hard {
			hard[k] = `"Eulen & Käuze" \ <b> 'x' {y}`
		}
		call.Arguments = encode(hard)
		return call, described
	}
	call.Arguments = json.RawMessage(`{"query": "say \"owl\"\n\tand </b>, 'ü' \\ 日本", "n": -3, "ratio": 0.5, "deep": {"list": ["a", "b, c"], "none": null}, "on": true}`)
	described[0].Parameters = json.RawMessage(`{"type": "object", "properties": {"query": {"type": "string"}, "n": {"type": "integer"}, ` +
		`"ratio": {"type": "number"}, "deep": {"type": "object"}, "on": {"type": "boolean"}}}`)
	return call, described
}

// spelling: what the format writes for a turn reads as that turn, and nothing
// has to be repaired.
func (s *stage) spelling() {
	hard, described := s.awkward()
	turns := []struct {
		name string
		turn template.Turn
	}{
		{"a call", s.calling(s.one())},
		{"a call with awkward arguments", s.calling(hard)},
		{"a call without a thought", template.Turn{Calls: []template.Call{s.one()}}},
		{"an answer", s.answering(answer)},
		{"an answer of two paragraphs", s.answering(answer + "\n\n" + secondAnswer)},
	}
	for _, c := range s.calls[1:] {
		turns = append(turns, struct {
			name string
			turn template.Turn
		}{"a call of " + c.Name, s.calling(c)})
	}
	if !s.SingleCall {
		turns = append(turns, struct {
			name string
			turn template.Turn
		}{"all calls at once", s.calling(s.calls...)})
	}
	for _, inThink := range s.beginnings() {
		for _, t := range turns {
			t.turn.InThink = t.turn.InThink && inThink
			text := s.written(t.turn, inThink)
			read := s.Parse(text, template.Reading{InThink: inThink, Tools: described})
			if difference := differs(t.turn, read); difference != "" {
				s.find("calls", "%s does not read as it is written (%s): %q", t.name, difference, text)
			}
		}
	}
}

// differs says what a turn was read otherwise, or nothing.
func differs(want, got template.Turn) string {
	switch {
	case len(got.Problems) > 0:
		return string(got.Problems[0].Kind) + ": " + got.Problems[0].Message
	case !slices.EqualFunc(want.Calls, got.Calls, sameCall):
		return "other calls"
	case slices.ContainsFunc(got.Calls, func(c template.Call) bool { return len(c.Repairs) > 0 }):
		return "a call needs a repair"
	case want.Answered != got.Answered, want.Answer != got.Answer:
		return "another answer"
	case want.Think != got.Think:
		return "another thought"
	}
	return ""
}

func sameCall(a, b template.Call) bool {
	var x, y any
	return a.Name == b.Name && json.Unmarshal(a.Arguments, &x) == nil && json.Unmarshal(b.Arguments, &y) == nil && reflect.DeepEqual(x, y)
}

// choices: the words that make the model call a tool are the beginning of a
// call as the format spells it.
func (s *stage) choices() {
	spelled := s.written(template.Turn{Calls: []template.Call{s.one()}}, false)
	for _, inThink := range s.beginnings() {
		for _, name := range []string{"", s.one().Name} {
			prefix, ok := s.Prefix(name, s.described(), inThink)
			if !ok {
				continue
			}
			begun := strings.TrimLeft(prefix, "\n")
			if close := s.Think.Close; close != "" {
				begun = strings.TrimLeft(strings.TrimPrefix(begun, close), "\n")
			}
			_, rest, ok := strings.Cut(spelled, begun)
			if !ok {
				s.find("calls", "a call of a chosen tool would begin with %q, which is not how a call is spelled: %q", prefix, spelled)
				continue
			}
			read := s.Parse(prefix+rest, template.Reading{InThink: inThink, Tools: s.described()})
			if difference := differs(template.Turn{Calls: []template.Call{s.one()}}, read); difference != "" {
				s.find("calls", "a call that begins with %q is not read (%s)", prefix, difference)
			}
		}
	}
	s.frame(spelled)
}

// frame: name and arguments put into the frame are a call, and where it begins
// is found.
func (s *stage) frame(spelled string) {
	fr, ok := s.Frame()
	if !ok {
		return
	}
	opening, err := regexp.Compile(fr.Opening)
	if err != nil {
		s.find("call.open", "%v", err)
		return
	}
	if at := opening.FindStringIndex(spelled); at == nil || !strings.HasSuffix(spelled[:at[1]], fr.Opened) {
		s.find("call.open", "the beginning of a call is not found in one: %q", spelled)
	}
	quote := ""
	if fr.Quoted {
		quote = `"`
	}
	text := fr.Before + quote + s.one().Name + quote + fr.Between + string(s.one().Arguments) + fr.After
	read := s.Parse(text, template.Reading{Tools: s.described()})
	if difference := differs(template.Turn{Calls: []template.Call{s.one()}}, read); difference != "" {
		s.find("calls", "a call that is put together is not read (%s): %q", difference, text)
	}
}

// kinds are all the problems that words may have to be found for.
var kinds = []template.ProblemKind{
	template.UnclosedCall, template.BadJSON, template.MissingName, template.UnknownTool, template.BadArguments,
	template.CallInThink, template.InventedResponse, template.TextAfterCall, template.NoCallNoAnswer, template.RepeatedCall,
}

// words: what stands in for a tool's result comes as one, where the format's
// tags are escaped, so that there must be none in it.
func (s *stage) words() {
	var names []string
	for _, t := range s.described() {
		names = append(names, t.Name)
	}
	for _, kind := range kinds {
		text, err := s.Problem(template.Problem{Kind: kind, Message: "it is wrong"}, names)
		if err != nil {
			s.find("problem", "%v", err)
			continue
		}
		for _, m := range s.Reserved.Find(text) {
			s.find("problem", "%q in the words about a problem would be escaped; say it without the tag", text[m.Start:m.End])
		}
	}
}
