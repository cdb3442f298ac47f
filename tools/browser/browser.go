// Package browser renders pages in a headless Chromium: what a page's scripts
// make of it, as HTML.
//
// The browser is a program of the machine. It is started for one page and ends
// with it, however that goes. All it asks of the network goes through a proxy
// of our own, which connects to no address that tools/fetch would not connect
// to. It has a profile of its own that is deleted, no cookies, nothing of the
// environment, and is never driven: nobody clicks or types.
package browser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"stopgap/tools/fetch"
)

// The bounds of one page.
const (
	DefaultTimeout = 45 * time.Second
	// maxHTML is how long a rendered page may be, in bytes.
	maxHTML = 16 << 20
	// settle is how long the scripts of a page may go on, in the page's own
	// time, which passes as fast as there is nothing to wait for.
	settle = 5 * time.Second
)

// ErrNone says that there is no Chromium on this machine.
var ErrNone = errors.New("there is no Chromium or Chrome on this machine")

// programs are what Chromium is called, here and there.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
	`C:\Program Files\Google\Chrome\Application\chrome.exe`, `C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe`,
}

// Find gives the path of the machine's Chromium, or ErrNone.
func Find() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// A Browser renders pages, one at a time. It is safe for concurrent use.
type Browser struct {
	// Path is the program; empty means what Find finds.
	Path string
	// Dialer makes the connections; nil means one that lists no host.
	Dialer *fetch.Dialer
	// Timeout is for one page; zero means DefaultTimeout.
	Timeout time.Duration

	busy chan struct{} // holds one while a page is rendered; made by New
}

// New makes a browser. Nothing is started.
func New(path string, dialer *fetch.Dialer) *Browser {
	if dialer == nil {
		dialer = &fetch.Dialer{}
	}
	return &Browser{Path: path, Dialer: dialer, busy: make(chan struct{}, 1)}
}

// Render gives a page as its scripts have made it. The error is ErrNone, a
// *fetch.RefusedError, what kept the page from being reached, or says how the
// browser failed. No process is left.
func (b *Browser) Render(ctx context.Context, address string) ([]byte, error) {
	u, err := fetch.Parse(address)
	if err != nil {
		return nil, err
	}
	path := b.Path
	if path == "" {
		if path, err = Find(); err != nil {
			return nil, err
		}
	}
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	limit := cmp.Or(b.Timeout, DefaultTimeout)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := startProxy(limited, b.Dialer, u)
	if err != nil {
		return nil, err
	}
	defer p.close()
	out, err := run(limited, path, p.address(), u.String())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case p.failure() != nil: // what the browser shows then is a page of its own
		return nil, p.failure()
	case limited.Err() != nil:
		return nil, &fetch.LimitError{Host: u.Host, What: fmt.Sprintf("the browser took longer than %s", limit)}
	}
	return out, err
}

// run starts the browser for one page, and sees to its end.
func run(ctx context.Context, path, proxy, address string) ([]byte, error) {
	profile, err := os.MkdirTemp("", "stopgap-browser-")
	if err != nil {
		return nil, err
	}
	defer remove(profile)
	cmd := exec.CommandContext(ctx, path, arguments(profile, proxy, address)...)
	cmd.Env = environment(profile)
	cmd.Dir = profile
	var said tail
	out := &limited{most: maxHTML}
	cmd.Stdout, cmd.Stderr = out, &said
	cmd.WaitDelay = time.Second
	// The kernel ends the browser with the thread that started it, so this one
	// has to stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ownGroup(cmd)
	err = cmd.Run()
	endGroup(cmd)
	switch {
	case out.over:
		return nil, fmt.Errorf("the rendered page is larger than %d MiB", maxHTML>>20)
	case err != nil:
		return nil, fmt.Errorf("%s failed: %w%s", filepath.Base(path), err, said.last())
	case len(bytes.TrimSpace(out.b.Bytes())) == 0:
		return nil, fmt.Errorf("%s rendered nothing%s", filepath.Base(path), said.last())
	}
	return out.b.Bytes(), nil
}

// arguments are those of the browser. Everything that would speak to somebody
// of its own accord is off, and all that is left goes through the proxy.
func arguments(profile, proxy, address string) []string {
	list := []string{
		"--headless=new", "--dump-dom", fmt.Sprintf("--virtual-time-budget=%d", settle.Milliseconds()),
		"--user-data-dir=" + profile, "--proxy-server=http://" + proxy, "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--disable-domain-reliability", "--disable-breakpad", "--disable-crash-reporter", "--no-pings",
		"--metrics-recording-only", "--mute-audio", "--disable-gpu", "--disable-dev-shm-usage", "--password-store=basic", "--use-mock-keychain", "--incognito",
		"--blink-settings=imagesEnabled=false", "--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication,NetworkTimeServiceQuerying",
	}
	if os.Geteuid() == 0 { // it refuses to set up its sandbox for root
		list = append(list, "--no-sandbox")
	}
	return append(list, address)
}

// environment is all that the browser gets of it.
func environment(profile string) []string {
	env := []string{"HOME=" + profile, "TMPDIR=" + profile, "XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile}
	for _, name := range []string{"PATH", "LANG", "SystemRoot", "ProgramFiles", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// remove deletes a profile. A process that has just been ended may still write
// into it.
func remove(profile string) {
	for range 20 {
		if os.RemoveAll(profile) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A limited buffer takes so many bytes and refuses more, which ends the writer.
type limited struct {
	b    bytes.Buffer
	most int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > l.most {
		l.over = true
		return 0, errors.New("too long")
	}
	return l.b.Write(p)
}

// A tail keeps the end of what the browser complains of.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-2048):]
	return len(p), nil
}

// last is the last line, for an error.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(t.b), "")), "\n")
	line := lines[len(lines)-1]
	if line == "" {
		return ""
	}
	return ": " + line[:min(len(line), 200)]
}
