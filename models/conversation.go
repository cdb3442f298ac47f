package models

import (
	"context"
	"encoding/json"
	"iter"
)

// A Renderer renders a conversation by the model's own chat template, up to and
// with the words that open the assistant's turn. Optional: llama-server, vLLM
// and Ollama have it.
type Renderer interface {
	// Render gives the text. Special tokens stand in it spelled out; the
	// beginning-of-sequence token, where the server would add it to a prompt
	// by itself, does not.
	Render(ctx context.Context, c Conversation) (string, error)
}

// A Chatter answers by the server's own chat endpoint: the server renders the
// prompt and reads the calls. Optional.
type Chatter interface {
	// Chat is to a conversation what Model.Stream is to a prompt: the last
	// chunk of a complete answer has Final set, a stream that ends without it
	// yields an error, and leaving the range ends the request.
	Chat(ctx context.Context, req ChatRequest) iter.Seq2[ChatChunk, error]
}

// A Conversation is what a chat template renders.
type Conversation struct {
	Messages []Message
	Tools    []ToolSpec
}

// A Message is one message of a conversation.
type Message struct {
	Role    Role
	Content string
	// Thinking and Calls are those of an assistant.
	Thinking string
	Calls    []ToolCall
	// Name and CallID say which tool and which call a tool's message answers.
	Name   string
	CallID string
}

// A Role is who speaks.
type Role string

// The roles that every chat endpoint knows.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A ToolSpec is a tool as chat endpoints describe it. Parameters is a JSON
// schema of type object; empty means no parameters.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// A ToolCall is a call as the server read it. Arguments is what the model
// wrote, mostly a JSON object; it may be anything.
type ToolCall struct {
	ID        string // made up where the server gives none; unique in the conversation
	Name      string
	Arguments json.RawMessage
}

// A ToolChoice says whether the model may, must or must not call.
type ToolChoice struct {
	Mode ChoiceMode
	Name string // of the tool, with ChooseNamed
}

// A ChoiceMode is one of OpenAI's values of tool_choice.
type ChoiceMode string

const (
	ChooseAuto     ChoiceMode = "" // the model decides
	ChooseNone     ChoiceMode = "none"
	ChooseRequired ChoiceMode = "required" // one or more calls, of any tool
	ChooseNamed    ChoiceMode = "named"    // a call of the tool Name
)

// A ChatRequest is one generation of a chat endpoint.
type ChatRequest struct {
	Conversation
	ToolChoice ToolChoice
	// MaxTokens, Sampling and Session are as in Request.
	MaxTokens int
	Sampling  Sampling
	Session   string
}

// A ChatChunk is one piece of an answer. Text is of the content; Tokens is
// always nil.
type ChatChunk struct {
	Chunk
	Thinking string
	Calls    []ToolCall // complete ones
}
