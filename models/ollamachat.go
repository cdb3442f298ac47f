package models

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/ollama/ollama/api"
)

// An ollamaMessage is api.Message with the arguments of calls as they are:
// Ollama's type reads numbers as floats, which changes long ones.
type ollamaMessage struct {
	Role       string       `json:"role"`
	Content    wording      `json:"content"`
	Thinking   wording      `json:"thinking,omitempty"`
	ToolCalls  []ollamaCall `json:"tool_calls,omitempty"`
	ToolName   string       `json:"tool_name,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// Chat implements Chatter. Ollama has no tool_choice: ChooseNone leaves the
// tools out of the request, and so out of the prompt, and what would force a
// call gives an *UnsupportedError.
func (m *ollama) Chat(ctx context.Context, req ChatRequest) iter.Seq2[ChatChunk, error] {
	switch req.ToolChoice.Mode {
	case ChooseRequired:
		return failChat(&UnsupportedError{Server: m.kind, What: "tool_choice: required"})
	case ChooseNamed:
		return failChat(&UnsupportedError{Server: m.kind, What: "tool_choice: a named function"})
	}
	g := generation{
		path:    "/api/chat",
		media:   "application/x-ndjson",
		prepare: func(ctx context.Context) (any, error) { return m.chatRequest(ctx, req) },
	}
	return m.chat(ctx, req, g, func(r io.Reader) iter.Seq2[heard, error] { return m.readChat(r, req) })
}

// chatRequest is the body of a generation. Truncate and shift keep the server
// from dropping messages in silence. Think is left out: a model that can think
// then does so, as for everybody who asks without it, and this is what other
// formats are compared with.
func (m *ollama) chatRequest(ctx context.Context, req ChatRequest) (map[string]any, error) {
	messages, err := ollamaMessages(req.Messages)
	if err != nil {
		return nil, err
	}
	body := map[string]any{
		"model":    m.model,
		"messages": messages,
		"truncate": false,
		"shift":    false,
		"options":  m.options(ctx, req.Sampling, req.MaxTokens),
	}
	if len(req.Tools) > 0 && req.ToolChoice.Mode != ChooseNone {
		body["tools"] = chatTools(req.Tools)
	}
	return body, nil
}

func ollamaMessages(messages []Message) ([]ollamaMessage, error) {
	var all []ollamaMessage
	for _, m := range messages {
		sent := ollamaMessage{
			Role: string(m.Role), Content: wording(m.Content), Thinking: wording(m.Thinking),
			ToolName: m.Name, ToolCallID: m.CallID,
		}
		for i, c := range m.Calls {
			arguments, err := sentArguments(c.Arguments)
			if err != nil {
				return nil, err
			}
			call := ollamaCall{ID: c.ID}
			call.Function.Index, call.Function.Name, call.Function.Arguments = i, c.Name, arguments
			sent.ToolCalls = append(sent.ToolCalls, call)
		}
		all = append(all, sent)
	}
	return all, nil
}

// readChat reads the lines of one answer. Each call comes whole, in a line of
// its own or with others.
func (m *ollama) readChat(r io.Reader, req ChatRequest) iter.Seq2[heard, error] {
	return func(yield func(heard, error) bool) {
		ids := newCallIDs(req.Conversation)
		for line, err := range readLines(r, m.kind) {
			var h heard
			if err == nil {
				h, err = m.chatChunk(line, req.MaxTokens, ids)
			}
			if err != nil {
				yield(heard{}, err)
				return
			}
			if !h.arrived() && h.Final == nil {
				continue
			}
			if !yield(h, nil) || h.Final != nil {
				return
			}
		}
	}
}

// chatChunk reads one line.
func (m *ollama) chatChunk(line []byte, max int, ids *callIDs) (heard, error) {
	var frame struct {
		Message ollamaMessage `json:"message"`
		Done    bool          `json:"done"`
		Reason  string        `json:"done_reason"`
		api.Metrics
		Error *string `json:"error"`
	}
	if err := decodeFrame(m.kind, line, &frame); err != nil {
		return heard{}, err
	}
	if frame.Error != nil {
		return heard{}, m.failed(failure{Message: *frame.Error})
	}
	var h heard
	h.Text, h.Thinking = string(frame.Message.Content), string(frame.Message.Thinking)
	for _, c := range frame.Message.ToolCalls {
		call := partialCall{id: c.ID, name: c.Function.Name}
		call.add(c.Function.Arguments)
		whole, err := call.whole(m.kind, ids)
		if err != nil {
			return heard{}, err
		}
		h.Calls = append(h.Calls, whole)
		h.pieces += string(call.body)
	}
	if !frame.Done {
		return h, nil
	}
	final, err := m.final(frame.Reason, frame.Metrics, max)
	h.Final = final
	return h, err
}
