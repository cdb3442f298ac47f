package models

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// llama is the model of a llama-server.
type llama struct {
	server
	slots slots

	mu    sync.Mutex
	known *llamaFacts // asked for once
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
	slots   int    // parallel sequences
	context int    // tokens a slot has
	vocab   int    // size of the vocabulary, zero where unknown
	bos     int    // the id that the server puts before a text, -1 for none
	bosText string // what spells it
	spaced  bool   // the tokenizer puts a space before each text
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
	return nil
}

// facts asks the server once. An error is not kept.
func (m *llama) facts(ctx context.Context) (llamaFacts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known != nil {
		return *m.known, nil
	}
	var props llamaProps
	if err := m.call(ctx, http.MethodGet, "/props", nil, &props); err != nil {
		return llamaFacts{}, err
	}
	f := llamaFacts{slots: 1, context: props.Settings.Context, bos: -1}
	if props.Slots != nil {
		f.slots = *props.Slots
	}
	// What a letter becomes tells what the server puts before every text.
	tokens, err := m.tokenize(ctx, "a", true)
	if err != nil {
		return llamaFacts{}, err
	}
	if len(tokens) > 1 && (tokens[0].Piece == "" || strings.Trim(tokens[0].Piece, " a") != "") {
		f.bos, f.bosText = tokens[0].ID, tokens[0].Piece
		tokens = tokens[1:]
	}
	f.spaced = len(tokens) > 0 && strings.HasPrefix(tokens[0].Piece, " ")
	if models, err := m.models(ctx); err == nil && len(models) > 0 {
		f.vocab = models[0].Meta.Vocab
	}
	m.known = &f
	return f, nil
}

// Stream implements Model.
func (m *llama) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
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
	if len(parts) == 1 {
		if s, ok := parts[0].(string); ok {
			return s, nil
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

// A llamaFrame is one event.
type llamaFrame struct {
	Content   string          `json:"content"`
	Tokens    []int           `json:"tokens"`
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Truncated bool            `json:"truncated"`
	Predicted *int            `json:"tokens_predicted"`
	Evaluated *int            `json:"tokens_evaluated"`
	Timings   *llamaTimings   `json:"timings"`
	Progress  *llamaProgress  `json:"prompt_progress"`
	Error     json.RawMessage `json:"error"`
}

type llamaTimings struct {
	Cached      *int    `json:"cache_n"`
	Prompt      *int    `json:"prompt_n"`
	PromptMS    float64 `json:"prompt_ms"`
	PredictedMS float64 `json:"predicted_ms"`
}

type llamaProgress struct {
	Total     int `json:"total"`
	Processed int `json:"processed"`
}

// llamaReader reads the events of one stream.
type llamaReader struct {
	kind   string
	failed func(failure) error
	ids    bool // chunks carry ids: no stop string may cut what they spell
	count  int  // tokens_predicted so far
}

// read yields the chunks of an answer.
func (l *llamaReader) read(r io.Reader) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		// A token without text is a hidden control token, which belongs to the
		// output, or the end of generation, which does not. What follows tells.
		var hidden *Chunk
		for data, err := range readEvents(r, l.kind) {
			if err == nil && data == "[DONE]" {
				continue
			}
			var c Chunk
			var end string
			if err == nil {
				c, end, err = l.chunk(data)
			}
			if hidden != nil && end != "eos" && !yield(*hidden, nil) {
				return
			}
			hidden = nil
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if c.Final == nil && c.Progress == nil && c.Text == "" {
				if len(c.Tokens) > 0 {
					hidden = &c
				}
				continue
			}
			if !yield(c, nil) || c.Final != nil {
				return
			}
		}
	}
}

// chunk reads one event; end is its stop_type.
func (l *llamaReader) chunk(data string) (c Chunk, end string, err error) {
	var f llamaFrame
	if err := decodeFrame(l.kind, []byte(data), &f); err != nil {
		return Chunk{}, "", err
	}
	if len(f.Error) > 0 {
		fail, ok := parseFailure([]byte(data))
		if !ok {
			fail = failure{Message: "an error of unknown shape"}
		}
		return Chunk{}, "", l.failed(fail)
	}
	usage := f.usage()
	if f.Progress != nil {
		// Such an event has a token field too, which means nothing.
		return Chunk{
			Progress: &Progress{Phase: Reading, Done: f.Progress.Processed, Total: f.Progress.Total},
			Usage:    usage,
		}, "", nil
	}
	c = Chunk{Text: f.Content, Usage: usage}
	// A character of several tokens comes with the last of them only: then the
	// count jumps, and the ids do not spell the text.
	whole := f.Predicted == nil || *f.Predicted == l.count+len(f.Tokens)
	if l.ids && whole {
		c.Tokens = f.Tokens
	}
	if f.Predicted != nil {
		l.count = *f.Predicted
	}
	if !f.Stop {
		return c, "", nil
	}
	final := &Final{}
	if usage != nil {
		final.Usage = *usage
	}
	if f.Timings != nil {
		final.Timings.Prompt = milliseconds(f.Timings.PromptMS)
		final.Timings.Generation = milliseconds(f.Timings.PredictedMS)
	}
	switch {
	case f.StopType == "eos", f.StopType == "word":
		final.Finish = FinishStop
	case f.StopType == "limit" && f.Truncated:
		final.Finish = FinishContext
	case f.StopType == "limit":
		final.Finish = FinishLength
	case f.StopType == "none", f.StopType == "":
		return Chunk{}, "", &CutError{Err: errors.New("the server gives no reason for the end")}
	default:
		return Chunk{}, "", &ProtocolError{Server: l.kind, Reason: "an unknown reason for the end", Excerpt: excerpt(f.StopType, excerptLimit)}
	}
	c.Usage, c.Final = nil, final
	return c, f.StopType, nil
}

// usage is what an event says of the counts, nil where it says nothing. The
// field tokens_cached of the last event is no count of hits and is not read.
func (f *llamaFrame) usage() *Usage {
	var u Usage
	set := func(c *Count, n *int) {
		if n != nil && *n >= 0 {
			*c = Known(*n)
		}
	}
	set(&u.Generated, f.Predicted)
	set(&u.Prompt, f.Evaluated)
	if f.Timings != nil {
		set(&u.Reused, f.Timings.Cached)
		set(&u.Evaluated, f.Timings.Prompt)
	}
	if u == (Usage{}) {
		return nil
	}
	return &u
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// Tokenize implements Tokenizer.
func (m *llama) Tokenize(ctx context.Context, text string) ([]Token, error) {
	return m.tokenize(ctx, text, false)
}

func (m *llama) tokenize(ctx context.Context, text string, addSpecial bool) ([]Token, error) {
	if !utf8.ValidString(text) {
		return nil, &PromptError{Reason: "the text to tokenize is not UTF-8"}
	}
	var answer struct {
		Tokens []struct {
			ID    int             `json:"id"`
			Piece json.RawMessage `json:"piece"`
		} `json:"tokens"`
	}
	err := m.call(ctx, http.MethodPost, "/tokenize", map[string]any{
		"content": text, "add_special": addSpecial, "parse_special": true, "with_pieces": true,
	}, &answer)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(answer.Tokens))
	for i, t := range answer.Tokens {
		piece, ok := llamaPiece(t.Piece)
		if !ok {
			return nil, &ProtocolError{Server: m.kind, Reason: "a piece of a token is neither text nor bytes", Excerpt: excerpt(string(t.Piece), excerptLimit)}
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

// modelEntry is one entry of /v1/models, with what the servers add to it.
type modelEntry struct {
	ID      string `json:"id"`
	OwnedBy string `json:"owned_by"`
	MaxLen  int    `json:"max_model_len"` // vLLM and SGLang
	Meta    struct {
		Vocab   int   `json:"n_vocab"`
		Trained int   `json:"n_ctx_train"`
		Size    int64 `json:"size"`
	} `json:"meta"` // llama-server
}

// models asks for /v1/models.
func (s *server) models(ctx context.Context) ([]modelEntry, error) {
	var answer struct {
		Data []modelEntry `json:"data"`
	}
	if err := s.call(ctx, http.MethodGet, "/v1/models", nil, &answer); err != nil {
		return nil, err
	}
	return answer.Data, nil
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
