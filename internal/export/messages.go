package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// A Message is one of a conversation, in OpenAI's shape. The thinking part is
// beside the content, as chat templates and servers name it.
type Message struct {
	Role      models.Role `json:"role"`
	Content   string      `json:"content"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	Calls     []Call      `json:"tool_calls,omitempty"`
	CallID    string      `json:"tool_call_id,omitempty"`
	Name      string      `json:"name,omitempty"` // of the tool that a result is of
	// Weight is 0 where a message of the model does not count.
	Weight *int `json:"weight,omitempty"`
}

// A Call is a call of a tool.
type Call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// A Function is what a call calls. The arguments are JSON, as the model spelled
// them.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A Tool is what the model was told of a tool.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// messages spells a conversation as messages.
func (e *Exporter) messages(r *rollout) ([]field, error) {
	if !utf8.ValidString(r.text) { // before anything of it counts as written
		e.Counts.NotText++
		return nil, nil
	}
	var messages []Message
	fresh := r.fresh()
	if r.chats() {
		messages = talked(r, fresh)
	} else {
		messages = played(r, fresh)
	}
	if !slices.ContainsFunc(messages, func(m Message) bool { return m.Role == models.RoleAssistant && m.Weight == nil }) {
		e.Counts.Nothing++
		return nil, nil
	}
	fields := []field{{"messages", messages}}
	if tools := newTools(r.Tools); len(tools) > 0 {
		fields = append(fields, field{"tools", tools})
	}
	return fields, nil
}

// discount gives the model's messages no weight.
func discount(messages []Message) {
	for i := range messages {
		if messages[i].Role == models.RoleAssistant {
			messages[i].Weight = new(int)
		}
	}
}

func newTools(list []template.Tool) []Tool {
	out := make([]Tool, len(list))
	for i, t := range list {
		out[i].Type = "function"
		f := &out[i].Function
		f.Name, f.Description, f.Parameters = t.Name, t.Description, t.Parameters
		if len(f.Parameters) == 0 {
			f.Parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
		}
	}
	return out
}

// A conversation are messages, and how many results there were.
type conversation struct {
	messages []Message
	results  int
}

func (c *conversation) say(role models.Role, content string) {
	c.messages = append(c.messages, Message{Role: role, Content: content})
}

// played are the messages of runs whose prompts were rendered here.
func played(r *rollout, fresh []*rollout) []Message {
	var c conversation
	for _, b := range r.chain() {
		from := len(c.messages)
		system := b.Header.Task.System
		if b.Header.Format.Name == b.Runner.Format.Name { // else a server wrote the opening
			system = cmp.Or(system, b.Runner.Format.System)
		}
		if from == 0 && system != "" {
			c.say(models.RoleSystem, system)
		}
		c.say(models.RoleUser, b.Header.Task.Question)
		for i := range b.Turns {
			c.turn(&b.Turns[i], b.Runner.Format)
		}
		if !slices.Contains(fresh, b) {
			discount(c.messages[from:])
		}
	}
	return c.messages
}

// turn adds what the model wrote and what it was told then. Calls are those that
// were answered; what was to be one and could not be read, or was not made,
// stays in the content as it was written.
func (c *conversation) turn(t *trace.Turn, f *template.Format) {
	m := Message{Role: models.RoleAssistant, Content: content(t, f), Reasoning: t.Read.Think}
	var after []Message
	for _, res := range t.Returned {
		c.results++
		at := slices.IndexFunc(t.Called, func(call runner.Called) bool { return call.Index == res.Index })
		if at < 0 {
			after = append(after, Message{Role: models.RoleUser, Content: res.Content})
			continue
		}
		call := t.Called[at]
		id := fmt.Sprintf("call%05d", c.results)
		m.Calls = append(m.Calls, Call{id, "function", Function{call.Name, arguments(t, at)}})
		after = append(after, Message{Role: models.RoleTool, Content: res.Content, CallID: id, Name: call.Name})
	}
	slices.SortStableFunc(after, func(a, b Message) int { return strings.Compare(string(a.Role), string(b.Role)) }) // tool, then user
	c.messages = append(append(c.messages, m), after...)
	for _, note := range t.Notes {
		c.say(models.RoleUser, note)
	}
}

// arguments are those of a call as the model spelled them, white space included,
// which events do not have; those of the event where marks were taken out.
func arguments(t *trace.Turn, call int) string {
	called := t.Called[call].Arguments
	if len(t.Read.Calls) == len(t.Called) {
		var b bytes.Buffer
		if own := t.Read.Calls[call].Arguments; json.Compact(&b, own) == nil && bytes.Equal(b.Bytes(), called) {
			return string(own)
		}
	}
	return string(called)
}

// content is what the model wrote outside of its thought and its calls.
func content(t *trace.Turn, f *template.Format) string {
	read, text := t.Read, t.Text()
	out := read.Text
	switch after := f.Answer.After; {
	case !read.Answered:
	case after != "" && read.Text != read.Answer: // the marker is the format's
		before, _, _ := strings.Cut(read.Text, after)
		out = joinLines(strings.TrimSpace(before), read.Answer)
	default:
		out = cmp.Or(read.Text, read.Answer)
	}
	type piece struct{ from, to int }
	var raw []piece
	for _, p := range t.Stopped.Problems {
		switch p.Kind {
		case template.UnclosedCall, template.BadJSON, template.MissingName:
			raw = append(raw, piece{p.Start, p.End})
		}
	}
	if len(t.Returned) == 0 {
		for _, call := range read.Calls {
			raw = append(raw, piece{call.Start, call.End})
		}
	}
	slices.SortFunc(raw, func(a, b piece) int { return a.from - b.from })
	at := 0
	for _, p := range raw {
		if p.from >= at && p.to <= len(text) {
			out, at = joinLines(out, text[p.from:p.to]), p.to
		}
	}
	return out
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// talked are the messages of a chat endpoint as they were sent, and the last
// answer.
func talked(r *rollout, fresh []*rollout) []Message {
	var out []Message
	if len(r.Exchanges) == 0 || len(r.Turns) == 0 {
		return nil
	}
	last := r.Exchanges[len(r.Exchanges)-1]
	for _, m := range last.Messages {
		out = append(out, newMessage(m))
	}
	to := len(out)
	out = append(out, lastAnswer(&r.Turns[len(r.Turns)-1], last))
	for b := r; b != nil; b = b.before {
		if len(b.Exchanges) == 0 {
			continue
		}
		from := min(to, len(b.Exchanges[0].Messages)) // then the model wrote
		if !slices.Contains(fresh, b) {
			discount(out[from:to])
		}
		to = from
	}
	return out
}

func lastAnswer(t *trace.Turn, x trace.Exchange) Message {
	m := models.Message{Role: models.RoleAssistant}
	for _, s := range t.Texts {
		switch s.Span {
		case template.SpanThink:
			m.Thinking += s.Text
		case template.SpanText:
			m.Content += s.Text
		}
	}
	for _, c := range x.Chunks {
		m.Calls = append(m.Calls, c.Calls...)
	}
	return newMessage(m)
}

func newMessage(m models.Message) Message {
	out := Message{Role: m.Role, Content: m.Content, Reasoning: m.Thinking, CallID: m.CallID, Name: m.Name}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, Call{c.ID, "function", Function{c.Name, cmp.Or(string(c.Arguments), "{}")}})
	}
	return out
}
