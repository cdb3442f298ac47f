package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"stopgap/tools/browser"
	"stopgap/tools/fetch"
)

// The bounds of one question to an engine.
const (
	maxAnswer  = 4 << 20 // bytes
	mostTries  = 4
	mostWait   = 30 * time.Second // that a server may ask for before the next try
	oneRequest = 20 * time.Second
)

// A Result is what a search found: one page, or one paper.
type Result struct {
	Title   string
	Link    string
	Snippet string
	Date    string // as the engine tells it, often empty
	// Of papers.
	Info    string // authors and where it was published
	Year    int
	CitedBy int
	PDF     string
}

// An engine finds results for a query, at most MaxResults, the best first.
type engine interface {
	search(ctx context.Context, query string) ([]Result, error)
}

// makers make the engines of web_search, papers those of google_scholar.
var (
	makers = map[string]func(*api) engine{
		Tavily: func(a *api) engine { return tavily{a} }, Brave: func(a *api) engine { return brave{a} },
		Serper: func(a *api) engine { return serper{a, "/search"} }, SearXNG: func(a *api) engine { return searxng{a} },
		Bing: func(a *api) engine { return bing{a} },
	}
	papers = map[string]func(*api) engine{
		Serper: func(a *api) engine { return serper{a, "/scholar"} }, OpenAlex: func(a *api) engine { return openAlex{a} },
		ArXiv: func(a *api) engine { return arXiv{a} },
	}
)

// An api is an engine's address and how it is asked.
type api struct {
	name, base, key string
	client          *fetch.Client
	cache           *fetch.Cache
	patience        time.Duration
	browser         *browser.Browser
}

// An EngineError says that an engine did not answer a query.
type EngineError struct {
	Engine string
	Status int // of HTTP, zero where there was no answer
	Err    error
}

func (e *EngineError) Error() string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Engine != SearXNG:
		return fmt.Sprintf("%s refused the key", e.Engine)
	case e.Status == http.StatusForbidden:
		return "searxng does not give JSON: its settings must list json under search.formats"
	case e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("%s has had too many requests", e.Engine)
	case e.Status != 0:
		return fmt.Sprintf("%s answered %d %s", e.Engine, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s could not be asked: %v", e.Engine, e.Err)
}

func (e *EngineError) Unwrap() error { return e.Err }

// get asks with a GET request, post with a JSON body. Both give the answer,
// from the cache where it is there, and try again what may pass.
func (a *api) get(ctx context.Context, path string, query url.Values, header map[string]string) ([]byte, error) {
	return a.ask(ctx, http.MethodGet, path+"?"+query.Encode(), "", header)
}

func (a *api) post(ctx context.Context, path string, body any, header map[string]string) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return a.ask(ctx, http.MethodPost, path, string(b), header)
}

func (a *api) ask(ctx context.Context, method, path, body string, header map[string]string) ([]byte, error) {
	key := strings.Join([]string{"search", a.name, method, a.base + path, body}, " ") // the key of the engine is none of it
	if kept, ok := a.cache.Get(key); ok {
		return kept, nil
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = a.patience, 8*a.patience
	answer, err := backoff.Retry(ctx, func() ([]byte, error) {
		b, err := a.once(ctx, method, path, body, header)
		var failed *EngineError
		if errors.As(err, &failed) && !passing(failed) {
			return nil, backoff.Permanent(err)
		}
		return b, err
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(mostTries))
	if err != nil {
		return nil, a.final(ctx, err)
	}
	if a.well(answer) { // else the next one may be
		a.cache.Put(key, answer)
	}
	return answer, nil
}

// well reports whether an answer is of the kind that the engine gives.
func (a *api) well(answer []byte) bool {
	if a.name == ArXiv {
		return bytes.Contains(answer, []byte("<feed"))
	}
	return json.Valid(answer)
}

// final is an error without the library's wrapping.
func (a *api) final(ctx context.Context, err error) error {
	var failed *EngineError
	var asked *backoff.RetryAfterError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return failed
	case errors.As(err, &asked):
		return &EngineError{Engine: a.name, Status: http.StatusTooManyRequests}
	}
	return &EngineError{Engine: a.name, Err: err}
}

// passing reports whether the same request may go well later.
func passing(e *EngineError) bool {
	var refused *fetch.RefusedError
	switch e.Status {
	case 0:
		return !errors.As(e.Err, &refused)
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// once sends one request. A server that says how long to wait is obeyed.
func (a *api) once(ctx context.Context, method, path, body string, header map[string]string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, oneRequest)
	defer cancel()
	if a.name == OpenAlex && a.key != "" { // the only one whose key has no header
		path += "&api_key=" + url.QueryEscape(a.key)
	}
	req, err := http.NewRequestWithContext(limited, method, a.base+path, strings.NewReader(body))
	if err != nil {
		return nil, &EngineError{Engine: a.name, Err: errors.New("its address is none")}
	}
	req.Header.Set("User-Agent", a.client.UserAgent())
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "gzip")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := a.client.Send(req)
	if err != nil {
		return nil, &EngineError{Engine: a.name, Err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s >= 0 && time.Duration(s)*time.Second <= mostWait && res.StatusCode == http.StatusTooManyRequests {
			return nil, backoff.RetryAfter(s)
		}
		return nil, &EngineError{Engine: a.name, Status: res.StatusCode}
	}
	answer, err := fetch.ReadBody(res, maxAnswer)
	if err != nil {
		return nil, &EngineError{Engine: a.name, Err: err}
	}
	return answer, nil
}

// decode reads an answer as JSON.
func (a *api) decode(answer []byte, err error, into any) error {
	if err != nil {
		return err
	}
	if json.Unmarshal(answer, into) != nil {
		return &EngineError{Engine: a.name, Err: errors.New("its answer is not the JSON that it should be")}
	}
	return nil
}
