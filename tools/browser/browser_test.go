package browser

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stopgap/tools/fetch"
)

// chromium is the machine's, or the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		if os.Getenv("STOPGAP_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v: \"make chromium\" installs it", err)
	}
	return path
}

// site is a server that a browser may reach, and the browser.
func site(t *testing.T, h http.HandlerFunc) (*Browser, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	b := New(chromium(t), &fetch.Dialer{Allow: []string{strings.TrimPrefix(s.URL, "http://")}})
	b.Timeout = 5 * time.Minute // a machine under load is no failure
	return b, s.URL
}

// leftovers are the processes and profiles of browsers that are still there.
func leftovers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "stopgap-browser-*"))
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(line), "stopgap-browser-") {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func noneLeft(t *testing.T) {
	t.Helper()
	for range 100 { // the kernel takes a moment to clear up
		if len(leftovers(t)) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left behind: %q", leftovers(t))
}

func TestRender(t *testing.T) {
	b, address := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Header.Get("Cookie") != "" || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("headers %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<p id=p>before</p><script>setTimeout(() => { p.textContent = "written by a script, " + (1 + 1) }, 1000)</script>`)
	})
	for range 2 { // nothing stays of the first time
		html, err := b.Render(t.Context(), address+"/")
		if err != nil || !strings.Contains(string(html), `<p id="p">written by a script, 2</p>`) {
			t.Fatalf("%s, %v", html, err)
		}
	}
	noneLeft(t)
}

// An address that the browser spells otherwise is refused like any other, and
// what the browser shows then is no page.
func TestRefusalOfOtherSpellings(t *testing.T) {
	b := New(chromium(t), nil)
	for _, address := range []string{"http://LocalHost:80/a#b", "http://LOCALHOST:81?q=a b", "https://LocalHost:443/"} {
		html, err := b.Render(t.Context(), address)
		var refused *fetch.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %.200s, %v", address, html, err)
		}
	}
}

// A page that tries to reach other addresses of this machine reaches none.
func TestPageReachesNothingElse(t *testing.T) {
	var caught atomic.Int64
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	trap := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		fmt.Fprint(w, "secret")
	}))
	_ = trap.Listener.Close()
	trap.Listener = listener
	trap.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			caught.Add(1)
		}
	}
	trap.Start()
	t.Cleanup(trap.Close)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	b, address := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:"+port+"/", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(attempts, "PORT", port))
	})
	html, err := b.Render(t.Context(), address+"/")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(html); !strings.Contains(text, "done: kept out") || strings.Contains(text, "secret") {
		t.Errorf("the page became %s", html)
	}
	if n := caught.Load(); n != 0 {
		t.Errorf("%d connections reached the listener", n)
	}
	// The page itself may not be there either.
	var refused *fetch.RefusedError
	if _, err := b.Render(t.Context(), "https://127.0.0.1:"+port); !errors.As(err, &refused) {
		t.Errorf("https: %v", err)
	}
	if html, err := b.Render(t.Context(), address+"/away"); strings.Contains(string(html), "secret") {
		t.Errorf("a redirect gave %s, %v", html, err)
	}
	for _, page := range []string{"file:///etc/passwd", "--no-sandbox", "chrome://version", "http://2130706433/"} {
		if _, err := b.Render(t.Context(), page); !errors.As(err, &refused) {
			t.Errorf("%s: %v", page, err)
		}
	}
	if n := caught.Load(); n != 0 {
		t.Errorf("%d connections reached the listener", n)
	}
	noneLeft(t)
}

const attempts = `<link rel=dns-prefetch href=//internal.test><link rel=preconnect href=http://127.0.0.1:PORT><link rel=stylesheet href=http://127.0.0.1:PORT/x.css>
<iframe src=http://127.0.0.1:PORT/></iframe><iframe src=http://[::1]:PORT/></iframe><iframe src=/away></iframe><script src=http://localhost:PORT/x.js></script>
<p id=p>nothing yet</p><script>
const tries = ["http://127.0.0.1:PORT/", "http://localhost:PORT/", "http://0.0.0.0:PORT/", "http://[::1]:PORT/", "http://2130706433:PORT/", "http://0x7f.1:PORT/", "https://127.0.0.1:PORT/", "/away"];
new WebSocket("ws://127.0.0.1:PORT/"); new EventSource("http://127.0.0.1:PORT/"); navigator.sendBeacon("http://127.0.0.1:PORT/", "x");
try { new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:PORT"}]}).createDataChannel("x") } catch {}
Promise.all(tries.map(u => fetch(u).then(r => r.ok ? r.text() : "kept out", () => "kept out"))).then(all => { p.textContent = "done: " + all.join(", ") });
</script>`

// However a page ends, the browser ends with it.
func TestBrowserAlwaysEnds(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	asked := make(chan struct{}, 8)
	b, address := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/favicon.ico" {
			return
		}
		asked <- struct{}{}
		if r.URL.Path == "/large" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<p id=p></p><script>p.dataset.long = 'x'.repeat(%d)</script>", maxHTML+1)
			return
		}
		<-hold
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := b.Render(ctx, address+"/never"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	noneLeft(t)
	if _, err := b.Render(t.Context(), address+"/large"); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("large: %v", err)
	}
	noneLeft(t)
	b.Path = filepath.Join(t.TempDir(), "none")
	if _, err := b.Render(t.Context(), address); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("no program: %v", err)
	}
	noneLeft(t)
}

// The proxy passes https through as it is, and counts it.
func TestTunnel(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			_, _ = io.Copy(w, endless{})
			return
		}
		fmt.Fprint(w, "over TLS")
	}))
	defer s.Close()
	page, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range [][]string{{page.Host}, nil} {
		p, err := startProxy(t.Context(), &fetch.Dialer{Allow: allow}, page)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		through := &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address()}), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the test's own certificate
		}}
		res, err := through.Get(s.URL)
		var refused *fetch.RefusedError
		if allow == nil {
			if err == nil || !errors.As(p.failure(), &refused) {
				t.Errorf("not listed: %v, %v", err, p.failure())
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.Body.Close(); string(body) != "over TLS" || p.failure() != nil {
			t.Errorf("%s, %v", body, p.failure())
		}
		res, err = through.Get(s.URL + "/endless")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		if res.Body.Close(); err == nil || n > maxLoad {
			t.Errorf("%d bytes came through: %v", n, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestEnvironmentOfTheBrowser(t *testing.T) {
	t.Setenv("SECRET_KEY", "hidden")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	for _, v := range environment("/profile") {
		name, _, _ := strings.Cut(v, "=")
		if name == "SECRET_KEY" || strings.Contains(strings.ToUpper(name), "PROXY") {
			t.Errorf("the browser gets %s", name)
		}
	}
}
