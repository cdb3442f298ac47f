//go:build unix

package article

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/internal/chromiumtest"
)

// open writes the sample's page and opens it, from disk.
func open(t *testing.T, width int) *chromiumtest.Tab {
	t.Helper()
	r, _ := sample(t)
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err == nil {
		err = r.WriteHTML(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return chromiumtest.Open(t, file, width)
}

// shoot keeps a picture where somebody wants to look at one.
func shoot(b *chromiumtest.Tab, name string) {
	if os.Getenv("STOPGAP_SCREENSHOTS") != "" {
		b.Shoot(name)
	}
}

// card is the text of the card, empty where there is none to be seen.
func card(b *chromiumtest.Tab) string {
	return chromiumtest.Run[string](b, `(() => { const c = document.getElementById("card"); const r = c.getBoundingClientRect();
		return c.hidden || r.width === 0 ? "" : r.left < 0 || r.right > document.documentElement.clientWidth ? "outside of the window" : c.innerText; })()`)
}

// shown says in the page that the card is there.
const shown = `(() => { const c = document.getElementById("card"); return !c.hidden && c.getBoundingClientRect().width > 0; })()`

// The page says nothing to the console and asks for nothing, runs nothing of
// what the model and the pages say, and fits its window.
func TestPage(t *testing.T) {
	b := open(t, 1280)
	for _, width := range []int{1280, 400, 320} {
		b.Width(width)
		for _, scheme := range []string{"light", "dark"} {
			b.Media("screen", scheme)
			if wide := chromiumtest.Run[float64](b, "document.documentElement.scrollWidth"); wide > float64(width) {
				t.Errorf("at %d pixels it is %v wide", width, wide)
			}
			shoot(b, fmt.Sprintf("article-%d-%s", width, scheme))
		}
	}
	b.Media("print", "light")
	shoot(b, "article-print")
	b.Media("screen", "light")
	for expression, want := range map[string]float64{
		`document.querySelectorAll(".reference").length`:                                                                 5,
		`document.querySelectorAll("main .cites > *").length`:                                                            13,
		`document.querySelectorAll("main .cites > .bad").length`:                                                         6,
		`document.querySelectorAll(".contents a").length`:                                                                8, // the answer, three sections, two parts of them, the references, the log
		`document.querySelectorAll("img, iframe, object").length`:                                                        0,
		`document.scripts.length`:                                                                                        1,
		`document.styleSheets.length`:                                                                                    1,
		`[...document.links].filter(a => !/^https?:$/.test(a.protocol) && !a.hash).length`:                               0,
		`[...document.querySelectorAll("a[href^='#']")].filter(a => !document.getElementById(a.hash.slice(1))).length`:   0,
		`new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size - document.querySelectorAll("[id]").length`: 0,
	} {
		if got := chromiumtest.Run[float64](b, expression); got != want {
			t.Errorf("%s is %v, not %v", expression, got, want)
		}
	}
	b.Quiet()
}

// Its own policy keeps a script out that gets into the page all the same.
func TestPolicy(t *testing.T) {
	b := open(t, 800)
	chromiumtest.Run[any](b, `(() => { const s = document.createElement("script"); s.textContent = "window.ran = true"; document.body.append(s);
		const i = new Image(); i.src = "http://tracker.example/z.png"; document.body.append(i); document.body.setAttribute("onclick", "window.ran = true"); document.body.click(); })()`)
	b.Wait(300 * time.Millisecond)
	if chromiumtest.Run[bool](b, "window.ran === true") {
		t.Error("a script ran that the policy does not know")
	}
	if said := strings.Join(b.Said, "\n"); !strings.Contains(said, "Content Security Policy") {
		t.Errorf("the console says %q", said)
	}
	b.Said, b.Asked = nil, nil // the image was named and never asked for
	b.Quiet()
}

// The card over a citation comes with the mouse, with the keyboard and with a
// finger, and goes.
func TestCard(t *testing.T) {
	b := open(t, 1280)
	b.Point("#c1")
	b.Until(shown)
	text := card(b)
	for _, part := range []string{"Korvane: a history", "korvane.example", "word for word", "there was never any oil", "nobody had ordered oil", "Read for: Whether the light was lit", "Summary 2"} {
		if !strings.Contains(text, part) {
			t.Errorf("the card has no %q; it says\n%s", part, text)
		}
	}
	shoot(b, "article-card")
	b.Point("#card .read") // onto the card, which stays
	b.Wait(400 * time.Millisecond)
	if card(b) == "" {
		t.Error("the card goes when the mouse comes to it")
	}
	b.Point("h1")
	b.Until("!(" + shown + ")")
	if got := card(b); got != "" {
		t.Errorf("the card stays: %q", got)
	}

	// From the last link before it, the tabulator comes to the first citation.
	chromiumtest.Run[any](b, `document.querySelector(".contents li:last-child a").focus()`)
	b.Key("Tab")
	if got := card(b); !strings.Contains(got, "Korvane: a history") {
		t.Errorf("with the keyboard the card says %q", got)
	}
	if got := chromiumtest.Run[string](b, `document.activeElement.id + " " + document.activeElement.getAttribute("aria-describedby")`); got != "c1 card" {
		t.Errorf("%q has the keyboard", got)
	}
	b.Key("Escape")
	if got := card(b); got != "" {
		t.Errorf("Escape leaves %q", got)
	}
	b.Key("Tab")
	if got := card(b); !strings.Contains(got, "Not found: “She was paid nothing for it”") {
		t.Errorf("an unsupported one says %q", got)
	}
	shoot(b, "article-card-bad")
	b.Key("Enter")
	b.Until(`location.hash !== ""`)
	if got := chromiumtest.Run[string](b, "location.hash"); got != "#r2" {
		t.Errorf("Enter leads to %q", got)
	}
	for id, want := range map[string]string{"c4": "Not in the evidence: 55", "c11": "There is no summary 17.", "c12": "There is no summary “the old man”."} {
		chromiumtest.Run[any](b, fmt.Sprintf("document.getElementById(%q).focus()", id))
		if got := card(b); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", id, got, want)
		}
	}
	b.Quiet()
}

// With a finger the first tap shows the card and the second follows the link.
func TestCardWithAFinger(t *testing.T) {
	b := open(t, 400)
	b.Tap("#c3")
	b.Until(shown)
	if got := card(b); !strings.Contains(got, "The Lantern") {
		t.Errorf("a tap shows %q", got)
	}
	if got := chromiumtest.Run[string](b, "location.hash"); got != "" {
		t.Errorf("a tap leads to %q", got)
	}
	shoot(b, "article-card-400")
	b.Tap("h1")
	b.Until("!(" + shown + ")")
	if got := card(b); got != "" {
		t.Errorf("a tap elsewhere leaves %q", got)
	}
	b.Tap("#c3")
	b.Until(shown)
	b.Tap("#c3")
	b.Until(`location.hash !== ""`)
	if got := chromiumtest.Run[string](b, "location.hash"); got != "#r3" {
		t.Errorf("a second tap leads to %q", got)
	}
	b.Quiet()
}
