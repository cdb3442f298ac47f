package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Bing is read as a person reads it, in a headless browser: it has no API any
// more. Results are the items li.b_algo of its page.
type bing struct{ *api }

func (e bing) search(ctx context.Context, query string) ([]Result, error) {
	q := url.Values{"q": {query}}
	if l := languageOf(query); l != nil {
		q.Set("mkt", l.market)
	}
	address := e.base + "/search?" + q.Encode()
	key := "search bing " + address
	page, kept := e.cache.Get(key)
	if !kept {
		var err error
		if page, err = e.browser.Render(ctx, address); err != nil {
			return nil, &EngineError{Engine: e.name, Err: err}
		}
	}
	found, err := readBing(page)
	if err != nil {
		return nil, &EngineError{Engine: e.name, Err: err}
	}
	if !kept {
		e.cache.Put(key, page)
	}
	return tidy(found), nil
}

// readBing reads the results of a page.
func readBing(page []byte) ([]Result, error) {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, errors.New("its page is not HTML")
	}
	items := all(doc, "li", "b_algo")
	if len(items) == 0 {
		if len(all(doc, "li", "b_no")) > 0 {
			return nil, nil
		}
		return nil, errors.New("its page has no list of results; it may want to know whether a person asks")
	}
	var out []Result
	for _, item := range items {
		headings := all(item, "h2", "")
		if len(headings) == 0 {
			continue
		}
		links := all(headings[0], "a", "")
		if len(links) == 0 {
			links = all(item, "a", "")
		}
		if len(links) == 0 {
			continue
		}
		r := Result{Title: textOf(headings[0]), Link: target(attribute(links[0], "href"))}
		for _, caption := range all(item, "div", "b_caption") {
			if p := all(caption, "p", ""); len(p) > 0 {
				r.Snippet = textOf(p[0])
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// target is where a link of Bing leads: it goes through Bing's own counter,
// with the address in base64 after "a1".
func target(link string) string {
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(u.Path, "/ck/") {
		return link
	}
	coded, ok := strings.CutPrefix(u.Query().Get("u"), "a1")
	if plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(coded, "=")); ok && err == nil {
		return string(plain)
	}
	return link
}

// all gives the elements of a name, and of a class where one is told, that
// stand below a node.
func all(n *html.Node, name, class string) []*html.Node {
	var out []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name && (class == "" || slices.Contains(strings.Fields(attribute(d, "class")), class)) {
			out = append(out, d)
		}
	}
	return out
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is the text below a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "script" && d.Parent.Data != "style" {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
