// Package fetch gets pages from the web without letting them reach anything
// else: what a model asks for is an address that somebody else may have chosen.
//
// The address of every connection is checked when it is made, so that
// redirects, names that change what they stand for, and clever spellings end
// at the same wall. Sizes are counted as they are read, before and after
// decompression. It never runs what it gets, never keeps cookies, and uses no
// proxy of the environment.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bounds of one fetch.
const (
	DefaultTimeout = 20 * time.Second // for all of it, redirects and waiting included
	MaxRedirects   = 5
	MaxBytes       = 10 << 20 // of a body, as sent and as decompressed
	MaxRatio       = 100      // of decompression
	maxURL         = 8 << 10
	maxHeader      = 256 << 10
)

// DefaultUserAgent says who asks.
const DefaultUserAgent = "stopgap/1 (a person's research tool; one page at a time)"

// Options are what a Client is made with. The zero value has useful defaults.
type Options struct {
	// Allow lists hosts that may have any address, such as "localhost",
	// "10.0.0.7", "wiki.corp" or, for one port alone, "localhost:8080". All
	// others must have an address of the public Internet.
	Allow []string
	// UserAgent is sent with each request; empty means DefaultUserAgent.
	UserAgent string
	// Timeout is for one fetch in all; zero means DefaultTimeout.
	Timeout time.Duration
	// Pace is the least time between two requests to one host; zero means
	// DefaultPace, a negative number none.
	Pace time.Duration
	// Cache keeps pages; nil means none.
	Cache *Cache
	// Resolver finds addresses; nil means net.DefaultResolver.
	Resolver *net.Resolver
}

// A Client gets pages. It is safe for concurrent use.
type Client struct {
	options Options
	dialer  *Dialer
	pages   *http.Client
}

// New makes a client.
func New(o Options) *Client {
	c := &Client{options: o, dialer: &Dialer{Allow: o.Allow, Resolver: o.Resolver}}
	c.pages = &http.Client{
		Transport: &paced{next: c.dialer.Transport(), pace: newPace(o.Pace)},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > MaxRedirects {
				return &RefusedError{Host: next.URL.Host, Reason: fmt.Sprintf("there are more than %d redirects", MaxRedirects)}
			}
			next.Header.Del("Referer") // where a person comes from is nobody's business
			return checkURL(next.URL)
		},
	}
	return c
}

// Dialer gives what the client connects with.
func (c *Client) Dialer() *Dialer { return c.dialer }

// UserAgent is what the client calls itself.
func (c *Client) UserAgent() string { return cmp.Or(c.options.UserAgent, DefaultUserAgent) }

// Send sends a request that a program made, not a model: to the API of a search
// engine. It follows no redirect. Addresses, the pace and the bounds of headers
// are those of pages; the error does not tell the address, which may hold a key.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	if err := checkURL(req.URL); err != nil {
		return nil, err
	}
	res, err := c.pages.Transport.RoundTrip(req)
	if err != nil {
		return nil, bare(err)
	}
	return res, nil
}

// A Page is what an address gave.
type Page struct {
	URL  string // where it was found in the end
	Type string // the media type, as the bytes bear it out, such as "text/html"
	// Charset is the character set that the server tells, in lower case, or "".
	Charset string
	Body    []byte
	Cached  bool // it comes from the cache
}

// Get gets a page. The errors are *RefusedError, *StatusError, *TypeError,
// *LimitError, and others of the network.
func (c *Client) Get(ctx context.Context, address string) (Page, error) {
	u, err := Parse(address)
	if err != nil {
		return Page{}, err
	}
	key := c.key(u)
	if p, ok := c.options.Cache.page(key); ok {
		return p, nil
	}
	limit := cmp.Or(c.options.Timeout, DefaultTimeout)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, keep, err := c.get(limited, u)
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			return Page{}, &LimitError{Host: u.Host, What: fmt.Sprintf("it took longer than %s", limit)}
		}
		return Page{}, bare(err)
	}
	if keep {
		c.options.Cache.keep(key, p)
	}
	return p, nil
}

// key is the name of a page in the cache. What was reached because its host is
// listed is not found by somebody who does not list it.
func (c *Client) key(u *url.URL) string {
	key := *u
	key.Fragment = ""
	return fmt.Sprintf("page %t %s", c.dialer.listed(u.Hostname(), port(u)), key.String())
}

// get gets a page and says whether it may be kept. One that a redirect found on a
// listed host may not: its key says nothing of that host.
func (c *Client) get(ctx context.Context, u *url.URL) (Page, bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Page{}, false, err
	}
	req.Header.Set("User-Agent", c.UserAgent())
	req.Header.Set("Accept", accepted)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := c.pages.Do(req)
	if err != nil {
		return Page{}, false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return Page{}, false, &StatusError{Host: res.Request.URL.Host, Status: res.StatusCode}
	}
	body, err := ReadBody(res, MaxBytes)
	if err != nil {
		return Page{}, false, err
	}
	p := Page{URL: withoutFragment(res.Request.URL), Body: body}
	if p.Type, p.Charset, err = contentType(res.Request.URL.Host, res.Header.Get("Content-Type"), body); err != nil {
		return Page{}, false, err
	}
	at := res.Request.URL
	kept := !strings.Contains(strings.ToLower(res.Header.Get("Cache-Control")), "no-store") && (at.Host == u.Host || !c.dialer.listed(at.Hostname(), port(at)))
	return p, kept, nil
}

func withoutFragment(u *url.URL) string {
	v := *u
	v.Fragment = ""
	return v.String()
}

// ReadBody reads the body of an answer, decompressed, up to so many bytes. More
// of them, or more than MaxRatio for each that was sent, give a *LimitError.
func ReadBody(res *http.Response, most int64) ([]byte, error) {
	host := ""
	if res.Request != nil {
		host = res.Request.URL.Host
	}
	sent := &counter{r: res.Body, left: most}
	plain, err := decompressed(host, sent, res.Header)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(plain, most+1))
	switch {
	case errors.Is(err, errTooMuch) || int64(len(body)) > most:
		return nil, &LimitError{Host: host, What: fmt.Sprintf("it is larger than %d MiB", most>>20)}
	case err != nil:
		return nil, err
	}
	return body, nil
}

// bare is an error without the address around it, which may hold a key.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var refused *RefusedError // the dialer's, in the words of the net package
	if errors.As(err, &refused) {
		return refused
	}
	return err
}
