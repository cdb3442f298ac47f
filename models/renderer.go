package models

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
)

// checkRendering refuses a conversation that no turn of the assistant follows.
// Servers leave the last message open where it is the assistant's, each in its
// own way.
func checkRendering(c Conversation) error {
	if err := (ChatRequest{Conversation: c}).check(); err != nil {
		return err
	}
	if c.Messages[len(c.Messages)-1].Role == RoleAssistant {
		return &PromptError{Reason: "the last message is the assistant's, and a rendering ends where its turn begins"}
	}
	return nil
}

// rendered checks that a chat template left no tool out: one that knows no
// tools says nothing of it.
func (s *server) rendered(c Conversation, text string) (string, error) {
	for _, t := range c.Tools {
		if !strings.Contains(text, t.Name) {
			return "", &UnsupportedError{Server: s.kind, What: "tools: the model's chat template leaves out " + quoted(t.Name)}
		}
	}
	return text, nil
}

// unrendered makes the error of a rendering that failed. A server without the
// route is an older one.
func (s *server) unrendered(c Conversation, route string, err error) error {
	var se *ServerError
	if errors.As(err, &se) && se.Status == http.StatusNotFound {
		return &UnsupportedError{Server: s.kind, What: "a chat template: it has no " + route}
	}
	return s.withoutTools(ChatRequest{Conversation: c}, err)
}

// Render implements Renderer. The server leaves the beginning-of-sequence token
// out by itself; older ones did not.
func (m *llama) Render(ctx context.Context, c Conversation) (string, error) {
	if err := checkRendering(c); err != nil {
		return "", err
	}
	const route = "/apply-template"
	var (
		facts  llamaFacts
		answer struct {
			Prompt string `json:"prompt"`
		}
	)
	err := m.reply(ctx, generation{path: route, prompt: c.texts(), prepare: func(ctx context.Context) (any, error) {
		var err error
		if facts, err = m.facts(ctx); err != nil {
			return nil, err
		}
		return templateRequest(c, llamaBrand)
	}}, &answer)
	if err != nil {
		return "", m.unrendered(c, route, err)
	}
	if facts.bos >= 0 {
		answer.Prompt = strings.TrimPrefix(answer.Prompt, facts.bosText)
	}
	return m.rendered(c, answer.Prompt)
}

// templateRequest is a conversation as OpenAI-style servers render it.
func templateRequest(c Conversation, b brand) (map[string]any, error) {
	messages, err := openaiMessages(c.Messages, b)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"messages": messages, "add_generation_prompt": true}
	if len(c.Tools) > 0 {
		body["tools"] = chatTools(c.Tools)
	}
	return body, nil
}

// Render implements Renderer for vLLM; other servers give an *UnsupportedError.
// vLLM renders a conversation to ids (/tokenize) and spells ids (/detokenize).
// Some tokenizers do not spell what they read: the text counts only where it is
// read as the same ids again. The beginning-of-sequence token stays in it where
// the template writes it, because no prompt is sent to vLLM that asks for one.
func (m *openai) Render(ctx context.Context, c Conversation) (string, error) {
	if err := checkRendering(c); err != nil {
		return "", err
	}
	text, err := m.render(ctx, c)
	if err != nil {
		err = m.unrendered(c, "/tokenize", m.complete(ctx, err))
		return "", m.withholdFrom(err, c.texts())
	}
	return m.rendered(c, text)
}

func (m *openai) render(ctx context.Context, c Conversation) (string, error) {
	facts, err := m.facts(ctx)
	if err != nil {
		return "", err
	}
	if facts.brand != vllm {
		return "", &UnsupportedError{Server: m.kind, What: "a chat template without generating"}
	}
	body, err := templateRequest(c, facts.brand)
	if err != nil {
		return "", err
	}
	body["model"] = facts.model
	var (
		read struct {
			Tokens []int `json:"tokens"`
		}
		spelled struct {
			Prompt string `json:"prompt"`
		}
	)
	if err := m.call(ctx, http.MethodPost, "/tokenize", body, &read); err != nil {
		return "", err
	}
	ids := map[string]any{"model": facts.model, "tokens": read.Tokens}
	if err := m.call(ctx, http.MethodPost, "/detokenize", ids, &spelled); err != nil {
		return "", err
	}
	again, err := m.tokens(ctx, spelled.Prompt, facts, false)
	if err != nil {
		return "", err
	}
	if !slices.Equal(again, read.Tokens) {
		return "", &UnsupportedError{Server: m.kind, What: "a chat template: the model's tokenizer does not spell its tokens as it reads them"}
	}
	return spelled.Prompt, nil
}

// Render implements Renderer. The server loads the model for it and generates
// nothing, whether the model has a template or a renderer that is built into
// Ollama; the system message and the messages of the Modelfile are in it, as in
// a chat. A server that does not know _debug_render_only takes the request for
// a chat: it generates one token, which is the limit here, and the error is an
// *UnsupportedError.
func (m *ollama) Render(ctx context.Context, c Conversation) (string, error) {
	if err := checkRendering(c); err != nil {
		return "", err
	}
	const route = "/api/chat"
	var answer struct {
		Debug *api.DebugInfo `json:"_debug_info"`
	}
	err := m.reply(ctx, generation{path: route, prompt: c.texts(), prepare: func(ctx context.Context) (any, error) {
		body, err := m.chatRequest(ctx, ChatRequest{Conversation: c, MaxTokens: 1})
		if err != nil {
			return nil, err
		}
		body["stream"] = false
		body["_debug_render_only"] = true
		return body, nil
	}}, &answer)
	if err != nil {
		return "", m.unrendered(c, route, err)
	}
	if answer.Debug == nil {
		return "", &UnsupportedError{Server: m.kind, What: "a chat template without generating: it takes a newer Ollama"}
	}
	bos, err := m.bos.get(func() (string, error) { return m.beginning(ctx) })
	if err != nil {
		return "", err
	}
	return m.rendered(c, strings.TrimPrefix(answer.Debug.RenderedTemplate, bos))
}

// beginning is the beginning-of-sequence token that the server puts before
// every prompt, one that begins with it included, or nothing.
func (m *ollama) beginning(ctx context.Context) (string, error) {
	show, err := m.show(ctx)
	if err != nil || !addsBOS(show.ModelInfo) {
		return "", err
	}
	// Only a verbose answer has the vocabulary.
	var verbose api.ShowResponse
	if err := m.call(ctx, http.MethodPost, "/api/show", &api.ShowRequest{Model: m.model, Verbose: true}, &verbose); err != nil {
		return "", err
	}
	id, _ := verbose.ModelInfo["tokenizer.ggml.bos_token_id"].(float64)
	tokens, _ := verbose.ModelInfo["tokenizer.ggml.tokens"].([]any)
	if id < 0 || int(id) >= len(tokens) {
		return "", nil
	}
	text, _ := tokens[int(id)].(string)
	return text, nil
}

// addsBOS reads whether prompts get a beginning-of-sequence token. A file that
// does not say so gets what llama.cpp does: one for SentencePiece and Llama 3.
func addsBOS(info map[string]any) bool {
	if add, ok := info["tokenizer.ggml.add_bos_token"].(bool); ok {
		return add
	}
	return info["tokenizer.ggml.model"] == "llama" || info["tokenizer.ggml.pre"] == "llama-bpe"
}
