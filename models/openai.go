package models

import (
	"context"
	"crypto/rand"
	"io"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// openai is a model behind /v1/completions: vLLM, SGLang, LM Studio,
// llama-cpp-python and others that speak OpenAI's legacy completion protocol.
type openai struct {
	server
	name  string // empty means the only one that the server has
	known learned[openaiFacts]

	release learned[string] // of vLLM
	spaced  learned[bool]   // the tokenizer puts a space before each text
}

// openaiFacts are what a request must know of the server.
type openaiFacts struct {
	brand   brand
	model   string
	context int // tokens, zero where unknown
}

// A brand is the program behind the protocol. It decides which fields a
// request may have: strict servers refuse those that they do not know.
type brand string

const (
	vllm       brand = "vllm"
	sglang     brand = "sglang"
	llamaBrand brand = "llamacpp" // llama-server's own /v1/completions
)

// defaultMaxTokens is asked for where the rest of the context is not known.
// The field is never left out: its default is 16.
const defaultMaxTokens = 1024

func openOpenAI(rest string, opts Options) (Model, error) {
	address, name, _ := strings.Cut(rest, "#")
	base, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimRight(strings.TrimSuffix(base.Path, "/v1"), "/")
	m := &openai{name: name}
	m.server = server{kind: "openai-style server", base: base, opts: opts, refuse: m.refusal, list: m.List}
	return m, nil
}

var (
	contextNumber = regexp.MustCompile(`context (?:length|size)(?: is| of)?(?: only)?(?: of)? ?\(?(\d+)`)
	promptNumber  = regexp.MustCompile(`(\d+) (?:input tokens|tokens from the input|in the (?:messages|prompt))|input \((\d+) tokens\)|prompt contains (?:at least )?(\d+)`)
)

// refusal reads the error messages of vLLM and SGLang. A prompt that is too
// long, alone or with the tokens that are asked for, is told only in words.
func (m *openai) refusal(f failure) error {
	switch {
	case f.Status == http.StatusNotFound && strings.Contains(f.Message, "model"):
		return &NotFoundError{Server: m.kind, URL: m.url(), Model: m.name}
	case f.Type == "exceed_context_size_error":
		return &OverflowError{PromptTokens: f.Prompt, Context: f.Context}
	case f.Status == http.StatusBadRequest && strings.Contains(f.Message, "context length"):
		return &OverflowError{PromptTokens: firstNumber(promptNumber, f.Message), Context: firstNumber(contextNumber, f.Message)}
	case f.Status == http.StatusServiceUnavailable && f.Type == "unavailable_error" && strings.Contains(f.Message, "oading"):
		return &LoadingError{Server: m.kind, URL: m.url()}
	}
	return m.refusedSchema(f)
}

// firstNumber is the number in the first group of re that matched in s.
func firstNumber(re *regexp.Regexp, s string) Count {
	groups := re.FindStringSubmatch(s)
	for _, g := range groups[min(1, len(groups)):] {
		if n, err := strconv.Atoi(g); err == nil {
			return Known(n)
		}
	}
	return Count{}
}

// facts asks the server once which program it is. An error is not kept; a
// server without a list of models is of unknown brand.
func (m *openai) facts(ctx context.Context) (openaiFacts, error) {
	return m.known.get(func() (openaiFacts, error) { return m.ask(ctx) })
}

func (m *openai) ask(ctx context.Context) (openaiFacts, error) {
	f := openaiFacts{model: m.name}
	models, err := m.models(ctx)
	if err != nil && (m.name == "" || !withoutList(err)) {
		return openaiFacts{}, err
	}
	if f.model == "" {
		if len(models) != 1 {
			return openaiFacts{}, &NotFoundError{Server: m.kind, URL: m.url()}
		}
		f.model = models[0].ID
	}
	for _, e := range models {
		if e.ID == f.model {
			f.brand, f.context = brand(strings.ToLower(e.OwnedBy)), e.MaxLen
		}
	}
	return f, nil
}

// withoutList reports whether an error of /v1/models means that the server, or
// what stands before it, does not give the list. Other errors pass.
func withoutList(err error) bool {
	switch err := err.(type) {
	case *NotFoundError: // words of a missing route that sound like a missing model
		return true
	case *ServerError:
		return err.Status < 500 && err.Status != http.StatusTooManyRequests
	}
	return false
}

// Stream implements Model.
func (m *openai) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	text, err := promptText(req.Prompt)
	if err == nil {
		err = checkSchema(req.Schema)
	}
	if err != nil {
		return fail(err)
	}
	return func(yield func(Chunk, error) bool) { m.stream(ctx, text, req)(yield) }
}

// stream is one generation of a prompt.
func (m *openai) stream(ctx context.Context, text string, req Request) iter.Seq2[Chunk, error] {
	// SGLang notices a closed connection late; it is told by name.
	id := "stopgap-" + rand.Text()
	var facts openaiFacts
	return m.generate(ctx, generation{
		path:  "/v1/completions",
		media: "text/event-stream",
		prepare: func(ctx context.Context) (any, error) {
			var err error
			if facts, err = m.facts(ctx); err != nil {
				return nil, err
			}
			return m.request(ctx, text, req, facts, id)
		},
		prompt: req.Prompt,
		max:    req.MaxTokens,
		read: func(r io.Reader) iter.Seq2[Chunk, error] {
			reader := openaiReader{server: &m.server, req: req, context: facts.context}
			return reader.read(r)
		},
		abandon: func() {
			if facts.brand == sglang {
				m.abort(id)
			}
		},
	})
}

// abort ends a request of SGLang. The stream is over by then, and so may be
// its context; what the server says no longer matters.
func (m *openai) abort(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	body, err := encode(map[string]string{"rid": id})
	if err != nil {
		return
	}
	if resp, err := m.do(ctx, http.MethodPost, "/abort_request", body); err == nil {
		resp.Body.Close()
	}
}

// request is the body of a generation.
func (m *openai) request(ctx context.Context, text string, req Request, facts openaiFacts, id string) (map[string]any, error) {
	body := req.Sampling.options()
	body["model"] = facts.model
	body["prompt"] = text
	body["stream"] = true
	usage := map[string]any{"include_usage": true}
	body["stream_options"] = usage
	if len(req.Stop) > 0 {
		body["stop"] = req.Stop
	}
	var ids []int
	if facts.brand == vllm || facts.brand == sglang {
		var err error
		if ids, err = promptIDs(req.Prompt); err != nil {
			return nil, err
		}
		if ids != nil {
			body["prompt"] = ids
		}
		usage["continuous_usage_stats"] = true
		body["skip_special_tokens"] = false
		body["return_token_ids"] = true
		if v, ok := body["repeat_penalty"]; ok {
			delete(body, "repeat_penalty")
			body["repetition_penalty"] = v
		}
	}
	switch facts.brand {
	case vllm:
		body["add_special_tokens"] = false
	case sglang:
		body["rid"] = id
	}
	if err := m.constrain(ctx, body, req.Schema, facts.brand); err != nil {
		return nil, err
	}
	body["max_tokens"] = m.maxTokens(ctx, text, ids, req, facts)
	return body, nil
}

// maxTokens is the limit to send: what was asked for, else what is known to
// fit the context, else a fixed number.
func (m *openai) maxTokens(ctx context.Context, text string, ids []int, req Request, facts openaiFacts) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	n := len(ids)
	if n == 0 && facts.brand == vllm && facts.context > 0 {
		var counted struct {
			Count int `json:"count"`
		}
		in := map[string]any{"model": facts.model, "prompt": text, "add_special_tokens": false}
		if m.call(ctx, http.MethodPost, "/tokenize", in, &counted) == nil {
			n = counted.Count
		}
	}
	if n == 0 || facts.context == 0 {
		return defaultMaxTokens
	}
	// SGLang wants the sum to stay below the context.
	return max(1, facts.context-n-1)
}

// List implements Lister.
func (m *openai) List(ctx context.Context) ([]Listed, error) {
	models, err := m.models(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, len(models))
	for i, e := range models {
		listed[i] = Listed{Name: e.ID, Detail: e.OwnedBy}
	}
	return listed, nil
}

// Describe implements Describer.
func (m *openai) Describe(ctx context.Context) (Info, error) {
	facts, err := m.ask(ctx)
	if err != nil {
		return Info{}, m.complete(ctx, err)
	}
	_, _ = m.known.get(func() (openaiFacts, error) { return facts, nil }) // it fails never
	info := Info{
		Ref:    "openai:" + m.url() + "#" + facts.model,
		Server: m.kind,
		Model:  facts.model,
	}
	if facts.context > 0 {
		info.Context = Known(facts.context)
	}
	switch facts.brand {
	case vllm, sglang, llamaBrand:
		info.Server = string(facts.brand)
	}
	if facts.brand == vllm {
		if v, err := m.version(ctx); err == nil && v != "" {
			info.Server += " " + v
		}
	}
	return info, nil
}
