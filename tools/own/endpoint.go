package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgap/tools"
)

// An endpoint is a tool that is an address.
type endpoint struct {
	tool
	method  string
	headers map[string]string
	client  *http.Client
}

func newEndpoint(t tool, lookup func(string) (string, bool)) (tools.Tool, error) {
	d := &t.declaration
	if d.Dir != "" || len(d.Env) > 0 || d.Sandbox != nil {
		return nil, errors.New("dir, env and sandbox are for a command")
	}
	e := &endpoint{tool: t, method: strings.ToUpper(d.Method), headers: map[string]string{}}
	switch e.method {
	case "":
		e.method = http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, fmt.Errorf("%q is no method: there are GET, HEAD, POST, PUT, PATCH and DELETE", d.Method)
	}
	e.needs(tools.Net, e.method != http.MethodGet && e.method != http.MethodHead)
	host, err := url.Parse(d.URL)
	switch {
	case err != nil:
		return nil, errors.New("its url is no address")
	case host.Scheme != "http" && host.Scheme != "https", host.Host == "":
		return nil, errors.New("its url is neither http://… nor https://…")
	case strings.ContainsAny(host.Host, "{}"), host.User != nil:
		return nil, errors.New("the host of its url cannot come from the call, and has no password; headers take those")
	}
	if err := e.checkPlaceholders(d.URL); err != nil {
		return nil, err
	}
	for name, value := range d.Headers {
		if e.headers[name], err = e.expand(value, lookup); err != nil {
			return nil, err
		}
	}
	e.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return e, nil
}

// Run implements tools.Tool.
func (e *endpoint) Run(ctx context.Context, args json.RawMessage) (string, error) {
	req, err := e.request(ctx, args)
	if err != nil {
		return "", err
	}
	res, err := e.client.Do(req)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // the rest is the address
		}
		return "", errors.New(e.hide(err.Error()))
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, mostOutput+1))
	if len(b) > mostOutput {
		return "", fmt.Errorf("it answered with more than %d KiB", mostOutput>>10)
	}
	text := e.hide(words(b, res.Header.Get("Content-Type")))
	switch {
	case err != nil:
		return text, errors.New("its answer broke off")
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return "", fmt.Errorf("it answered %s, which leads elsewhere and is not followed", res.Status)
	case res.StatusCode >= 400:
		return text, fmt.Errorf("it answered %s", res.Status)
	}
	return text, nil
}

// words are an answer where it is text, and else what it is.
func words(b []byte, kind string) string {
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		kind, _, _ = mime.ParseMediaType(kind)
		return fmt.Sprintf("[%d bytes that are no text, %s]", len(b), kind)
	}
	return string(b)
}

// request puts a call into the address and the body. What has no placeholder
// goes into the query, or, with methods that have a body, everything into that.
func (e *endpoint) request(ctx context.Context, args json.RawMessage) (*http.Request, error) {
	given, err := values(args)
	if err != nil {
		return nil, err
	}
	path, query, asked := strings.Cut(e.declaration.URL, "?")
	used := map[string]bool{}
	fill := func(text string, escape func(string) string) string {
		return placeholder.ReplaceAllStringFunc(text, func(m string) string {
			name := strings.Trim(m, "{}")
			used[name] = true
			return escape(given[name])
		})
	}
	path = fill(path, func(value string) string {
		if strings.Trim(value, ".") == "" && len(value) < 3 { // would leave the part of the path, or be none
			err = errors.New("a value for its path is empty or leads out of its place")
		}
		return url.PathEscape(value)
	})
	if err != nil {
		return nil, err
	}
	if asked {
		query = fill(query, url.QueryEscape)
	}
	var body io.Reader
	switch e.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		body = bytes.NewReader(args)
	default:
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !used[name] {
				query = strings.TrimPrefix(query+"&"+url.QueryEscape(name)+"="+url.QueryEscape(given[name]), "&")
			}
		}
	}
	if query != "" {
		path += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, e.method, path, body)
	if err != nil {
		return nil, errors.New("the arguments make no address")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range e.headers {
		req.Header.Set(name, value)
	}
	return req, nil
}
