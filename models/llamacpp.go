package models

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// llama is the model of a llama-server.
type llama struct {
	server
	slots slots
	known learned[llamaFacts]

	spelling learned[*Spelling]
}

func openLlama(rest string, opts Options) (Model, error) {
	base, err := parseURL(rest)
	if err != nil {
		return nil, err
	}
	m := &llama{}
	m.server = server{kind: "llama-server", base: base, opts: opts, refuse: m.refusal}
	return m, nil
}

// llamaFacts are what a request must know of the server.
type llamaFacts struct {
	slots   int      // parallel sequences
	context int      // tokens a slot has
	vocab   int      // size of the vocabulary, zero where unknown
	bos     int      // the id that the server puts before a text, -1 for none
	bosText string   // what spells it
	spaced  bool     // the tokenizer puts a space before each text
	letter  int      // the id of a token that is whole characters
	markers []string // what may be special tokens: those of the template, and the ends of a text
}

// llamaProps is the part of /props that is read.
type llamaProps struct {
	Settings struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	Slots    *int    `json:"total_slots"`
	Alias    string  `json:"model_alias"`
	Path     string  `json:"model_path"`
	Template string  `json:"chat_template"`
	Build    string  `json:"build_info"`
	BOS      *string `json:"bos_token"`
	EOS      *string `json:"eos_token"`
}

// refusal reads llama-server's error messages.
func (m *llama) refusal(f failure) error {
	switch {
	case f.Status == http.StatusServiceUnavailable && f.Type == "unavailable_error" && strings.Contains(f.Message, "oading"):
		return &LoadingError{Server: m.kind, URL: m.url()}
	case f.Type == "exceed_context_size_error":
		return &OverflowError{PromptTokens: f.Prompt, Context: f.Context}
	}
	return m.refusedSchema(f)
}

// facts asks the server once. An error is not kept.
func (m *llama) facts(ctx context.Context) (llamaFacts, error) {
	return m.known.get(func() (llamaFacts, error) { return m.ask(ctx) })
}

func (m *llama) ask(ctx context.Context) (llamaFacts, error) {
	var props llamaProps
	if err := m.call(ctx, http.MethodGet, "/props", nil, &props); err != nil {
		return llamaFacts{}, err
	}
	f := llamaFacts{slots: 1, context: props.Settings.Context, bos: -1}
	if props.Slots != nil {
		f.slots = *props.Slots
	}
	f.markers = marker.FindAllString(props.Template, -1)
	for _, end := range []*string{props.BOS, props.EOS} {
		if end != nil && *end != "" {
			f.markers = append(f.markers, *end)
		}
	}
	slices.Sort(f.markers)
	f.markers = slices.Compact(f.markers)
	// What a letter becomes tells what the server puts before every text.
	tokens, err := m.tokenize(ctx, "a", true)
	if err != nil {
		return llamaFacts{}, err
	}
	if len(tokens) > 1 && (tokens[0].Piece == "" || strings.Trim(tokens[0].Piece, " a") != "") {
		f.bos, f.bosText = tokens[0].ID, tokens[0].Piece
		tokens = tokens[1:]
	}
	if len(tokens) > 0 {
		f.spaced = strings.HasPrefix(tokens[0].Piece, " ")
		f.letter = tokens[len(tokens)-1].ID
	}
	if models, err := m.models(ctx); err == nil && len(models) > 0 {
		f.vocab = models[0].Meta.Vocab
	}
	return f, nil
}

// Stream implements Model.
func (m *llama) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	if err := checkSchema(req.Schema); err != nil {
		return fail(err)
	}
	return func(yield func(Chunk, error) bool) {
		var pin pinned
		defer func() { m.slots.release(pin) }()
		stream := m.generate(ctx, generation{
			path:  "/completion",
			media: "text/event-stream",
			prepare: func(ctx context.Context) (any, error) {
				facts, err := m.facts(ctx)
				if err != nil {
					return nil, err
				}
				prompt, err := llamaPrompt(req.Prompt, facts)
				if err != nil {
					return nil, err
				}
				pin = m.pin(req.Session, facts)
				return llamaRequest(prompt, req, pin), nil
			},
			prompt: req.Prompt,
			max:    req.MaxTokens,
			read: func(r io.Reader) iter.Seq2[Chunk, error] {
				reader := llamaReader{kind: m.kind, failed: m.failed, ids: len(req.Stop) == 0}
				return reader.read(r)
			},
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

// llamaRequest is the body of a generation.
func llamaRequest(prompt any, req Request, pin pinned) map[string]any {
	body := req.Sampling.options()
	body["prompt"] = prompt
	body["stream"] = true
	body["cache_prompt"] = true
	body["n_predict"] = -1
	if req.MaxTokens > 0 {
		body["n_predict"] = req.MaxTokens
	}
	if req.Prefill {
		body["n_predict"] = 0
	}
	body["return_tokens"] = true
	body["return_progress"] = true
	// A generation that is halted has no last event: the counts come with each.
	body["timings_per_token"] = true
	// The last event would otherwise repeat the whole prompt.
	body["response_fields"] = []string{
		"content", "tokens", "stop", "stop_type", "truncated",
		"tokens_predicted", "tokens_evaluated", "timings",
	}
	if len(req.Preserve) > 0 {
		body["preserved_tokens"] = req.Preserve
	}
	if len(req.Stop) > 0 {
		body["stop"] = req.Stop
	}
	if len(req.Schema) > 0 {
		body["json_schema"] = req.Schema
	}
	if pin.slot >= 0 && pin.session != "" {
		body["id_slot"] = pin.slot
	}
	return body
}

// llamaPrompt is the prompt as the server takes it: a string, or an array of
// ids and strings where segments carry ids. Neighbouring texts are joined, so
// that they are cut into tokens as they were when the last one was not there.
//
// The server puts its beginning-of-sequence token before a prompt that starts
// with text and before no other. Here it stands before each exactly once.
func llamaPrompt(prompt []Segment, facts llamaFacts) (any, error) {
	parts, err := llamaParts(prompt, facts)
	if err != nil {
		return nil, err
	}
	return joinParts(parts), nil
}

// joinParts is the prompt that parts are. An array of one text would be a list
// of prompts.
func joinParts(parts []any) any {
	if len(parts) == 1 {
		if s, ok := parts[0].(string); ok {
			return s
		}
	}
	return parts
}

func llamaParts(prompt []Segment, facts llamaFacts) ([]any, error) {
	var parts []any
	var text strings.Builder
	size := 0
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, text.String())
			text.Reset()
		}
	}
	for _, s := range prompt {
		size += len(s.Text) + len(s.Tokens)
		// A tokenizer that puts a space before each text would change the prompt.
		if len(s.Tokens) == 0 || facts.spaced {
			text.WriteString(s.Text)
			continue
		}
		flush()
		for _, id := range s.Tokens {
			if err := checkID(id, facts.vocab); err != nil {
				return nil, err
			}
			parts = append(parts, id)
		}
	}
	flush()
	if size == 0 || len(parts) == 0 {
		return nil, &PromptError{Reason: "it is empty"}
	}
	for _, p := range parts {
		if s, ok := p.(string); ok && !utf8.ValidString(s) {
			return nil, &PromptError{Reason: "it is not UTF-8 in a place for which there are no token ids"}
		}
	}
	switch first := parts[0].(type) {
	case string:
		if facts.bos >= 0 && facts.bosText != "" {
			parts[0] = strings.TrimPrefix(first, facts.bosText)
		}
	case int:
		if facts.bos >= 0 && first != facts.bos {
			parts = append([]any{facts.bos}, parts...)
		}
	}
	return parts, nil
}

// checkID refuses ids that are no tokens: servers have crashed on them.
func checkID(id, vocab int) error {
	if id < 0 || id > math.MaxInt32 || vocab > 0 && id >= vocab {
		return &PromptError{Reason: "a token id is outside of the vocabulary"}
	}
	return nil
}

// Tokenize implements Tokenizer.
func (m *llama) Tokenize(ctx context.Context, text string) ([]Token, error) {
	tokens, err := m.tokenize(ctx, text, false)
	return tokens, m.withholdFrom(err, []Segment{{Text: text}})
}

func (m *llama) tokenize(ctx context.Context, text string, addSpecial bool) ([]Token, error) {
	if !utf8.ValidString(text) {
		return nil, &PromptError{Reason: "the text to tokenize is not UTF-8"}
	}
	var answer llamaTokens
	err := m.call(ctx, http.MethodPost, "/tokenize", map[string]any{
		"content": text, "add_special": addSpecial, "parse_special": true, "with_pieces": true,
	}, &answer)
	if err != nil {
		return nil, err
	}
	return answer.tokens(m.kind)
}

// llamaTokens is what /tokenize answers.
type llamaTokens struct {
	Tokens []struct {
		ID    int             `json:"id"`
		Piece json.RawMessage `json:"piece"`
	} `json:"tokens"`
}

func (a *llamaTokens) tokens(server string) ([]Token, error) {
	tokens := make([]Token, len(a.Tokens))
	for i, t := range a.Tokens {
		piece, ok := llamaPiece(t.Piece)
		if !ok {
			return nil, &ProtocolError{Server: server, Reason: "a piece of a token is neither text nor bytes", Excerpt: excerpt(string(t.Piece), excerptLimit)}
		}
		tokens[i] = Token{ID: t.ID, Piece: piece}
	}
	return tokens, nil
}

// llamaPiece reads the text of a token: a string, or the values of its bytes
// where they are not UTF-8.
func llamaPiece(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, true
	}
	var values []uint8 // as numbers: []byte would be base64
	var numbers []int
	if json.Unmarshal(raw, &numbers) != nil {
		return "", false
	}
	for _, n := range numbers {
		if n < 0 || n > 255 {
			return "", false
		}
		values = append(values, uint8(n))
	}
	return string(values), true
}

// List implements Lister.
func (m *llama) List(ctx context.Context) ([]Listed, error) {
	models, err := m.models(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, len(models))
	for i, e := range models {
		listed[i] = Listed{Name: e.ID, Size: e.Meta.Size}
	}
	return listed, nil
}

// Describe implements Describer.
func (m *llama) Describe(ctx context.Context) (Info, error) {
	var props llamaProps
	if err := m.call(ctx, http.MethodGet, "/props", nil, &props); err != nil {
		return Info{}, err
	}
	info := Info{
		Ref:      "llamacpp:" + m.url(),
		Server:   strings.TrimSpace(m.kind + " " + props.Build),
		Model:    props.Alias,
		Template: props.Template,
	}
	if info.Model == "" || info.Model == props.Path {
		info.Model = filepath.Base(props.Path)
	}
	if props.Settings.Context > 0 {
		info.Context = Known(props.Settings.Context)
	}
	if props.Slots != nil {
		info.Slots = Known(*props.Slots)
	}
	if models, err := m.models(ctx); err == nil && len(models) > 0 && models[0].Meta.Trained > 0 {
		info.Trained = Known(models[0].Meta.Trained)
	}
	return info, nil
}
