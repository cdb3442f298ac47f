package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// ServeOptions bound what a server of a corpus does. Zero values mean the
// defaults. Whatever they say, an answer has at most 32 768 documents.
type ServeOptions struct {
	MaxBody    int64         // bytes of a request; 8 MiB
	MaxQueries int           // of a request, and addresses; 4096, which is a batch of a training
	MaxTopK    int           // documents for a query; 100
	Timeout    time.Duration // for a request, the wait for its turn included, and for its answer; a minute
	Parallel   int           // requests that search at once; 4
	// Hosts are the names that a request may give in its Host header beside
	// loopback ones. Empty means any: then the listener is for other machines.
	// It keeps a page in the user's browser from asking under a name of its own.
	Hosts []string
}

func (o *ServeOptions) defaults() {
	o.MaxBody = orDefault(o.MaxBody, 8<<20)
	o.MaxQueries = orDefault(o.MaxQueries, 4096)
	o.MaxTopK = orDefault(o.MaxTopK, 100)
	o.Timeout = orDefault(o.Timeout, time.Minute)
	o.Parallel = orDefault(o.Parallel, 4)
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// A handler answers over HTTP.
type handler struct {
	index *Index
	opts  ServeOptions
	turns chan struct{}
}

// Handler serves the corpus to other programs, as Search-R1 (POST /retrieve) and
// ASearcher (POST /access) ask for it. GET / tells what is there. Requests are
// JSON; an error is an HTTP status and {"error": "…"}.
func (x *Index) Handler(opts ServeOptions) http.Handler {
	opts.defaults()
	h := &handler{x, opts, make(chan struct{}, opts.Parallel)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /retrieve", answered(h, h.retrieve))
	mux.HandleFunc("POST /access", answered(h, h.access))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !h.allowed(r.Host) {
			fail(w, http.StatusForbidden, errHost)
			return
		}
		reply(w, http.StatusOK, map[string]any{
			"server": "stopgap serve-corpus", "documents": x.stats.Documents, "passages": x.stats.Passages,
			"routes": []string{"POST /retrieve", "POST /access"},
		})
	})
	return mux
}

// maxDocuments is how many documents an answer has in all: they lie in memory.
const maxDocuments = 1 << 15

// errHost answers a request that was made under a foreign name.
var errHost = errors.New("this server answers under loopback addresses only")

// errCrowded answers a request that waited too long for its turn.
var errCrowded = errors.New("too many requests at once; try again")

// A wrongRequest is an error of whoever asked.
type wrongRequest struct{ error }

// answered turns a function over JSON into one over HTTP, with all bounds.
func answered[In, Out any](h *handler, do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.allowed(r.Host) {
			fail(w, http.StatusForbidden, errHost)
			return
		}
		// A page in a browser may send anything but this without being asked first.
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			fail(w, http.StatusUnsupportedMediaType, errors.New("the body must be JSON, and the header Content-Type: application/json say so"))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			fail(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the request is longer than %d bytes", h.opts.MaxBody))
			return
		}
		var in In
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil {
			fail(w, http.StatusBadRequest, fmt.Errorf("the body is not the JSON that is wanted: %w", err))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), h.opts.Timeout)
		defer cancel()
		out, err := inTurn(ctx, h, in, do)
		// Who does not read its answer is cut off.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.opts.Timeout))
		var wrong wrongRequest
		switch {
		case errors.Is(err, errCrowded):
			fail(w, http.StatusServiceUnavailable, err)
		case errors.As(err, &wrong):
			fail(w, http.StatusUnprocessableEntity, err)
		case errors.Is(err, context.DeadlineExceeded):
			fail(w, http.StatusServiceUnavailable, fmt.Errorf("the search took longer than %v", h.opts.Timeout))
		case err != nil:
			fail(w, http.StatusInternalServerError, err)
		default:
			reply(w, http.StatusOK, out)
		}
	}
}

// inTurn does what a request asks for when it has its turn. The turn ends before
// the answer is sent: who reads it slowly holds up nobody.
func inTurn[In, Out any](ctx context.Context, h *handler, in In, do func(context.Context, In) (Out, error)) (out Out, err error) {
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
		return do(ctx, in)
	case <-ctx.Done():
		return out, errCrowded
	}
}

// allowed reports whether a request was made under a name that is ours.
func (h *handler) allowed(host string) bool {
	if len(h.opts.Hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	for _, name := range h.opts.Hosts {
		if strings.EqualFold(name, host) {
			return true
		}
	}
	return false
}

func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // whoever asked is gone then
}

// A retrieved answer is a retrieveAnswer as it is written.
type retrieved struct {
	Result [][]any `json:"result"` // of wireDocument, or of scored
}

type scored struct {
	Document wireDocument `json:"document"`
	Score    float64      `json:"score"`
}

// retrieve answers /retrieve.
func (h *handler) retrieve(ctx context.Context, in retrieveRequest) (retrieved, error) {
	k := defaultTopK
	if in.TopK != nil && *in.TopK != 0 {
		k = *in.TopK
	}
	switch {
	case len(in.Queries) == 0:
		return retrieved{}, wrongRequest{errors.New(`"queries" is empty: it is a list of strings`)}
	case len(in.Queries) > h.opts.MaxQueries:
		return retrieved{}, wrongRequest{fmt.Errorf("%d queries are more than %d", len(in.Queries), h.opts.MaxQueries)}
	case k < 1 || k > h.opts.MaxTopK:
		return retrieved{}, wrongRequest{fmt.Errorf(`"topk" is from 1 to %d, not %d`, h.opts.MaxTopK, k)}
	}
	if n := len(in.Queries) * k; n > maxDocuments {
		return retrieved{}, wrongRequest{fmt.Errorf("%d queries for %d documents each are more than %d documents; ask in parts", len(in.Queries), k, maxDocuments)}
	}
	found, err := h.index.Search(ctx, in.Queries, k)
	if err != nil {
		return retrieved{}, err
	}
	out := retrieved{Result: make([][]any, len(found))}
	for i, f := range found {
		out.Result[i] = make([]any, len(f.Hits))
		for j, hit := range f.Hits {
			d := onWire(hit.ID, hit.Title, hit.Text)
			out.Result[i][j] = d
			if in.ReturnScores {
				out.Result[i][j] = scored{d, hit.Score}
			}
		}
	}
	return out, nil
}

// access answers /access.
func (h *handler) access(ctx context.Context, in accessRequest) (accessAnswer, error) {
	if n := len(in.URLs); n == 0 || n > h.opts.MaxTopK {
		return accessAnswer{}, wrongRequest{fmt.Errorf(`"urls" is a list of 1 to %d ids or addresses, not of %d`, h.opts.MaxTopK, n)}
	}
	out := accessAnswer{Result: make([]*wireDocument, len(in.URLs))}
	for i, id := range in.URLs {
		d, err := h.index.Read(ctx, id)
		if _, unknown := errors.AsType[*NotFoundError](err); unknown {
			continue
		}
		if err != nil {
			return accessAnswer{}, err
		}
		w := onWire(d.ID, d.Title, d.Text)
		out.Result[i] = &w
	}
	return out, nil
}
