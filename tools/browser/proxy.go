package browser

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stopgap/tools/fetch"
)

// The bounds of what a page may load.
const (
	maxLoad  = 64 << 20 // bytes in both directions
	maxConns = 64       // connections at once
)

// A proxy makes the connections of one page. It listens on this machine alone,
// and reaches what its dialer reaches.
type proxy struct {
	dialer   *fetch.Dialer
	page     *url.URL
	listener net.Listener
	server   *http.Server
	left     atomic.Int64 // bytes
	slots    chan struct{}
	ctx      context.Context
	cancel   context.CancelFunc

	mu   sync.Mutex
	fail error // why the page itself was not reached
}

// startProxy starts the proxy of a page. It ends with ctx, or by close.
func startProxy(ctx context.Context, dialer *fetch.Dialer, page *url.URL) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{dialer: dialer, page: page, listener: listener, slots: make(chan struct{}, maxConns)}
	p.left.Store(maxLoad)
	p.ctx, p.cancel = context.WithCancel(ctx)
	plain := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.Header.Del("Proxy-Connection") },
		Transport:    &http.Transport{DialContext: p.dial, DisableCompression: true, ResponseHeaderTimeout: 20 * time.Second},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.refuse(w, r, err) },
	}
	p.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.IsAbs() && r.URL.Scheme == "http":
				plain.ServeHTTP(w, r)
			default:
				w.WriteHeader(http.StatusBadRequest)
			}
		}),
	}
	go func() { _ = p.server.Serve(listener) }() // until close
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.cancel()
	_ = p.server.Close()
}

// failure is why the page was not reached, nil where it was.
func (p *proxy) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fail
}

// refuse answers a request that cannot be passed on.
func (p *proxy) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refused *fetch.RefusedError
	if errors.As(err, &refused) {
		err = refused
	}
	if p.asksForPage(r) {
		p.mu.Lock()
		if p.fail == nil && p.ctx.Err() == nil {
			p.fail = err
		}
		p.mu.Unlock()
	}
	w.WriteHeader(http.StatusForbidden)
}

// asksForPage reports whether a request is for the page itself, not for what
// else is on it. Of a tunnel only the host is known. The browser spells a host in
// small letters, without a port that goes without saying, and queries in its own
// way.
func (p *proxy) asksForPage(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return samePlace(r.Host, p.page.Host, "443")
	}
	return samePlace(r.Host, p.page.Host, "80") && cmp.Or(r.URL.Path, "/") == cmp.Or(p.page.Path, "/")
}

// samePlace reports whether two hosts are the same with the port that stands for
// none.
func samePlace(a, b, port string) bool {
	full := func(host string) string {
		if _, _, err := net.SplitHostPort(host); err == nil {
			return host
		}
		return net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	return strings.EqualFold(full(a), full(b))
}

// dial connects, counts what passes, and ends with the proxy.
func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := p.dialer.DialContext(ctx, network, address)
	if err != nil {
		<-p.slots
		return nil, err
	}
	c := &counted{Conn: conn, left: &p.left}
	stop := context.AfterFunc(p.ctx, func() { _ = c.Close() })
	c.closed = func() { stop(); <-p.slots }
	return c, nil
}

// tunnel connects the browser to a server, mostly for https.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	out, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	defer out.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok { // HTTP/1 always is one
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	in, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from) // either end may leave
		done <- struct{}{}
	}
	go pass(out, buffered)
	go pass(in, out)
	select {
	case <-done:
	case <-p.ctx.Done():
	}
}

// A counted connection takes from what a page may load.
type counted struct {
	net.Conn
	left   *atomic.Int64
	once   sync.Once
	closed func()
}

var errLoad = errors.New("the page loads too much")

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.left.Add(-int64(n)) < 0 {
		return 0, errLoad
	}
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	if c.left.Add(-int64(len(b))) < 0 {
		return 0, errLoad
	}
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.closed)
	return err
}
