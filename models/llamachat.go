package models

import (
	"context"
	"io"
	"iter"
)

// errLlamaNamed: llama-server reads tool_choice as a word and takes anything
// else for "auto" without saying so.
func errLlamaNamed() error {
	return &UnsupportedError{Server: "llama-server", What: "tool_choice: a named function"}
}

// Chat implements Chatter. The server must run with --jinja, which is the
// default of newer ones, for a request with tools.
func (m *llama) Chat(ctx context.Context, req ChatRequest) iter.Seq2[ChatChunk, error] {
	if req.ToolChoice.Mode == ChooseNamed {
		return failChat(errLlamaNamed())
	}
	return func(yield func(ChatChunk, error) bool) {
		var pin pinned
		defer func() { m.slots.release(pin) }()
		var facts llamaFacts
		g := generation{
			path:  "/v1/chat/completions",
			media: "text/event-stream",
			prepare: func(ctx context.Context) (any, error) {
				var err error
				if facts, err = m.facts(ctx); err != nil {
					return nil, err
				}
				body, err := llamaChatRequest(req)
				if err != nil {
					return nil, err
				}
				if pin = m.pin(req.Session, facts); pin.session != "" {
					body["id_slot"] = pin.slot
				}
				return body, nil
			},
		}
		stream := m.chat(ctx, req, g, func(r io.Reader) iter.Seq2[heard, error] {
			return newChatReader(&m.server, req, facts.context).read(r)
		})
		for c, err := range stream {
			if c.Final != nil {
				m.slots.observe(pin, c.Final.Usage)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// llamaChatRequest is the body of a generation. As in llamaRequest, the prompt
// is kept, its reading is told, and the counts come before the end.
func llamaChatRequest(req ChatRequest) (map[string]any, error) {
	body, err := openaiChat(req, llamaBrand)
	if err != nil {
		return nil, err
	}
	body["cache_prompt"] = true
	body["return_progress"] = true
	body["timings_per_token"] = true
	return body, nil
}
