//go:build unix

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/chromiumtest"
	"stopgap/internal/compare"
)

// drawn writes a report's page into a file.
func drawn(t *testing.T, r *compare.Report, runs Runs) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, runs); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// overflow names what sticks out of the window to the right. What scrolls in
// itself may be as wide as it likes.
const overflow = `(() => {
	const out = [];
	if (document.scrollingElement.scrollWidth > innerWidth) out.push("the page is " + document.scrollingElement.scrollWidth + " wide");
	for (const e of document.body.querySelectorAll("*")) {
		if (e.closest(".scroll, .runs, .unseen, svg") || !e.getClientRects().length) continue;
		const r = e.getBoundingClientRect();
		if (r.right > innerWidth + 0.5 || r.left < -0.5) out.push(e.tagName + "." + e.className + " from " + r.left + " to " + r.right);
	}
	return out.slice(0, 10);
})()`

// small names text that is too small to read.
const small = `(() => {
	const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.getClientRects().length || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
		if (parseFloat(getComputedStyle(e).fontSize) < 11) out.push(e.tagName + " " + getComputedStyle(e).fontSize);
	}
	return out.slice(0, 10);
})()`

// faint names text with less contrast to what is behind it than WCAG's AA asks.
const faint = `(() => {
	const rgb = s => (s.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
	const light = c => c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
	const out = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest("svg, option, script, style, .unseen")) continue;
		const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (contrast < 4.5) out.add(e.tagName + "." + e.className + " " + contrast.toFixed(2));
	}
	return [...out].slice(0, 10);
})()`

func none(t *testing.T, b *chromiumtest.Tab, what, expression string) {
	t.Helper()
	if got := chromiumtest.Run[[]string](b, expression); len(got) > 0 {
		t.Errorf("%s: %q", what, got)
	}
}

// The page can be read on a wide and on a narrow screen, light and dark, and on
// paper; it says nothing on the console and asks for nothing.
func TestPageIsReadable(t *testing.T) {
	t.Parallel()
	b := chromiumtest.Open(t, drawn(t, made(abilities, 40, 2), madeRuns), 1280)
	chromiumtest.Run[any](b, `document.querySelectorAll(".opens")[2].click()`)
	for _, width := range []int{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			b.Width(width)
			b.Media("screen", scheme)
			name := fmt.Sprintf("%s, %d pixels", scheme, width)
			none(t, b, name+", sticks out", overflow)
			none(t, b, name+", too small", small)
			none(t, b, name+", too faint", faint)
			b.Shoot(fmt.Sprintf("%s-%d", scheme, width))
		}
	}
	b.Width(800)
	b.Media("print", "light")
	none(t, b, "print, sticks out", overflow)
	b.Shoot("print")
	b.Quiet()
}

// The script shows what is hostile as what it is.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	b := chromiumtest.Open(t, drawn(t, hostileReport(), hostileRuns), 400)
	chromiumtest.Run[any](b, `document.querySelectorAll(".opens").forEach(e => e.click())`)
	texts := chromiumtest.Run[[]string](b, `[...document.querySelectorAll(".detail")[0].querySelectorAll(".run")[0].querySelectorAll("pre")].map(e => e.textContent)`)
	if len(texts) != len(hostile)+1 {
		t.Fatalf("%d segments, not %d", len(texts), len(hostile)+1)
	}
	for i, want := range hostile {
		if got := texts[i]; got != visible(want) {
			t.Errorf("%q is shown as %q", want, got)
		}
	}
	if got := texts[len(hostile)]; !strings.Contains(got, "1,048,576 bytes are left out here") || !strings.HasPrefix(got, "</scr") || !strings.HasSuffix(got, "ipt>") {
		t.Errorf("a cut text is shown as %q", got)
	}
	if got := chromiumtest.Run[[]string](b, `[...document.querySelectorAll("script, iframe, img, object, embed, style, link, a[href]")].map(e => e.tagName + " " + (e.getAttribute("href") ?? ""))`); slices.ContainsFunc(got, func(s string) bool {
		return s != "SCRIPT " && s != "STYLE " && s != "LINK data:," && !strings.HasPrefix(s, "A #only=")
	}) || len(got) != 1+1+2+3 {
		t.Errorf("the page has %q", got)
	}
	none(t, b, "sticks out", overflow)
	b.Shoot("hostile-400")
	b.Width(1280)
	none(t, b, "sticks out", overflow)
	b.Shoot("hostile-1280")
	b.Quiet()
}

// Even markup that got into the page would run nothing and ask for nothing: the
// page's own policy sees to that.
func TestPolicy(t *testing.T) {
	t.Parallel()
	b := chromiumtest.Open(t, drawn(t, made(abilities[:2], 2, 1), madeRuns), 400)
	chromiumtest.Run[any](b, `(() => {
		const s = document.createElement("script");
		s.textContent = "window.hit = 1";
		document.body.append(s);
		document.body.insertAdjacentHTML("beforeend", "<img src=http://evil.test/x.png onerror='window.hit = 2'><iframe src=http://evil.test/></iframe>"
			+ "<link rel=stylesheet href=http://evil.test/x.css><p id=p style='color: rgb(1, 2, 3)' onclick='window.hit = 3'>");
		p.click();
		return fetch("http://evil.test/").catch(() => 0);
	})()`)
	b.Wait(500 * time.Millisecond)
	if got := chromiumtest.Run[string](b, `String(window.hit) + getComputedStyle(p).color`); !strings.HasPrefix(got, "undefined") || strings.Contains(got, "1, 2, 3") {
		t.Errorf("what was put into the page gave %q", got)
	}
	refused := strings.Join(b.Said, "\n")
	for _, what := range []string{"inline script", "inline event handler", "inline style", "x.png", "x.css", "evil.test/'"} {
		if !strings.Contains(refused, what) {
			t.Errorf("the browser refused no %s: %s", what, refused)
		}
	}
	b.Said, b.Asked = nil, nil // what was refused
	b.Quiet()                  // the proxy
}
