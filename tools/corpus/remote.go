package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"stopgap/tools"
)

// A RemoteError says that a server of a corpus gave no answer that can be used.
type RemoteError struct {
	URL string // without a password
	Err error
}

func (e *RemoteError) Error() string { return fmt.Sprintf("corpus at %s: %v", e.URL, e.Err) }
func (e *RemoteError) Unwrap() error { return e.Err }

// RemoteOptions say how a server of a corpus is reached.
type RemoteOptions struct {
	Hits int // how many hits the search tool gives; zero means DefaultHits
	// Client sends the requests. Nil means one that follows no redirect and
	// uses no proxy.
	Client *http.Client
}

// Bounds of what a server may send, and how long it may take.
const (
	remoteLimit   = 64 << 20 // bytes
	remoteTimeout = 2 * time.Minute
	// maxSeen is how many documents are kept that /retrieve sent, and
	// maxSeenBytes of how much text: what read gives where a server has no /access.
	maxSeen      = 1000
	maxSeenBytes = 64 << 20
)

// A Remote is a corpus on a server that speaks Search-R1's /retrieve, and perhaps
// ASearcher's /access. It is safe for concurrent use.
type Remote struct {
	base   *url.URL
	client *http.Client
	hits   int

	mu    sync.Mutex
	seen  map[string]Document
	order []string // of seen, the oldest first
	bytes int      // of the texts of seen
}

// OpenRemote reads the address of a server, which may end in /retrieve, and asks
// it one query, so that one that is not there is told at once. A *RemoteError
// says what is wrong.
func OpenRemote(ctx context.Context, address string, o RemoteOptions) (*Remote, error) {
	u, err := parseAddress(address)
	if err != nil {
		return nil, &RemoteError{URL: "the address", Err: err}
	}
	u.Path = strings.TrimSuffix(u.Path, "/retrieve")
	r := &Remote{base: u, client: o.Client, hits: o.Hits, seen: make(map[string]Document)}
	if r.client == nil {
		r.client = plainClient()
	}
	if _, err := r.Search(ctx, []string{"test"}, 1); err != nil {
		return nil, err
	}
	return r, nil
}

// Tools gives search and read, as an Index gives them.
func (r *Remote) Tools() []tools.Tool { return toolsOf(r, r.hits) }

// Close lets the connections go.
func (r *Remote) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// Search asks the server, and cuts the snippets out of what it sends.
func (r *Remote) Search(ctx context.Context, queries []string, k int) ([]Found, error) {
	list := make([]Found, len(queries))
	var ask []string
	var of []int
	for i, q := range queries {
		list[i] = Found{Query: q, Terms: len(queryTerms(q))}
		if list[i].Terms > 0 && k > 0 {
			ask, of = append(ask, q[:floor(q, maxQueryBytes)]), append(of, i)
		}
	}
	if len(ask) == 0 {
		return list, nil
	}
	var answer retrieveAnswer
	status, err := r.call(ctx, "/retrieve", retrieveRequest{ask, &k, true}, &answer)
	if err == nil && status == http.StatusNotFound {
		err = r.fault(errors.New("it has no /retrieve"))
	}
	if err == nil && len(answer.Result) != len(ask) {
		err = r.fault(fmt.Errorf("%d queries got %d results", len(ask), len(answer.Result)))
	}
	if err != nil {
		return nil, err
	}
	for i, documents := range answer.Result {
		f := &list[of[i]]
		if f.Hits, err = r.read(documents, queryTerms(f.Query), k); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// read makes hits of the documents for one query, with or without scores.
func (r *Remote) read(documents []json.RawMessage, query []term, k int) ([]Hit, error) {
	var hits []Hit
	for i, raw := range documents[:min(k, len(documents))] {
		var scored wireScored
		if err := json.Unmarshal(raw, &scored); err == nil && len(scored.Document) > 0 {
			raw = scored.Document
		}
		var w wireDocument
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, r.fault(errors.New("a document of its answer is none"))
		}
		d := w.document(fmt.Sprint(i + 1))
		if !validID(d.ID) || squeeze(d.Text) == "" {
			continue // nothing that could be shown or read
		}
		r.keep(d)
		hits = append(hits, Hit{ID: d.ID, Document: d.ID, Title: d.Title, Snippet: snippet(d.Text, 0, query), Text: d.Text, Score: scored.Score})
	}
	return hits, nil
}

// Read gives a document by its id or address: from /access, or else what a search
// has seen of it.
func (r *Remote) Read(ctx context.Context, id string) (Document, error) {
	bare := bareID(id)
	if bare == "" {
		return Document{}, &NotFoundError{ID: id}
	}
	seen, known := r.recall(bare)
	var answer accessAnswer
	status, err := r.call(ctx, "/access", accessRequest{[]string{bare}}, &answer)
	switch {
	case err != nil && !known:
		return Document{}, err
	case err == nil && status == http.StatusOK && len(answer.Result) == 1 && answer.Result[0] != nil:
		if d := answer.Result[0].document(bare); squeeze(d.Text) != "" {
			return d, nil
		}
	case ctx.Err() != nil:
		return Document{}, ctx.Err()
	}
	if !known {
		return Document{}, &NotFoundError{ID: bare[:floor(bare, maxIDBytes)]}
	}
	return seen, nil
}

// keep remembers a document.
func (r *Remote) keep(d Document) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.seen[d.ID]
	if !known {
		r.order = append(r.order, d.ID)
	}
	r.seen[d.ID] = d
	for r.bytes += len(d.Text) - len(old.Text); len(r.order) > maxSeen || r.bytes > maxSeenBytes; r.order = r.order[1:] {
		r.bytes -= len(r.seen[r.order[0]].Text)
		delete(r.seen, r.order[0])
	}
}

func (r *Remote) recall(id string) (Document, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.seen[id]
	return d, ok
}

// call sends one request. A route that is not there is no error but its status.
func (r *Remote) call(ctx context.Context, route string, in, out any) (int, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	answer, status, err := post(limited, r.client, r.base.JoinPath(route), "", body, remoteLimit)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, r.fault(err)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return http.StatusNotFound, nil
	case status != http.StatusOK:
		return status, r.fault(saidStatus(status, answer, ""))
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return status, r.fault(fmt.Errorf("its answer to %s is not what it should be", route))
	}
	return status, nil
}

func (r *Remote) fault(err error) error { return &RemoteError{URL: r.base.Redacted(), Err: err} }
