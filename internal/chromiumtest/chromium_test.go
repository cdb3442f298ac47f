//go:build unix

package chromiumtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The driver sees what it is there to see.
func TestTabSeesErrorsAndRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	page := `<!doctype html><title>x</title><img src="http://example.test/x.png"><p id=p>text</p><script>
		for (const e of ["pointerover", "click", "keydown"]) p.addEventListener(e, (x) => { p.textContent += " " + e + " " + (x.pointerType || ""); });
		console.error("said"); null.x</script>`
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	b := Open(t, file, 400)
	b.Wait(300 * time.Millisecond)
	if got := Run[float64](b, "innerWidth"); got != 400 {
		t.Errorf("the window is %v wide", got)
	}
	if all := strings.Join(b.Said, "\n"); !strings.Contains(all, "said") || !strings.Contains(all, "TypeError") {
		t.Errorf("the console said %q", b.Said)
	}
	if !slices.Contains(b.Asked, "http://example.test/x.png") || !slices.Contains(b.hosts(), "example.test") {
		t.Errorf("asked for %q, the proxy for %q", b.Asked, b.hosts())
	}
	b.Point("#p")
	if got := Run[string](b, "p.textContent"); !strings.HasPrefix(got, "text pointerover mouse") {
		t.Errorf("the mouse did %q", got)
	}
	b.Tap("#p")
	b.Until(`p.textContent.includes("click")`)
	if got := Run[string](b, "p.textContent"); !strings.Contains(got, "pointerover touch") || !strings.Contains(got, "click") {
		t.Errorf("the finger did %q", got)
	}
}
