package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"stopgap/tools/browser"
	"stopgap/tools/fetch"
	"stopgap/tools/goal"
)

const article = `<!doctype html><html lang="en"><head><title>The Iron Bridge</title><script>steal()</script></head><body><nav><a href="/">Home</a> <a href="/x">Shop</a></nav>
<article><h1>The Iron Bridge</h1><p>The Iron Bridge crosses the river Severn in Shropshire. It opened in 1781 and was the first major bridge in the world to be made of cast iron, which had been too costly before.</p>
<p>Its <a href="/designer">designer</a> was Thomas Farnolls Pritchard, an architect from Shrewsbury, who died before it was finished; Abraham Darby III cast and built it for the shareholders.</p>
<p>The toll house on the southern side is a museum today, and the bridge belongs to a World Heritage Site together with the gorge and its furnaces.</p></article><footer>Imprint</footer></body></html>`

// pages is a web site, and options that may visit it.
func pages(t *testing.T, ask goal.Ask) (Options, string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bridge":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, article)
		case "/plain.txt":
			fmt.Fprint(w, "Plain words.")
		case "/empty":
			w.Header().Set("Content-Type", "text/html")
		case "/picture":
			fmt.Fprint(w, "\x89PNG\r\n\x1a\n")
		case "/away":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return Options{Fetch: fetch.Options{Allow: []string{strings.TrimPrefix(s.URL, "http://")}}, Goal: goal.Reader{Ask: ask}}, s.URL
}

func TestReadURL(t *testing.T) {
	o, site := pages(t, nil)
	tool := set(t, o, nil)["read_url"]
	got, err := run(t, tool, `{"url":"`+site+`/bridge"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{"The Iron Bridge [" + site + "/bridge]\n\n", "opened in 1781", "[designer](" + site + "/designer)"} {
		if !strings.Contains(got, has) {
			t.Errorf("%q is not in %s", has, got)
		}
	}
	for _, not := range []string{"steal", "<p>", "Imprint", "Shop"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in %s", not, got)
		}
	}
	for path, words := range map[string]string{
		"/none": "404 Not Found", "/picture": "image/png", "/away": "refused: 127.0.0.2", "/empty": "",
	} {
		if got, err := run(t, tool, `{"url":"`+site+path+`"}`); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, err := run(t, tool, `{"url":"`+site+`/plain.txt"}`); err != nil || !strings.HasSuffix(got, "Plain words.") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestVisit(t *testing.T) {
	var prompts []string
	o, site := pages(t, func(_ context.Context, prompt string, _ json.RawMessage) (string, error) {
		if prompts = append(prompts, prompt); strings.Contains(prompt, "Plain words") {
			return "I see nothing.", nil
		}
		return `{"rational":"the first paragraph","evidence":"It opened in 1781.","summary":"1781"}`, nil
	})
	tool := set(t, o, nil)["visit"]
	got, err := run(t, tool, `{"url":["`+site+`/bridge","`+site+`/none","`+site+`/plain.txt","http://127.0.0.1/"],"goal":"When did it open?"}`)
	if err != nil {
		t.Fatal(err)
	}
	frames := strings.Split(got, "\n=======\n")
	if len(frames) != 4 {
		t.Fatalf("%d frames: %s", len(frames), got)
	}
	for i, want := range []string{
		goal.Frame(site+"/bridge", "When did it open?", goal.Finding{Evidence: "It opened in 1781.", Summary: "1781"}),
		goal.Unread(site+"/none", "When did it open?") + "Reason: " + strings.TrimPrefix(site, "http://") + " answered 404 Not Found.\n",
		goal.Unread(site+"/plain.txt", "When did it open?"),
		goal.Unread("http://127.0.0.1/", "When did it open?") + "Reason: refused: 127.0.0.1: it is an address of this machine, of a private network or reserved, and the host is not one of --allow-host.\n",
	} {
		if frames[i] != want {
			t.Errorf("frame %d: %q, want %q", i, frames[i], want)
		}
	}
	if !strings.Contains(prompts[0], "opened in 1781") || strings.Contains(prompts[0], "steal") || len(prompts) != 4 { // the plain one three times
		t.Errorf("%d prompts, the first %q", len(prompts), prompts[0])
	}
	if got, err := run(t, tool, `{"url":"`+site+`/bridge","goal":"When?"}`); err != nil || !strings.Contains(got, "for user goal When? as follows") {
		t.Errorf("one address: %s, %v", got, err)
	}
	down := errors.New("the model is gone")
	o.Goal.Ask = func(context.Context, string, json.RawMessage) (string, error) { return "", down }
	if _, err := run(t, set(t, o, nil)["visit"], `{"url":"`+site+`/bridge","goal":"When?"}`); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	o.Goal.Ask = nil
	if _, err := run(t, set(t, o, nil)["visit"], `{"url":"`+site+`/bridge","goal":"When?"}`); err == nil || !strings.Contains(err.Error(), "read_url") {
		t.Errorf("%v", err)
	}
}

// bingPage is shaped like Bing's page of results as of 2026: items b_algo,
// links through a counter, some written by a script.
const bingPage = `<!doctype html><html><head><title>q - Search</title></head><body><ol id="b_results">
<li class="b_ad"><h2><a href="https://ad.example/">An ad</a></h2></li>
<li class="b_algo" data-id><h2><a href="https://www.bing.com/ck/a?!&amp;&amp;p=1&amp;u=a1aHR0cHM6Ly9hLmV4YW1wbGUvb25lP3E9w7w&amp;ntb=1">One <strong>and</strong> only</a></h2><div class="b_caption"><p class="b_lineclamp2"><span class="news_dt">2 Jan 2026</span>&ensp;·&ensp;About one.</p></div></li>
<li class="b_algo"><div class="tpcn"><a href="https://a.example/two">a.example</a></div><h2><a href="https://a.example/two">Two</a></h2></li>
<li class="b_algo"><p>no heading</p></li></ol>
<script>setTimeout(() => { for (let i = 3; i < 20; i++) { const l = document.createElement("li"); l.className = "b_algo"; l.innerHTML = "<h2><a href='https://a.example/" + i + "'>Result " + i + "</a></h2>"; b_results.append(l) } }, 500)</script></body></html>`

func TestReadBing(t *testing.T) {
	got, err := readBing([]byte(bingPage))
	if err != nil || len(got) != 2 || got[0] != (Result{Title: "One and only", Link: "https://a.example/one?q=ü", Snippet: "2 Jan 2026\u2002·\u2002About one."}) || got[1].Link != "https://a.example/two" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := readBing([]byte(`<ol id=b_results><li class="b_no"><h1>There are no results</h1></li></ol>`)); err != nil || len(got) != 0 {
		t.Errorf("no results: %+v, %v", got, err)
	}
	if _, err := readBing([]byte(`<div class=b_captcha>One last step</div>`)); err == nil || !strings.Contains(err.Error(), "whether a person asks") {
		t.Errorf("a captcha: %v", err)
	}
}

func FuzzReadBing(f *testing.F) {
	f.Add([]byte(bingPage))
	f.Fuzz(func(t *testing.T, page []byte) {
		found, _ := readBing(page)
		for _, r := range tidy(found) {
			if !strings.HasPrefix(r.Link, "http") || strings.ContainsAny(r.Title+r.Snippet, "\n\r") {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Bing through a real Chromium: what scripts write counts, ten results at most.
func TestBing(t *testing.T) {
	path, err := browser.Find()
	if err != nil {
		if os.Getenv("STOPGAP_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v: \"make chromium\" installs it", err)
	}
	e := newEngine(t, func(r *http.Request, _ string) (int, string) { return 200, bingPage })
	o := Options{Engine: Bing, Browser: path, Fetch: onDisk(t)}
	tool := set(t, o, map[string]*engineServer{Bing: e})["web_search"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	got, err := tool.Run(ctx, json.RawMessage(`{"query":"长城 & more","search_engine":"bing"}`))
	if err != nil {
		t.Fatal(err)
	}
	var a webAnswer
	if err := json.Unmarshal([]byte(got), &a); err != nil || a.Status != "success" || a.Metadata.Total != 10 || len(a.Results) != 10 || a.Metadata.Engine != "bing" {
		t.Fatalf("%s, %v", got, err)
	}
	if a.Results[0].Link != "https://a.example/one?q=ü" || a.Results[9].Title != "Result 10" {
		t.Errorf("%s", got)
	}
	if r := e.requests()[0]; r != "GET /search?mkt=zh-CN&q=%E9%95%BF%E5%9F%8E+%26+more" {
		t.Errorf("asked %s", r)
	}
}
