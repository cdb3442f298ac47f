package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"unicode/utf8"
)

// FinishFilter is a Finish of chat endpoints only: the server withheld the rest
// of the answer.
const FinishFilter Finish = "content_filter"

// A heard is what one frame of a chat stream says.
type heard struct {
	ChatChunk
	// pieces are parts of calls that are not whole yet. The caller is told of
	// whole calls only, but these too are signs of life and bytes that came.
	pieces string
}

// arrived reports whether the frame brings anything that the clock waits for.
func (h heard) arrived() bool {
	return h.Text != "" || h.Thinking != "" || h.pieces != "" || len(h.Calls) > 0
}

// told reports whether the frame has anything for the caller.
func (h heard) told() bool {
	return h.Text != "" || h.Thinking != "" || len(h.Calls) > 0 ||
		h.Progress != nil || h.Usage != nil || h.Final != nil
}

// chat is generate for a chat endpoint, under the same rules. For the clock and
// the counts, thinking and pieces of calls are text like any other.
func (s *server) chat(ctx context.Context, req ChatRequest, g generation, read func(io.Reader) iter.Seq2[heard, error]) iter.Seq2[ChatChunk, error] {
	if err := req.check(); err != nil {
		return failChat(err)
	}
	g.prompt, g.max = req.texts(), req.MaxTokens
	return func(yield func(ChatChunk, error) bool) {
		var last heard // what the body said last; nothing while the request is sent
		g := g
		g.read = func(r io.Reader) iter.Seq2[Chunk, error] {
			return func(yield func(Chunk, error) bool) {
				for h, err := range read(r) {
					last = h
					c := h.Chunk
					c.Text += h.Thinking + h.pieces
					if !yield(c, err) {
						return
					}
				}
			}
		}
		for c, err := range s.generate(ctx, g) {
			said := last
			last = heard{}
			if err != nil {
				yield(ChatChunk{}, s.withoutTools(req, err))
				return
			}
			c.Text = said.Text
			said.Chunk = c
			if said.told() && !yield(said.ChatChunk, nil) {
				return
			}
		}
	}
}

// failChat is a stream that is nothing but an error.
func failChat(err error) iter.Seq2[ChatChunk, error] {
	return func(yield func(ChatChunk, error) bool) { yield(ChatChunk{}, err) }
}

// toolRefusal are the words in which servers refuse tools or a choice of them:
// Ollama for a model without tools in its template, vLLM without
// --enable-auto-tool-choice, llama-server without --jinja, LM Studio for a
// named function.
var toolRefusal = regexp.MustCompile(`(?i)does not support tools|tool[_ ]choice|tools param`)

// withoutTools tells a server that cannot use tools from one that failed.
func (s *server) withoutTools(req ChatRequest, err error) error {
	var se *ServerError
	if len(req.Tools) > 0 && errors.As(err, &se) && toolRefusal.MatchString(se.Message) {
		return &UnsupportedError{Server: s.kind, What: se.Message}
	}
	return err
}

// check refuses a request that would not arrive as it is, or that no server
// could answer.
func (req ChatRequest) check() error {
	if len(req.Messages) == 0 {
		return &PromptError{Reason: "the conversation is empty"}
	}
	for _, s := range append(req.texts(), req.names()...) {
		if !utf8.ValidString(s.Text) {
			return &PromptError{Reason: "the conversation is not UTF-8, and chat endpoints take only text"}
		}
	}
	named := false
	for _, t := range req.Tools {
		if len(t.Parameters) > 0 && !isObject(t.Parameters) {
			return &PromptError{Reason: "the parameters of the tool " + quoted(t.Name) + " are no JSON object"}
		}
		named = named || t.Name == req.ToolChoice.Name
	}
	switch req.ToolChoice.Mode {
	case ChooseAuto, ChooseNone:
	case ChooseRequired:
		if len(req.Tools) == 0 {
			return &PromptError{Reason: "a call is required and no tool is offered"}
		}
	case ChooseNamed:
		if !named {
			return &PromptError{Reason: "a call of " + quoted(req.ToolChoice.Name) + " is required and this tool is not offered"}
		}
	default:
		return &PromptError{Reason: "unknown tool choice " + quoted(string(req.ToolChoice.Mode))}
	}
	return nil
}

// texts are what error messages must not repeat.
func (c Conversation) texts() []Segment {
	var texts []Segment
	for _, m := range c.Messages {
		texts = append(texts, Segment{Text: m.Content}, Segment{Text: m.Thinking})
		for _, call := range m.Calls {
			texts = append(texts, Segment{Text: string(call.Arguments)})
		}
	}
	for _, t := range c.Tools {
		texts = append(texts, Segment{Text: t.Description}, Segment{Text: string(t.Parameters)})
	}
	return texts
}

// names are the rest of a conversation's strings, which an error may well tell.
func (c Conversation) names() []Segment {
	var names []Segment
	for _, m := range c.Messages {
		names = append(names, Segment{Text: string(m.Role)}, Segment{Text: m.Name}, Segment{Text: m.CallID})
		for _, call := range m.Calls {
			names = append(names, Segment{Text: call.ID}, Segment{Text: call.Name})
		}
	}
	for _, t := range c.Tools {
		names = append(names, Segment{Text: t.Name})
	}
	return names
}

// A chatTool is a tool as all chat endpoints take it.
type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func chatTools(tools []ToolSpec) []chatTool {
	var all []chatTool
	for _, t := range tools {
		f := chatFunction(t)
		if len(f.Parameters) == 0 {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		all = append(all, chatTool{Type: "function", Function: f})
	}
	return all
}

// sentArguments are the arguments of an earlier call as a server takes them
// back: an object. Templates walk over its members, so Ollama, vLLM, SGLang and
// llama-server all parse it, and refuse the whole request, or fail in the
// template, where the model wrote anything else. Such arguments go into an
// object as its member "arguments", as they are where they are JSON and as a
// string where they are not: the call stays in the conversation, and the model
// sees what it wrote.
func sentArguments(written json.RawMessage) (json.RawMessage, error) {
	var member any = string(written)
	switch {
	case len(trimJSON(written)) == 0:
		return json.RawMessage("{}"), nil
	case isObject(written):
		return trimJSON(written), nil
	case json.Valid(written):
		member = written
	}
	b, err := encode(map[string]any{"arguments": member})
	return trimJSON(b), err
}

// isObject reports whether b is a whole JSON object.
func isObject(b []byte) bool {
	b = trimJSON(b)
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// trimJSON removes what JSON calls white space.
func trimJSON(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// callIDs gives each call an ID that no other call of the conversation has.
// What it makes up depends on the conversation only, so that the same answers
// make the same conversation. The form is the one that the templates of Mistral
// insist on: nine letters and digits.
type callIDs struct {
	taken map[string]bool
	n     int
}

func newCallIDs(c Conversation) *callIDs {
	ids := &callIDs{taken: map[string]bool{}}
	for _, m := range c.Messages {
		ids.taken[m.CallID] = true
		for _, call := range m.Calls {
			ids.taken[call.ID] = true
		}
	}
	return ids
}

// unique gives the server's ID, or another where it is empty or taken.
func (ids *callIDs) unique(id string) string {
	for id == "" || ids.taken[id] {
		ids.n++
		id = fmt.Sprintf("call%05d", ids.n)
	}
	ids.taken[id] = true
	return id
}
