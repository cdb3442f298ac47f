package models

import (
	"context"
	"crypto/rand"
	"io"
	"iter"
	"strings"
)

// An openaiMessage is a message of /v1/chat/completions.
type openaiMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"` // never null, which templates print as None
	// Reasoning is vLLM's name, ReasoningContent that of the others.
	Reasoning        string       `json:"reasoning,omitempty"`
	ReasoningContent string       `json:"reasoning_content,omitempty"`
	ToolCalls        []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID       string       `json:"tool_call_id,omitempty"`
	Name             string       `json:"name,omitempty"`
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Chat implements Chatter.
func (m *openai) Chat(ctx context.Context, req ChatRequest) iter.Seq2[ChatChunk, error] {
	return func(yield func(ChatChunk, error) bool) { m.chatOnce(ctx, req)(yield) }
}

// chatOnce is one generation of an answer.
func (m *openai) chatOnce(ctx context.Context, req ChatRequest) iter.Seq2[ChatChunk, error] {
	id := "stopgap-" + rand.Text() // see stream
	var facts openaiFacts
	g := generation{
		path:  "/v1/chat/completions",
		media: "text/event-stream",
		prepare: func(ctx context.Context) (any, error) {
			var err error
			if facts, err = m.facts(ctx); err != nil {
				return nil, err
			}
			return m.chatRequest(req, facts, id)
		},
		abandon: func() {
			if facts.brand == sglang {
				m.abort(id)
			}
		},
	}
	return m.chat(ctx, req, g, func(r io.Reader) iter.Seq2[heard, error] {
		return newChatReader(&m.server, req, facts.context).read(r)
	})
}

// chatRequest is the body of a generation.
func (m *openai) chatRequest(req ChatRequest, facts openaiFacts, id string) (map[string]any, error) {
	body, err := openaiChat(req, facts.brand)
	if err != nil {
		return nil, err
	}
	body["model"] = facts.model
	switch facts.brand {
	case vllm, sglang:
		body["stream_options"] = map[string]any{"include_usage": true, "continuous_usage_stats": true}
		if v, ok := body["repeat_penalty"]; ok {
			delete(body, "repeat_penalty")
			body["repetition_penalty"] = v
		}
	case llamaBrand:
		if req.ToolChoice.Mode == ChooseNamed {
			return nil, errLlamaNamed()
		}
	}
	if facts.brand == sglang {
		body["rid"] = id
	}
	return body, nil
}

// openaiChat is the part of a body that all servers take. Whether calls may
// come several at once is left to the server, and so is the length where none
// is asked for: unlike /v1/completions, this endpoint has no short default.
func openaiChat(req ChatRequest, b brand) (map[string]any, error) {
	messages, err := openaiMessages(req.Messages, b)
	if err != nil {
		return nil, err
	}
	body := req.Sampling.options()
	body["messages"] = messages
	body["stream"] = true
	body["stream_options"] = map[string]any{"include_usage": true}
	if req.MaxTokens > 0 {
		body["max_tokens"] = req.MaxTokens
	}
	if len(req.Tools) == 0 {
		return body, nil // a choice among no tools is refused
	}
	body["tools"] = chatTools(req.Tools)
	switch req.ToolChoice.Mode {
	case ChooseNone, ChooseRequired:
		body["tool_choice"] = string(req.ToolChoice.Mode)
	case ChooseNamed:
		body["tool_choice"] = map[string]any{
			"type": "function", "function": map[string]any{"name": req.ToolChoice.Name},
		}
	}
	return body, nil
}

func openaiMessages(messages []Message, b brand) ([]openaiMessage, error) {
	var all []openaiMessage
	for _, m := range messages {
		sent := openaiMessage{
			Role: string(m.Role), Content: m.Content, ReasoningContent: m.Thinking,
			ToolCallID: m.CallID, Name: m.Name,
		}
		if b == vllm {
			sent.Reasoning, sent.ReasoningContent = m.Thinking, ""
		}
		for _, c := range m.Calls {
			arguments, err := sentArguments(c.Arguments)
			if err != nil {
				return nil, err
			}
			call := openaiCall{ID: c.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = c.Name, string(arguments)
			sent.ToolCalls = append(sent.ToolCalls, call)
		}
		all = append(all, sent)
	}
	return all, nil
}

// A chatFrame is one event: an openaiFrame with other choices, and with what
// llama-server adds to it.
type chatFrame struct {
	openaiFrame
	Choices []struct {
		Index  int       `json:"index"`
		Delta  chatDelta `json:"delta"`
		Finish *string   `json:"finish_reason"`
	} `json:"choices"`
	Progress *llamaProgress `json:"prompt_progress"`
	Timings  *struct {
		llamaTimings
		Predicted *int `json:"predicted_n"`
	} `json:"timings"`
}

// A chatDelta is what an event adds to the message. Every field may be null.
type chatDelta struct {
	Content wording `json:"content"`
	Refusal wording `json:"refusal"` // OpenAI: instead of the content
	// Reasoning is vLLM's name; some of its versions send the same text under
	// both.
	Reasoning        wording     `json:"reasoning"`
	ReasoningContent wording     `json:"reasoning_content"`
	ToolCalls        []callPiece `json:"tool_calls"`
}

// thinking is the reasoning, once.
func (d chatDelta) thinking() string {
	if d.Reasoning != "" {
		return string(d.Reasoning)
	}
	return string(d.ReasoningContent)
}

// chatReader reads the events of one answer.
type chatReader struct {
	openaiReader
	ids     *callIDs
	calls   callPieces
	timings Timings
}

func newChatReader(s *server, req ChatRequest, context int) *chatReader {
	return &chatReader{
		openaiReader: openaiReader{server: s, req: Request{MaxTokens: req.MaxTokens}, context: context},
		ids:          newCallIDs(req.Conversation),
	}
}

// read yields what comes, under the rules of openaiReader.read. The calls come
// with the end: before it no event says that one is whole, because pieces of
// several may alternate.
func (c *chatReader) read(r io.Reader) iter.Seq2[heard, error] {
	return func(yield func(heard, error) bool) {
		for data, err := range readEvents(r, c.kind) {
			if c.over(err) {
				break
			}
			if err == nil && strings.TrimSpace(data) == "[DONE]" {
				break
			}
			var h heard
			if err == nil {
				h, err = c.event(data)
			}
			if err != nil {
				yield(heard{}, err)
				return
			}
			if (h.arrived() || h.Progress != nil) && !yield(h, nil) {
				return
			}
		}
		if c.finish != "" {
			yield(c.end())
		}
	}
}

// event reads one event.
func (c *chatReader) event(data string) (heard, error) {
	var f chatFrame
	if err := decodeFrame(c.kind, []byte(data), &f); err != nil {
		return heard{}, err
	}
	if len(f.Error) > 0 && string(f.Error) != "null" || f.Choices == nil && f.Usage == nil {
		if fail, ok := parseFailure([]byte(data)); ok {
			return heard{}, c.failed(fail)
		}
		return heard{}, &ProtocolError{Server: c.kind, Reason: "an event without choices", Excerpt: excerpt(data, excerptLimit)}
	}
	var h heard
	if counted := c.count(f.openaiFrame); c.time(f) || counted {
		u := c.usage
		h.Usage = &u
	}
	if f.Progress != nil {
		h.Progress = &Progress{Phase: Reading, Done: f.Progress.Processed, Total: f.Progress.Total}
	}
	for _, choice := range f.Choices {
		if choice.Index != 0 || c.finish != "" {
			continue
		}
		h.Text = string(choice.Delta.Content + choice.Delta.Refusal)
		h.Thinking = choice.Delta.thinking()
		for _, piece := range choice.Delta.ToolCalls {
			h.pieces += c.calls.add(piece)
		}
		if choice.Finish != nil {
			c.finish = *choice.Finish
		}
	}
	return h, nil
}

// time keeps what llama-server says of an answer so far, and reports whether it
// said anything.
func (c *chatReader) time(f chatFrame) bool {
	t := f.Timings
	if t == nil {
		return false
	}
	c.timings.Prompt, c.timings.Generation = milliseconds(t.PromptMS), milliseconds(t.PredictedMS)
	if n := counted(t.Predicted); n.Known {
		c.usage.Generated = n
	}
	if reused, read := counted(t.Cached), counted(t.Prompt); reused.Known && read.Known {
		c.usage.Reused, c.usage.Evaluated = reused, read
		c.usage.Prompt = Known(reused.N + read.N)
		if f.Progress != nil { // what is read is not the whole yet
			c.usage.Prompt = counted(&f.Progress.Total)
		}
	}
	return true
}

// end makes the last chunk of a complete answer.
func (c *chatReader) end() (heard, error) {
	cut := c.finish == "length" || c.finish == "content_filter"
	calls, err := c.calls.list(c.kind, c.ids, cut)
	if err != nil {
		return heard{}, err
	}
	final := &Final{Finish: FinishFilter, Usage: c.usage}
	if c.finish == "tool_calls" {
		if len(calls) == 0 {
			return heard{}, &ProtocolError{Server: c.kind, Reason: "the answer ends with calls and has none"}
		}
		c.finish = "stop"
	}
	if c.finish != "content_filter" {
		if final, err = c.final(); err != nil {
			return heard{}, err
		}
	}
	final.Timings = c.timings
	return heard{ChatChunk: ChatChunk{Chunk: Chunk{Final: final}, Calls: calls}}, nil
}
