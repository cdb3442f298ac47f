package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// An Embedder turns texts into vectors, so that texts about the same lie near
// each other whatever their words.
type Embedder interface {
	// Name tells whose vectors these are. Those of another name never mix.
	Name() string
	// Embed gives a vector for each text, all of one length. query says that
	// the texts are questions and no documents: many models want a word before.
	Embed(ctx context.Context, texts []string, query bool) ([][]float32, error)
}

// An EmbedError says that a server gave no vectors, or none that can be used.
type EmbedError struct {
	Server string // "ollama", "openai", …
	URL    string // without a password
	Err    error
	// Done and Left count passages: what has its vectors already stays.
	Done, Left int
}

func (e *EmbedError) Error() string {
	words := fmt.Sprintf("no vectors from %s at %s: %v", e.Server, e.URL, e.Err)
	if e.Done > 0 {
		words += fmt.Sprintf("; %d passages have theirs, %d wait", e.Done, e.Left)
	}
	return words
}
func (e *EmbedError) Unwrap() error { return e.Err }

// An EmbedRefError says that a reference names no embedding model.
type EmbedRefError struct{ Ref, Reason string }

func (e *EmbedRefError) Error() string {
	ref := e.Ref
	if at := strings.LastIndexByte(ref, '@'); at >= 0 { // what is before it may be a password
		ref = "…" + ref[at:]
	}
	return fmt.Sprintf("%q names no embedding model: %s", ref, e.Reason)
}

// EmbedForms are the forms of the references that NewEmbedder takes.
const EmbedForms = "ollama:NAME, llamacpp:URL, openai:URL#MODEL"

// EmbedOptions say how an embedding server is reached.
type EmbedOptions struct {
	OllamaHost string // the base address of Ollama, "http://127.0.0.1:11434"
	APIKey     string // sent as a bearer token to llama-server and OpenAI-style servers
	// Client sends the requests. Nil means one that follows no redirect and
	// uses no proxy.
	Client *http.Client
}

// Bounds of an embedding server.
const (
	embedLimit    = 5 * time.Minute // for one request; the first one loads the model
	embedRetries  = 3
	vectorsLimit  = 64 << 20 // bytes of an answer
	maxDimensions = 16384
)

// NewEmbedder gives the embedding model that ref names: Ollama's by its
// /api/embed, others by /v1/embeddings. No server is asked yet.
func NewEmbedder(ref string, o EmbedOptions) (Embedder, error) {
	kind, rest, _ := strings.Cut(ref, ":")
	s := &embedServer{kind: kind, key: o.APIKey, client: o.Client}
	if s.client == nil {
		s.client = plainClient()
	}
	var err error
	switch kind {
	case "ollama":
		s.model, s.key = rest, ""
		s.path = "/api/embed"
		s.base, err = parseAddress(o.OllamaHost)
		if s.model == "" {
			return nil, &EmbedRefError{ref, "the name of the model is missing"}
		}
	case "llamacpp", "openai":
		address, model, _ := strings.Cut(rest, "#")
		s.base, err = parseAddress(address)
		s.model, s.path = model, "/v1/embeddings"
		if kind == "openai" && model == "" {
			return nil, &EmbedRefError{ref, "the model is missing, behind a #"}
		}
	default:
		return nil, &EmbedRefError{ref, "it begins with none of " + EmbedForms}
	}
	if err != nil {
		return nil, &EmbedRefError{ref, err.Error()}
	}
	if s.path == "/v1/embeddings" {
		s.base.Path = strings.TrimSuffix(s.base.Path, "/v1")
	}
	s.words = wordsFor(s.model)
	return s, nil
}

// plainClient sends what it is given to the address that the user named, and
// nowhere else.
func plainClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second},
	}
}

// parseAddress reads the address of a server. It may hold a password, which no
// error repeats.
func parseAddress(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("that is no address")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the scheme is neither http nor https")
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}

// An embedServer is a server with embedding models.
type embedServer struct {
	kind, model, key string
	base             *url.URL
	path             string
	words            embedWords
	client           *http.Client
}

// EmbedWords are what a model wants before a text. They are part of how it was
// trained, and stand on its card.
type embedWords struct{ query, document string }

// wordsFor knows the words of the models that are used most; others get none.
func wordsFor(model string) embedWords {
	name := strings.ToLower(model)
	for _, m := range []struct {
		part  string
		words embedWords
	}{
		{"nomic-embed", embedWords{"search_query: ", "search_document: "}},
		{"embeddinggemma", embedWords{"task: search result | query: ", "title: none | text: "}},
		{"qwen3-embedding", embedWords{query: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"}},
		{"mxbai-embed", embedWords{query: "Represent this sentence for searching relevant passages: "}},
		{"arctic-embed2", embedWords{query: "query: "}},
		{"arctic-embed", embedWords{query: "Represent this sentence for searching relevant passages: "}},
		{"bge-m3", embedWords{}},
		{"bge-", embedWords{query: "Represent this sentence for searching relevant passages: "}},
		{"e5-mistral", embedWords{query: "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "}},
		{"e5-", embedWords{"query: ", "passage: "}},
	} {
		if strings.Contains(name, m.part) {
			return m.words
		}
	}
	return embedWords{}
}

// Name is the model and its server's kind; the same model on another machine
// gives the same vectors.
func (s *embedServer) Name() string {
	if s.model == "" {
		return s.kind + ":" + s.base.Host
	}
	return s.kind + ":" + s.model
}

// Embed asks the server, again where it is busy or a connection broke.
func (s *embedServer) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	before := s.words.document
	if query {
		before = s.words.query
	}
	in := make([]string, len(texts))
	for i, t := range texts {
		in[i] = before + t
	}
	for try := 0; ; try++ {
		list, again, err := s.ask(ctx, in)
		if err == nil {
			return list, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !again || try == embedRetries {
			return nil, &EmbedError{Server: s.kind, URL: s.base.Redacted(), Err: err}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond << (2 * try)):
		}
	}
}

// ask sends one request. again says that it may be worth another one.
func (s *embedServer) ask(ctx context.Context, texts []string) (list [][]float32, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, embedLimit)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": s.model, "input": texts})
	if err != nil {
		return nil, false, err
	}
	answer, status, err := post(ctx, s.client, s.base.JoinPath(s.path), s.key, body, vectorsLimit)
	if err != nil {
		return nil, true, err
	}
	if status != http.StatusOK {
		return nil, status >= 500 || status == http.StatusTooManyRequests, saidStatus(status, answer, s.key)
	}
	var out struct {
		Embeddings [][]float32 `json:"embeddings"` // Ollama
		Data       []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"` // OpenAI
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, false, errors.New("its answer is no list of vectors")
	}
	list = out.Embeddings
	if s.path != "/api/embed" {
		list = make([][]float32, len(texts))
		for _, d := range out.Data {
			if d.Index >= 0 && d.Index < len(list) {
				list[d.Index] = d.Embedding
			}
		}
	}
	return list, false, normalise(list, len(texts))
}

// post sends JSON and gives the answer and its status. Errors have no address,
// which may hold a password.
func post(ctx context.Context, client *http.Client, to *url.URL, key string, body []byte, limit int64) ([]byte, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, 0, errors.New("that is no address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "stopgap")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		if e, ok := errors.AsType[*os.SyscallError](err); ok {
			err = e.Err // "connection refused", without the steps that led there
		}
		return nil, 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(answer)) > limit {
		err = fmt.Errorf("the answer is longer than %d MiB", limit>>20)
	}
	return answer, resp.StatusCode, err
}

// saidStatus is the error of an answer that is no 200, in the server's words
// where it has some.
func saidStatus(status int, answer []byte, key string) error {
	var said struct{ Error json.RawMessage }
	_ = json.Unmarshal(answer, &said) // no words then
	var words string
	if json.Unmarshal(said.Error, &words) != nil {
		var inner struct{ Message string }
		_ = json.Unmarshal(said.Error, &inner)
		words = inner.Message
	}
	if key != "" {
		words = strings.ReplaceAll(words, key, "****")
	}
	if words = abridge(squeeze(strings.ToValidUTF8(words, "\uFFFD")), 200); words == "" {
		return fmt.Errorf("HTTP %d", status)
	}
	return fmt.Errorf("%s (HTTP %d)", words, status)
}

// normalise makes vectors of length one, so that a dot product is the cosine.
// It refuses what cannot be compared.
func normalise(list [][]float32, want int) error {
	if len(list) != want {
		return fmt.Errorf("it gave %d vectors for %d texts", len(list), want)
	}
	for _, v := range list {
		switch {
		case len(v) == 0:
			return errors.New("it gave an empty vector: the model may be none for embeddings")
		case len(v) != len(list[0]):
			return fmt.Errorf("it gave vectors of %d and of %d numbers", len(list[0]), len(v))
		case len(v) > maxDimensions:
			return fmt.Errorf("its vectors have %d numbers, more than %d", len(v), maxDimensions)
		}
		sum := 0.0
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return errors.New("it gave a vector without a direction")
		}
		scale := 1 / math.Sqrt(sum)
		for i, f := range v {
			v[i] = float32(float64(f) * scale)
		}
	}
	return nil
}
