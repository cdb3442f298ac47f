package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// ollama is a model of an Ollama server. The types are those of Ollama's own
// API package; its client is not used, because it takes the end of a stream
// for its completion and allocates 8 MB for each.
type ollama struct {
	server
	model string

	stops  learned[[]string] // the model's own stop strings
	bos    learned[string]   // what the server puts before every prompt
	numCtx learned[int]      // the context that every request asks for

	spelling learned[*Spelling]
}

func openOllama(name string, opts Options) (Model, error) {
	base, err := OllamaURL(opts.OllamaHost)
	if err != nil {
		return nil, badRef("OLLAMA_HOST is " + err.Error())
	}
	m := &ollama{model: name}
	opts.APIKey = "" // Ollama has none
	m.server = server{kind: "ollama", base: base, opts: opts, refuse: m.refusal, list: m.List}
	return m, nil
}

// OllamaURL reads a value of OLLAMA_HOST as Ollama does (its envconfig.Host),
// except that the unspecified addresses 0.0.0.0 and [::], which a server may
// listen on, become the loopback address that a client can reach everywhere.
func OllamaURL(s string) (*url.URL, error) {
	s = strings.Trim(strings.TrimSpace(s), `"'`)
	port := "11434"
	scheme, rest, found := strings.Cut(s, "://")
	switch {
	case !found:
		scheme, rest = "http", s
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	default:
		return nil, badRef("not an address: the scheme must be http or https, not " + quoted(scheme))
	}
	rest, path, _ := strings.Cut(rest, "/")
	host, given, err := net.SplitHostPort(rest)
	if err != nil {
		host, given = strings.Trim(rest, "[]"), port
	}
	if n, err := strconv.Atoi(given); err == nil && n >= 0 && n <= 65535 {
		port = given
	}
	switch host {
	case "":
		host = "127.0.0.1"
	case "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	u, err := url.Parse(scheme + "://" + net.JoinHostPort(host, port))
	if err != nil {
		return nil, notAddress(s)
	}
	u.Path = strings.TrimRight(path, "/")
	return u, nil
}

// refusal reads Ollama's error messages.
func (m *ollama) refusal(f failure) error {
	switch {
	case f.Status == http.StatusNotFound && strings.Contains(f.Message, "not found"):
		return &NotFoundError{Server: m.kind, URL: m.url(), Model: m.model}
	case strings.Contains(f.Message, "exceeds the context length"),
		strings.Contains(f.Message, "exceeds the available context size"):
		if !f.Context.Known && m.opts.ContextSize > 0 {
			f.Context = Known(m.opts.ContextSize)
		}
		return &OverflowError{PromptTokens: f.Prompt, Context: f.Context}
	}
	return m.refusedSchema(f)
}

// Stream implements Model.
func (m *ollama) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	prompt, err := promptText(req.Prompt)
	if err == nil {
		err = checkSchema(req.Schema)
	}
	if err != nil {
		return fail(err)
	}
	return m.generate(ctx, generation{
		path:  "/api/generate",
		media: "application/x-ndjson",
		prepare: func(ctx context.Context) (any, error) {
			return m.request(ctx, prompt, req)
		},
		prompt: req.Prompt,
		max:    req.MaxTokens,
		read:   func(r io.Reader) iter.Seq2[Chunk, error] { return m.read(r, req.MaxTokens) },
	})
}

// request is the body of a generation. Raw and the three switches keep the
// server from rendering, hiding or cutting anything.
func (m *ollama) request(ctx context.Context, prompt string, req Request) (*api.GenerateRequest, error) {
	no := false
	options := m.options(ctx, req.Sampling, req.MaxTokens)
	if len(req.Stop) > 0 {
		// A request's stops replace those of the model.
		own, err := m.modelStops(ctx)
		if err != nil {
			return nil, err
		}
		stops := slices.Clone(req.Stop)
		for _, s := range own {
			if !slices.Contains(stops, s) {
				stops = append(stops, s)
			}
		}
		options["stop"] = stops
	}
	return &api.GenerateRequest{
		Model:    m.model,
		Prompt:   prompt,
		Raw:      true,
		Format:   req.Schema,
		Think:    &api.ThinkValue{Value: false},
		Truncate: &no,
		Shift:    &no,
		Options:  options,
	}, nil
}

// options are the options that every request of this model carries.
func (m *ollama) options(ctx context.Context, s Sampling, max int) map[string]any {
	o := s.options()
	o["num_predict"] = -1
	if max > 0 {
		o["num_predict"] = max
	}
	if n := m.context(ctx); n > 0 {
		o["num_ctx"] = n
	}
	return o
}

// options are the sampling options under the names that most servers share.
func (s Sampling) options() map[string]any {
	o := map[string]any{}
	put(o, "temperature", s.Temperature)
	put(o, "top_p", s.TopP)
	put(o, "top_k", s.TopK)
	put(o, "min_p", s.MinP)
	put(o, "presence_penalty", s.PresencePenalty)
	put(o, "repeat_penalty", s.RepeatPenalty)
	put(o, "seed", s.Seed)
	return o
}

func put[T any](o map[string]any, name string, v *T) {
	if v != nil {
		o[name] = *v
	}
}

// context decides once which num_ctx all requests of this model carry: what
// the user asked for, else what the model is loaded with, so that nothing is
// loaded again. Zero leaves it to the server.
func (m *ollama) context(ctx context.Context) int {
	if m.opts.ContextSize > 0 {
		return m.opts.ContextSize
	}
	n, err := m.numCtx.get(func() (int, error) { return m.loadedContext(ctx) })
	if err != nil {
		return 0 // the request itself will say what is wrong
	}
	return n
}

// loadedContext is the context size of the loaded model, zero if it is not loaded.
func (m *ollama) loadedContext(ctx context.Context) (int, error) {
	var ps api.ProcessResponse
	if err := m.call(ctx, http.MethodGet, "/api/ps", nil, &ps); err != nil {
		return 0, err
	}
	for _, p := range ps.Models {
		if sameOllamaName(p.Name, m.model) || sameOllamaName(p.Model, m.model) {
			return p.ContextLength, nil
		}
	}
	return 0, nil
}

// sameOllamaName compares two names; a missing registry, namespace or tag means
// Ollama's default.
func sameOllamaName(a, b string) bool { return model.ParseName(a).EqualFold(model.ParseName(b)) }

// read yields the chunks of an answer.
func (m *ollama) read(r io.Reader, max int) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for line, err := range readLines(r, m.kind) {
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			c, err := m.chunk(line, max)
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if c.Text == "" && c.Final == nil {
				continue
			}
			if !yield(c, nil) || c.Final != nil {
				return
			}
		}
	}
}

// chunk reads one line.
func (m *ollama) chunk(line []byte, max int) (Chunk, error) {
	var frame struct {
		api.GenerateResponse
		Response wording `json:"response"` // instead of its string
		Error    *string `json:"error"`
	}
	if err := decodeFrame(m.kind, line, &frame); err != nil {
		return Chunk{}, err
	}
	if frame.Error != nil {
		return Chunk{}, m.failed(failure{Message: *frame.Error})
	}
	c := Chunk{Text: string(frame.Response)}
	if !frame.Done {
		return c, nil
	}
	final, err := m.final(frame.DoneReason, frame.Metrics, max)
	c.Final = final
	return c, err
}

// final makes the end of a complete stream.
func (m *ollama) final(reason string, counts api.Metrics, max int) (*Final, error) {
	generated := counted(&counts.EvalCount)
	final := &Final{Usage: Usage{Generated: generated}, Timings: Timings{
		Load:       counts.LoadDuration,
		Prompt:     counts.PromptEvalDuration,
		Generation: counts.EvalDuration,
	}}
	if counts.PromptEvalCount > 0 {
		// The whole prompt, whatever was found in the cache.
		final.Usage.Prompt = counted(&counts.PromptEvalCount)
	}
	switch reason {
	case "stop":
		final.Finish = FinishStop
	case "length":
		final.Finish = limitReached(max, generated)
	case "":
		return nil, &CutError{Err: errors.New("the server closed the generation")}
	default:
		return nil, &ProtocolError{Server: m.kind, Reason: "an unknown reason for the end", Excerpt: excerpt(reason, excerptLimit)}
	}
	return final, nil
}

// show asks for the model's configuration.
func (m *ollama) show(ctx context.Context) (*api.ShowResponse, error) {
	var r api.ShowResponse
	if err := m.call(ctx, http.MethodPost, "/api/show", &api.ShowRequest{Model: m.model}, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// modelStops are the stop strings of the Modelfile, asked for once.
func (m *ollama) modelStops(ctx context.Context) ([]string, error) {
	return m.stops.get(func() ([]string, error) {
		r, err := m.show(ctx)
		if err != nil {
			return nil, err
		}
		return parameters(r.Parameters, "stop"), nil
	})
}

// parameters reads the values of a parameter from the parameters of /api/show:
// one a line, the name, blanks, the value, strings quoted as in Go.
func parameters(lines, name string) []string {
	var values []string
	for line := range strings.Lines(lines) {
		n, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n != name {
			continue
		}
		value = strings.TrimSpace(value)
		if s, err := strconv.Unquote(value); err == nil {
			value = s
		}
		values = append(values, value)
	}
	return values
}

// Describe implements Describer.
func (m *ollama) Describe(ctx context.Context) (Info, error) {
	show, err := m.show(ctx)
	if err != nil {
		return Info{}, m.complete(ctx, err)
	}
	info := Info{
		Ref:      "ollama:" + m.model,
		Server:   m.kind,
		Model:    m.model,
		Template: show.Template,
		Stops:    parameters(show.Parameters, "stop"),
	}
	var v struct {
		Version string `json:"version"`
	}
	if m.call(ctx, http.MethodGet, "/api/version", nil, &v) == nil && v.Version != "" {
		info.Server = "ollama " + v.Version
	}
	if arch, ok := show.ModelInfo["general.architecture"].(string); ok {
		if n, ok := show.ModelInfo[arch+".context_length"].(float64); ok {
			info.Trained = Known(int(n))
		}
	}
	loaded, err := m.loadedContext(ctx)
	if err != nil {
		return Info{}, err
	}
	own := parameters(show.Parameters, "num_ctx")
	switch {
	case m.opts.ContextSize > 0:
		info.Context = Known(m.opts.ContextSize)
	case loaded > 0:
		info.Context = Known(loaded)
	case len(own) > 0:
		if n, err := strconv.Atoi(own[len(own)-1]); err == nil {
			info.Context = Known(n)
		}
	}
	return info, nil
}

// List implements Lister. The models come in the server's order, the most
// recently changed first.
func (m *ollama) List(ctx context.Context) ([]Listed, error) {
	var tags api.ListResponse
	if err := m.call(ctx, http.MethodGet, "/api/tags", nil, &tags); err != nil {
		return nil, err
	}
	return listOllama(tags), nil
}

func listOllama(tags api.ListResponse) []Listed {
	listed := make([]Listed, 0, len(tags.Models))
	for _, t := range tags.Models {
		listed = append(listed, Listed{
			Name:   t.Name,
			Size:   t.Size,
			Detail: strings.TrimSpace(fmt.Sprintf("%s %s", t.Details.ParameterSize, t.Details.QuantizationLevel)),
		})
	}
	return listed
}
