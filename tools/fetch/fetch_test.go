package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve gives a client that may talk to a server of the test, and its address.
func serve(t *testing.T, o Options, h http.HandlerFunc) (*Client, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	o.Allow, o.Pace = append(o.Allow, strings.TrimPrefix(s.URL, "http://")), -1
	return New(o), s.URL
}

func zipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGet(t *testing.T) {
	c, url := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != DefaultUserAgent || r.Header.Get("Accept-Encoding") != "gzip" || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("headers %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/page#there", http.StatusMovedPermanently)
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/html; charset=ISO-8859-1")
			_, _ = w.Write(zipped(t, []byte("<p>zipped")))
		default:
			fmt.Fprint(w, "<!doctype html><title>a page</title>")
		}
	})
	for _, tt := range []struct{ path, at, charset, has string }{
		{"/page", "/page", "utf-8", "a page"}, {"/page#part", "/page", "utf-8", "a page"}, {"/moved", "/page", "utf-8", "a page"}, {"/zipped", "/zipped", "iso-8859-1", "<p>zipped"},
	} {
		p, err := c.Get(t.Context(), " "+url+tt.path+"\n")
		if err != nil || p.URL != url+tt.at || p.Type != "text/html" || p.Charset != tt.charset || !strings.Contains(string(p.Body), tt.has) || p.Cached {
			t.Errorf("%s: %+v, %v", tt.path, p, err)
		}
	}
}

// The proxies of the environment are not asked.
func TestNoProxy(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	c := New(Options{Pace: -1})
	c.dialer.connecting = func(string) error { return errStop }
	for _, address := range []string{"http://93.184.215.14/", "https://93.184.215.14/"} {
		if _, err := c.Get(t.Context(), address); !errors.Is(err, errStop) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if c.dialer.Transport().Proxy != nil || asked.Load() != 0 {
		t.Errorf("the proxy was asked %d times", asked.Load())
	}
}

func TestRedirects(t *testing.T) {
	c, url := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/")); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
			return
		}
		fmt.Fprint(w, "the end")
	})
	if p, err := c.Get(t.Context(), url+"/5"); err != nil || string(p.Body) != "the end" {
		t.Errorf("five redirects: %+v, %v", p, err)
	}
	var refused *RefusedError
	if _, err := c.Get(t.Context(), url+"/6"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("six redirects: %v", err)
	}
}

// zeros is a body that is as long as it is asked for.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestLimits(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	bomb := zipped(t, make([]byte, 9<<20)) // about 1000:1, and under the limit of bytes
	text := bytes.Repeat([]byte("words of it\n"), MaxBytes/12+1)[:MaxBytes+1]
	c, url := serve(t, Options{Timeout: 5 * time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/exact":
			_, _ = w.Write(text[:MaxBytes])
		case "/large":
			_, _ = w.Write(text)
		case "/endless":
			_, _ = io.Copy(w, zeros{})
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/twice":
			w.Header().Set("Content-Encoding", "gzip, gzip")
			_, _ = w.Write(zipped(t, bomb))
		case "/brotli":
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte("x"))
		case "/torn":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb[:len(bomb)/2])
		case "/no gzip":
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "plain")
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", maxHeader+1))
		case "/404":
			http.NotFound(w, r)
		case "/slow":
			fmt.Fprint(w, "begun")
			w.(http.Flusher).Flush()
			<-hold
		}
	})
	if p, err := c.Get(t.Context(), url+"/exact"); err != nil || len(p.Body) != MaxBytes {
		t.Errorf("exactly the limit: %d bytes, %v", len(p.Body), err)
	}
	for path, words := range map[string]string{
		"/large": "larger than 10 MiB", "/endless": "larger than 10 MiB", "/bomb": "more than 100 times", "/twice": "encoding that was not asked for",
		"/brotli": "encoding that was not asked for", "/torn": "", "/no gzip": "not gzip", "/headers": "", "/404": "answered 404 Not Found",
	} {
		if p, err := c.Get(t.Context(), url+strings.ReplaceAll(path, " ", "%20")); err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), path) {
			t.Errorf("%s: %d bytes, %v", path, len(p.Body), err)
		}
	}
	c.options.Timeout = 50 * time.Millisecond
	var limit *LimitError
	if _, err := c.Get(t.Context(), url+"/slow"); !errors.As(err, &limit) || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("slow: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, url+"/slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestContentTypes(t *testing.T) {
	html, png := "<!doctype html><p>x", "\x89PNG\r\n\x1a\n0000"
	docx := "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	tests := []struct{ header, body, want string }{
		{"text/html; charset=utf-8", html, "text/html"}, {"TEXT/HTML", html, "text/html"}, {"text/html; charset", html, "text/html"},
		{"", html, "text/html"}, {"application/octet-stream", "%PDF-1.7", "application/pdf"}, {"text/html", "%PDF-1.7", "application/pdf"},
		{"application/pdf", "%PDF-1.7", "application/pdf"}, {"text/plain", "plain", "text/plain"}, {"application/json", `{"a":1}`, "application/json"},
		{"application/atom+xml", "<feed/>", "application/atom+xml"}, {"text/markdown", "# x", "text/markdown"}, {docx, "PK\x03\x04", docx},
		{"text/plain; charset=utf-16le", "a\x00b\x00", "text/plain"}, {"text/html", "", "text/html"},
		{"image/png", png, ""}, {"text/html", png, ""}, {"", png, ""}, {"application/pdf", html, ""}, {docx, html, ""},
		{"application/x-msdownload", "MZ\x90\x00", ""}, {"text/html", "\x7fELF\x02", ""}, {"video/mp4", "text", ""}, {"text/javascript", "x()", ""},
		{"application/gzip", "\x1f\x8b\x08", ""}, {"application/x-sh", "#!/bin/sh", ""},
	}
	for _, tt := range tests {
		got, _, err := contentType("h", tt.header, []byte(tt.body))
		var bad *TypeError
		if got != tt.want || (tt.want == "") != errors.As(err, &bad) {
			t.Errorf("%q with %.12q: %q, %v, want %q", tt.header, tt.body, got, err, tt.want)
		}
	}
}

func TestCache(t *testing.T) {
	var asked atomic.Int64
	cache := &Cache{Dir: filepath.Join(t.TempDir(), "pages"), Bytes: 10_000}
	c, url := serve(t, Options{Cache: cache}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/private" {
			w.Header().Set("Cache-Control", "private, no-store")
		}
		if r.URL.Path == "/404" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL.Path, strings.Repeat("x", 900))
	})
	get := func(path string) Page {
		t.Helper()
		p, err := c.Get(t.Context(), url+path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, again := get("/a"), get("/a#there")
	if first.Cached || !again.Cached || asked.Load() != 1 || !bytes.Equal(first.Body, again.Body) || again.Type != "text/plain" || again.URL != first.URL || again.Charset != "utf-8" {
		t.Errorf("%+v and %+v after %d requests", first, again, asked.Load())
	}
	if get("/private"); get("/private").Cached {
		t.Error("a page that is not to be stored was")
	}
	if _, err := c.Get(t.Context(), url+"/404"); err == nil {
		t.Error("no error")
	}
	// Somebody who does not list the host does not get the page either.
	if p, err := New(Options{Cache: cache, Pace: -1}).Get(t.Context(), url+"/a"); err == nil {
		t.Errorf("%+v", p)
	}
	for i := range 40 {
		get(fmt.Sprintf("/%d", i))
	}
	total := int64(0)
	entries, _ := os.ReadDir(cache.Dir)
	for _, e := range entries {
		info, _ := e.Info()
		total += info.Size()
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", e.Name(), info.Mode())
		}
	}
	if total > 10_000 || total < 5_000 {
		t.Errorf("the cache has %d bytes", total)
	}
	if !get("/39").Cached {
		t.Error("the newest page is not kept")
	}
	// An old file counts no more, nor does one that is damaged or another's.
	old := time.Now().Add(-2 * DefaultCacheAge)
	if err := os.Chtimes(cache.path(c.keyOf(t, url+"/39")), old, old); err != nil {
		t.Fatal(err)
	}
	if get("/39").Cached {
		t.Error("an old page came from the cache")
	}
	if err := os.WriteFile(cache.path(c.keyOf(t, url+"/39")), []byte("{\"key\":\"other\"}\nbody"), 0o600); err != nil {
		t.Fatal(err)
	}
	if get("/39").Cached {
		t.Error("a page of another key came from the cache")
	}
}

func (c *Client) keyOf(t *testing.T, address string) string {
	t.Helper()
	u, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return c.key(u)
}

func TestPaceKeepsRequestsApart(t *testing.T) {
	p := newPace(time.Minute)
	first, second, other := p.turn("a"), p.turn("a"), p.turn("b")
	if second.Sub(first) < time.Minute || other.Sub(first) >= time.Minute {
		t.Errorf("turns at %s, %s and, of another host, %s", first, second, other)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.wait(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for i := range 3 * maxHosts {
		p.next[fmt.Sprint(i)] = time.Now().Add(-time.Hour)
		if p.turn("c"); len(p.next) > maxHosts+3 {
			t.Fatalf("%d hosts are remembered", len(p.next))
		}
	}
}

func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<title>Bridges</title>")
	}))
	defer server.Close()

	_, err := New(Options{}).Get(context.Background(), server.URL)
	var refused *RefusedError
	fmt.Println(errors.As(err, &refused))

	allowed := New(Options{Allow: []string{"127.0.0.1"}})
	page, err := allowed.Get(context.Background(), server.URL)
	fmt.Println(page.Type, string(page.Body), err)
	// Output:
	// true
	// text/html <title>Bridges</title> <nil>
}

// A page behind a redirect to a listed host is not kept for somebody who lists
// only where the redirect begins.
func TestCacheOfRedirects(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "internal") }))
	defer inside.Close()
	door := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer door.Close()
	o := Options{Cache: &Cache{Dir: t.TempDir()}, Pace: -1, Allow: []string{strings.TrimPrefix(door.URL, "http://")}}
	few := New(o)
	o.Allow = append(o.Allow, strings.TrimPrefix(inside.URL, "http://"))
	if p, err := New(o).Get(t.Context(), door.URL); err != nil || string(p.Body) != "internal" {
		t.Fatalf("%+v %v", p, err)
	}
	if p, err := few.Get(t.Context(), door.URL); err == nil {
		t.Errorf("got %q", p.Body)
	}
}
