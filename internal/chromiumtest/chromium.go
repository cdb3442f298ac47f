//go:build unix

// Package chromiumtest opens a page of the project's own in a headless Chromium
// for a test: whether it says anything to the console, asks the network for
// anything, fits its window, and does what a key, a mouse or a finger asks.
package chromiumtest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Tab is a page in a headless Chromium, which is driven through a pipe
// (--remote-debugging-pipe, Chrome's DevTools Protocol). All it asks of the
// network goes to a proxy that counts and answers nothing.
type Tab struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	session string
	id      int
	Said    []string // errors and warnings of the console
	Asked   []string // addresses that were asked for
	mu      sync.Mutex
	proxied []string // hosts that the proxy was asked for
}

// A message of the protocol: an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts the browser on a file, at a width in pixels.
func Open(t *testing.T, file string, width int) *Tab {
	t.Helper()
	path := chromium(t)
	b := &Tab{t: t}
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.proxied = append(b.proxied, r.Host)
		b.mu.Unlock()
		http.Error(w, "nothing is here", http.StatusBadGateway)
	}))
	t.Cleanup(trap.Close)
	profile := t.TempDir()
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + profile, "--proxy-server=" + trap.URL, "--proxy-bypass-list=<-loopback>",
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--disable-domain-reliability", "--disable-breakpad", "--no-pings", "--mute-audio",
		"--disable-gpu", "--disable-dev-shm-usage", "--password-store=basic", "--use-mock-keychain", "--hide-scrollbars",
		"--disable-features=OptimizationHints,MediaRouter,Translate,NetworkTimeServiceQuerying",
	}
	if os.Geteuid() == 0 { // it refuses to set up its sandbox for root
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.Env = []string{"HOME=" + profile, "TMPDIR=" + profile, "XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirIn.Close()
	_ = theirOut.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its whole group
		_ = cmd.Wait()
		_ = ourOut.Close()
		_ = ourIn.Close()
		if t.Failed() && b.session == "" {
			t.Logf("the browser said: %s", said.String())
		}
	})
	if err := ourIn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil && !errors.Is(err, os.ErrNoDeadline) { // a machine under load is no failure
		t.Fatal(err)
	}
	b.in, b.out = ourOut, bufio.NewReader(ourIn)
	b.attach()
	b.Width(width)
	b.call("Page.navigate", map[string]any{"url": "file://" + file})
	b.until("Page.loadEventFired")
	return b
}

// chromium is the machine's, or the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("STOPGAP_REQUIRE_CHROMIUM") != "" {
		t.Fatal("there is no Chromium on this machine")
	}
	t.Skip(`there is no Chromium on this machine: "make chromium" installs it`)
	return ""
}

// attach opens a page and listens to it.
func (b *Tab) attach() {
	b.t.Helper()
	var made struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	b.result(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &made)
	b.result(b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}), &made)
	b.session = made.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil)
	}
}

func (b *Tab) result(m message, v any) {
	b.t.Helper()
	if err := json.Unmarshal(m.Result, v); err != nil {
		b.t.Fatalf("%s: %v", m.Result, err)
	}
}

// call sends a command and waits for its answer.
func (b *Tab) call(method string, params map[string]any) message {
	b.t.Helper()
	b.id++
	sent := map[string]any{"id": b.id, "method": method}
	if params != nil {
		sent["params"] = params
	}
	if b.session != "" {
		sent["sessionId"] = b.session
	}
	body, err := json.Marshal(sent)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(body, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		m := b.next()
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		return m
	}
}

// until waits for an event.
func (b *Tab) until(method string) {
	b.t.Helper()
	for b.next().Method != method {
	}
}

// next reads a message, and remembers what the tests ask for.
func (b *Tab) next() message {
	b.t.Helper()
	line, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser is gone: %v", err)
	}
	var m message
	if err := json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Runtime.exceptionThrown":
		b.Said = append(b.Said, string(m.Params))
	case "Runtime.consoleAPICalled", "Log.entryAdded":
		b.Said = append(b.Said, string(m.Params))
	case "Network.requestWillBeSent":
		var p struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		b.Asked = append(b.Asked, p.Request.URL)
	}
	return m
}

// Width makes the window so many pixels wide.
func (b *Tab) Width(px int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": px, "height": 900, "deviceScaleFactor": 1, "mobile": false})
}

// Media sets what a media query sees: prefers-color-scheme, or the print.
func (b *Tab) Media(kind, scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": kind, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// Run evaluates an expression in the page, and gives its value.
func Run[T any](b *Tab, expression string) T {
	b.t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.result(b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true}), &got)
	if got.Exception != nil {
		b.t.Fatalf("%s: %s", expression, got.Exception)
	}
	var v T
	if len(got.Result.Value) > 0 {
		if err := json.Unmarshal(got.Result.Value, &v); err != nil {
			b.t.Fatalf("%s gave %s: %v", expression, got.Result.Value, err)
		}
	}
	return v
}

// shoot takes a picture of the page, and where STOPGAP_SCREENSHOTS names a
// folder, keeps the first 7000 pixels of it, 1400 in a file.
func (b *Tab) Shoot(name string) {
	b.t.Helper()
	size := Run[[2]float64](b, "[innerWidth, document.documentElement.scrollHeight]")
	dir := os.Getenv("STOPGAP_SCREENSHOTS")
	for i := range 5 {
		y := float64(i) * 1400
		if y >= size[1] || i > 0 && dir == "" {
			return
		}
		var shot struct {
			Data string `json:"data"`
		}
		b.result(b.call("Page.captureScreenshot", map[string]any{
			"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": y, "width": size[0], "height": min(1400, size[1]-y), "scale": 1},
		}), &shot)
		png, err := base64.StdEncoding.DecodeString(shot.Data)
		if err != nil || len(png) < 1000 {
			b.t.Fatalf("a picture of %d bytes, %v", len(png), err)
		}
		if dir == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, i)), png, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// Key presses and lets go of a key.
func (b *Tab) Key(name string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27}
	press := map[string]any{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
	if name == "Enter" {
		press["text"] = "\r"
	}
	b.call("Input.dispatchKeyEvent", press)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": codes[name]})
}

// Quiet fails where the console said something, or a request left.
func (b *Tab) Quiet() {
	b.t.Helper()
	b.call("Runtime.evaluate", map[string]any{"expression": "new Promise(r => setTimeout(r, 300))", "awaitPromise": true})
	for _, said := range b.Said {
		b.t.Errorf("the console said %s", said)
	}
	away := slices.DeleteFunc(slices.Clone(b.Asked), func(u string) bool {
		return strings.HasPrefix(u, "file:///") || strings.HasPrefix(u, "data:") || u == "about:blank"
	})
	if hosts := b.hosts(); len(away) > 0 || len(hosts) > 0 {
		b.t.Errorf("the page asked for %q, the proxy was asked for %q", away, hosts)
	}
}

// hosts are those that the proxy was asked for, without what the browser asks
// of its maker of its own accord.
func (b *Tab) hosts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.proxied), func(host string) bool {
		name, _, _ := strings.Cut(host, ":")
		return strings.HasSuffix(name, ".google.com") || strings.HasSuffix(name, ".googleapis.com") || strings.HasSuffix(name, ".gvt1.com")
	})
}

// Point moves the mouse onto the first element of a CSS selector.
func (b *Tab) Point(selector string) {
	b.t.Helper()
	x, y := b.middle(selector)
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y})
}

// Tap touches the first element of a CSS selector with a finger.
func (b *Tab) Tap(selector string) {
	b.t.Helper()
	b.call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true})
	x, y := b.middle(selector)
	b.call("Input.dispatchTouchEvent", map[string]any{"type": "touchStart", "touchPoints": []map[string]any{{"x": x, "y": y}}})
	b.call("Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []map[string]any{}})
}

// middle scrolls to an element and gives its middle.
func (b *Tab) middle(selector string) (x, y float64) {
	b.t.Helper()
	at := Run[[]float64](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "nearest", behavior: "instant"});
		const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`, selector))
	return at[0], at[1]
}

// Wait lets the page do what it has put off.
func (b *Tab) Wait(d time.Duration) {
	b.t.Helper()
	b.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf("new Promise(r => setTimeout(r, %d))", d.Milliseconds()), "awaitPromise": true})
}

// Until waits until an expression of the page is true, and no longer than a
// minute: what the page shows then is for the test to judge.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	b.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf(`new Promise(done => { let n = 0;
		const look = () => (%s) || n++ > 3000 ? done() : setTimeout(look, 20); look(); })`, expression), "awaitPromise": true})
}
