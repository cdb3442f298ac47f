package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A server is the HTTP side of a protocol. It is immutable.
type server struct {
	kind string // for errors: "ollama", "llama-server", …
	base *url.URL
	opts Options
	// refuse makes the typed error of an answer with a status other than 200,
	// or nil where the general rules do.
	refuse func(failure) error
	// list says which models there are, for a NotFoundError. Optional.
	list func(context.Context) ([]Listed, error)
}

const (
	answerLimit = 64 << 20 // bytes of a whole answer, vocabularies included
	lookupLimit = 30 * time.Second
)

// url is the server's address as it may be shown.
func (s *server) url() string { return s.base.Redacted() }

// encode writes JSON without escaping <, > and &, which prompts are full of.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// do sends one request. The caller closes the body.
func (s *server) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "stopgap")
	if s.opts.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+s.opts.APIKey)
	}
	resp, err := s.opts.Client.Do(req)
	if err == nil {
		return resp, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the URL, which may hold a password
	}
	if isHTTPFault(err) {
		return nil, &ProtocolError{Server: s.kind, Reason: "the answer is no HTTP: " + excerpt(err.Error(), excerptLimit)}
	}
	return nil, &UnreachableError{Server: s.kind, URL: s.url(), Err: err}
}

// isHTTPFault reports whether something answered, but not as HTTP does. The
// errors of net/http have no types; these words are theirs.
func isHTTPFault(err error) bool {
	said := err.Error()
	for _, words := range []string{"malformed HTTP", "malformed MIME", "response headers exceeded", "1xx informational"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// call sends in as JSON (nil sends nothing) and decodes the answer into out.
// It is not retried: it serves look-ups that a user waits for.
func (s *server) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = encode(in); err != nil {
			return err
		}
	}
	lookup, cancel := context.WithTimeoutCause(ctx, lookupLimit,
		&UnreachableError{Server: s.kind, URL: s.url(), Err: silence(lookupLimit)})
	defer cancel()
	resp, err := s.do(lookup, method, path, body)
	if err != nil {
		return s.callError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s.failed(readFailure(resp))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return s.callError(ctx, &UnreachableError{Server: s.kind, URL: s.url(), Err: err})
	}
	if len(b) > answerLimit {
		return &ProtocolError{Server: s.kind, Reason: "the answer to " + path + " is too long"}
	}
	if err := json.Unmarshal(b, out); err != nil {
		return &ProtocolError{Server: s.kind, Reason: "the answer to " + path + " is not what it should be", Excerpt: s.excerpt(string(b), excerptLimit)}
	}
	return nil
}

// excerpt cuts what the server said to n bytes, without the key.
func (s *server) excerpt(said string, n int) string {
	return excerpt(withhold(said, s.opts.APIKey, nil), n)
}

// callError prefers the caller's own end of a call to what it looks like.
func (s *server) callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
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

// complete adds to a NotFoundError which models there are.
func (s *server) complete(ctx context.Context, err error) error {
	var nf *NotFoundError
	if s.list == nil || !errors.As(err, &nf) || nf.Available != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	listed, failed := s.list(ctx)
	if failed != nil {
		return err // the first error is the one to tell
	}
	nf.Available = []string{}
	for _, l := range listed {
		nf.Available = append(nf.Available, l.Name)
	}
	return err
}

// A failure is an answer with a status other than 200, or an error frame.
type failure struct {
	Status     int
	Message    string
	Type       string // llama-server and OpenAI name the kind of error
	Prompt     Count  // tokens, where an overflow says so
	Context    Count
	RetryAfter time.Duration // negative where not given
}

// readFailure reads the body of a failed request.
func readFailure(resp *http.Response) failure {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	f := failure{Message: strings.TrimSpace(string(b))}
	if parsed, ok := parseFailure(b); ok {
		f = parsed
	}
	f.Status = resp.StatusCode
	f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	return f
}

// parseFailure reads the JSON shapes in which servers report errors:
// {"error": "…"}, {"error": {"message": …}}, {"message": …}, {"detail": "…"}.
// It reports false where b is none of them.
func parseFailure(b []byte) (failure, bool) {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Detail  json.RawMessage `json:"detail"`
		Object  string          `json:"object"`
	}
	if json.Unmarshal(b, &outer) != nil {
		return failure{}, false
	}
	f := failure{RetryAfter: -1}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		NPrompt *int            `json:"n_prompt_tokens"`
		NCtx    *int            `json:"n_ctx"`
	}
	switch {
	case len(outer.Error) > 0 && string(outer.Error) != "null":
		if json.Unmarshal(outer.Error, &f.Message) == nil {
			return f, true
		}
		if json.Unmarshal(outer.Error, &inner) != nil {
			return failure{}, false
		}
		f.Message, f.Type = inner.Message, inner.Type
		f.Status, _ = strconv.Atoi(string(inner.Code))
		if inner.NPrompt != nil {
			f.Prompt = Known(*inner.NPrompt)
		}
		if inner.NCtx != nil {
			f.Context = Known(*inner.NCtx)
		}
		return f, true
	case outer.Object == "error":
		f.Message, f.Type = outer.Message, outer.Type
		return f, true
	case len(outer.Detail) > 0 && string(outer.Detail) != "null":
		// A list of details quotes the request; only a plain string is kept.
		if json.Unmarshal(outer.Detail, &f.Message) != nil {
			f.Message = "the request was rejected"
		}
		return f, true
	}
	return failure{}, false
}

// retryAfter reads the header of that name: seconds or a date. Negative means
// that it is missing.
func retryAfter(v string) time.Duration {
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return time.Duration(min(n, 24*3600)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return -1
}

// failed makes the error of a failure.
func (s *server) failed(f failure) error {
	if s.refuse != nil {
		if err := s.refuse(f); err != nil {
			return err
		}
	}
	return &ServerError{Server: s.kind, Status: f.Status, Message: s.excerpt(f.Message, messageLimit)}
}

// withholdFrom removes from an error what it echoes of the secrets.
func (s *server) withholdFrom(err error, prompt []Segment) error {
	var (
		se *ServerError
		pe *ProtocolError
	)
	switch {
	case errors.As(err, &se):
		se.Message = withhold(se.Message, s.opts.APIKey, prompt)
	case errors.As(err, &pe):
		pe.Excerpt = withhold(pe.Excerpt, s.opts.APIKey, prompt)
	}
	return err
}

// temporary reports whether err may go away when the request is sent again:
// connections refused or lost, too many requests, gateways. Unknown hosts, bad
// ports and certificates stay as they are.
func temporary(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary
	}
	var un *UnreachableError
	if errors.As(err, &un) {
		var (
			op   *net.OpError
			port *net.AddrError
		)
		return errors.As(un.Err, &op) && !errors.As(un.Err, &port) || errors.Is(un.Err, io.EOF) || errors.Is(un.Err, io.ErrUnexpectedEOF)
	}
	var se *ServerError
	if errors.As(err, &se) {
		switch se.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return false
}
