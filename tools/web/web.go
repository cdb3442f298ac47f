// Package web searches the web and reads its pages.
//
// web_search and search ask a search engine, google_scholar asks for papers,
// visit reads pages against a goal, and read_url gives one whole. All of them
// reach the network through tools/fetch alone. They never log in, never send
// more than a query, and keep what they got for an hour.
package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/browser"
	"stopgap/tools/document"
	"stopgap/tools/fetch"
	"stopgap/tools/goal"
)

// The search engines, as they are called in Options and by models.
const (
	Tavily  = "tavily"
	Brave   = "brave"
	Serper  = "serper"
	SearXNG = "searxng"
	Bing    = "bing"
)

// What only google_scholar asks, beside Serper.
const (
	OpenAlex = "openalex"
	ArXiv    = "arxiv"
)

// order is the engines in the order in which one is chosen: what somebody has
// set up comes before what is there anyway.
var order = []string{SearXNG, Tavily, Brave, Serper, Bing}

// Engines are the names that Options.Engine takes.
func Engines() []string { return slices.Clone(order) }

// addresses are where the engines answer, unless Options says something else.
var addresses = map[string]string{
	Tavily: "https://api.tavily.com", Brave: "https://api.search.brave.com", Serper: "https://google.serper.dev",
	Bing: "https://www.bing.com", OpenAlex: "https://api.openalex.org", ArXiv: "https://export.arxiv.org",
}

// MaxResults is how many results a query gives at most.
const MaxResults = 10

// Options are what the tools are made with.
type Options struct {
	// Engine is asked where the model names none. Empty means the first that
	// is set up, see Ready.
	Engine string
	// Keys are the engines' keys, by name.
	Keys map[string]string
	// Addresses are where engines answer, by name; SearXNG needs one, the
	// others have their own. Their hosts need not be listed in Fetch.Allow.
	Addresses map[string]string
	// Browser is the path of a Chromium, for Bing; empty means the machine's.
	Browser string
	// Fetch is how pages are got, and Cache in it keeps results too.
	Fetch fetch.Options
	// Goal reads pages for visit; its Ask is needed there.
	Goal goal.Reader
	// Document bounds how pages are parsed.
	Document document.Options
	// Pace is the least time between two requests to one engine; zero means a
	// second, a negative number none. Patience is the first wait before a
	// request is tried again; zero means a second.
	Pace, Patience time.Duration
}

// ErrNoEngine says that there is nothing to search with.
var ErrNoEngine = errors.New("no search engine is set up: it takes a key of Tavily, Brave or Serper, the address of a SearXNG, or Chromium for Bing")

// Ready lists the engines that can be asked, the preferred one first.
func (o Options) Ready() []string {
	var out []string
	for _, name := range order {
		if o.missing(name) == nil {
			out = append(out, name)
		}
	}
	if i := slices.Index(out, o.Engine); i > 0 {
		out = append([]string{o.Engine}, slices.Delete(out, i, i+1)...)
	}
	return out
}

// missing says what an engine lacks, nil for nothing.
func (o Options) missing(name string) error {
	switch {
	case name == Bing && o.Browser == "":
		_, err := browser.Find()
		return err
	case name == Bing:
		return nil
	case name == SearXNG && o.Addresses[SearXNG] == "":
		return errors.New("the address of a SearXNG is not told")
	case name != SearXNG && o.Keys[name] == "":
		return fmt.Errorf("there is no key of %s", name)
	}
	return nil
}

// Tools are the tools of one set of options.
type Tools struct {
	options Options
	ready   []string
	pages   *fetch.Client
	engines map[string]engine
	scholar []engine
}

// New makes the tools. Nothing is started or asked. An engine that is named
// and cannot be asked, or an address that is none, is an error; no engine at
// all is one when something is searched.
func New(o Options) (*Tools, error) {
	t := &Tools{options: o, ready: o.Ready(), pages: fetch.New(o.Fetch), engines: map[string]engine{}}
	if o.Engine != "" {
		if !slices.Contains(order, o.Engine) {
			return nil, fmt.Errorf("there is no search engine %q; there are %s", o.Engine, strings.Join(order, ", "))
		}
		if err := o.missing(o.Engine); err != nil {
			return nil, fmt.Errorf("search engine %s: %w", o.Engine, err)
		}
	}
	for _, name := range t.ready {
		a, err := t.api(name)
		if err != nil {
			return nil, err
		}
		t.engines[name] = makers[name](a)
	}
	return t, t.makeScholar()
}

// makeScholar chooses who knows papers.
func (t *Tools) makeScholar() error {
	names := []string{OpenAlex, ArXiv}
	if t.options.Keys[Serper] != "" {
		names = []string{Serper}
	}
	for _, name := range names {
		a, err := t.api(name)
		if err != nil {
			return err
		}
		t.scholar = append(t.scholar, papers[name](a))
	}
	return nil
}

// api is how an engine is reached. The user has named the host of an address
// of his own, so it may be anywhere.
func (t *Tools) api(name string) (*api, error) {
	o := t.options
	base, err := url.Parse(strings.TrimSuffix(cmp.Or(o.Addresses[name], addresses[name]), "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the address of search engine %s does not begin with http:// or https:// and a host", name)
	}
	f := o.Fetch
	if o.Addresses[name] != "" {
		f.Allow = append(slices.Clone(f.Allow), base.Host)
	}
	if f.Pace = cmp.Or(o.Pace, time.Second); name == ArXiv && f.Pace > 0 {
		f.Pace = 3 * f.Pace // what arXiv asks of programs
	}
	client := fetch.New(f)
	return &api{
		name: name, base: base.String(), key: o.Keys[name], client: client, cache: o.Fetch.Cache,
		patience: cmp.Or(o.Patience, time.Second), browser: browser.New(o.Browser, client.Dialer()),
	}, nil
}

// List gives the tools: web_search, search (the same as Tongyi DeepResearch
// knows it), google_scholar, visit and read_url.
func (t *Tools) List() []tools.Tool {
	return []tools.Tool{webSearch{t}, search{t}, scholar{t}, visit{t}, readURL{t}}
}

// page gets a page and turns it into Markdown.
func (t *Tools) page(ctx context.Context, address string) (document.Document, fetch.Page, error) {
	p, err := t.pages.Get(ctx, address)
	if err != nil {
		return document.Document{}, p, err
	}
	o := t.options.Document
	o.BaseURL, o.ContentType = p.URL, p.Type
	if p.Charset != "" {
		o.ContentType += "; charset=" + p.Charset
	}
	d, err := document.Parse(ctx, fileName(p), bytes.NewReader(p.Body), o)
	return d, p, err
}

// fileName is what a page would be called as a file.
func fileName(p fetch.Page) string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "page"
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if name == "" || p.Type == "text/html" || p.Type == "application/xhtml+xml" {
		name = "page.html"
	}
	return name
}
