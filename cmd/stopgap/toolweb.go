package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgap/tools"
	"stopgap/tools/browser"
	"stopgap/tools/fetch"
	"stopgap/tools/web"
)

// searchKeys are the environment variables that have the keys of search
// engines, unless search-key-env names another one.
var searchKeys = map[string]string{
	web.Tavily: "TAVILY_API_KEY", web.Brave: "BRAVE_API_KEY", web.Serper: "SERPER_API_KEY", web.SearXNG: "SEARXNG_API_KEY", web.OpenAlex: "OPENALEX_API_KEY",
}

// searxngURL is the variable that has the address of a SearXNG.
const searxngURL = "SEARXNG_URL"

// errNoEngine says what to do where nothing can be searched with.
var errNoEngine = &usageError{web.ErrNoEngine, strings.Join(slices.Sorted(maps.Values(map[string]string{
	"": searxngURL, web.Tavily: searchKeys[web.Tavily], web.Brave: searchKeys[web.Brave], web.Serper: searchKeys[web.Serper],
})), ", ") + " in the environment set one up; Bing takes Chromium alone"}

// openWebTools gives the tools of the web. search is among them where --tools
// names it and there is no corpus, whose search it would be otherwise.
func openWebTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	o := w.web()
	t, err := web.New(o)
	if err != nil {
		return nil, &usageError{err, "\"stopgap doctor\" tells which search engines are set up"}
	}
	searches := slices.ContainsFunc([]string{"web", "web_search", "search"}, w.named)
	if searches && !w.listing && w.corpus == "" && len(o.Ready()) == 0 {
		return nil, errNoEngine
	}
	list := t.List()
	if w.corpus != "" || !w.wants("search") {
		list = slices.DeleteFunc(list, func(t tools.Tool) bool { return t.Spec().Name == "search" })
	}
	return list, nil
}

// web is how the web is searched and read.
func (w *workshop) web() web.Options {
	o := w.app.searching(w.settings)
	o.Fetch = fetch.Options{Allow: w.allowHosts, UserAgent: "stopgap/" + readVersion().Version + " (a person's research tool)", Cache: pageCache()}
	o.Goal, o.Document = w.reader(), w.documents()
	return o
}

// searching is what is set up for search, from the settings and the
// environment.
func (a *app) searching(s *settings) web.Options {
	o := web.Options{Engine: s.searchEngine, Keys: map[string]string{}, Addresses: map[string]string{web.SearXNG: a.env(searxngURL)}}
	if o.Engine == "auto" {
		o.Engine = ""
	}
	for engine, variable := range searchKeys {
		o.Keys[engine] = a.env(variable)
	}
	if s.searchURL != "" {
		o.Addresses[cmp.Or(o.Engine, web.SearXNG)] = s.searchURL
	}
	if s.searchKeyEnv != "" {
		o.Keys[cmp.Or(o.Engine, web.SearXNG)] = a.env(s.searchKeyEnv)
	}
	return o
}

// pageCache keeps pages in the user's cache folder, nil where there is none.
func pageCache() *fetch.Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &fetch.Cache{Dir: filepath.Join(dir, "stopgap", "pages")}
}

// An engineRow is what the doctor says of one search engine.
type engineRow struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	First bool   `json:"first,omitempty"` // it is what web_search asks
	// Needs is what sets it up, or has done so.
	Needs string `json:"needs"`
}

// searchEngines looks at what is set up. Nobody is asked anything.
func (a *app) searchEngines(s *settings) []engineRow {
	ready := a.searching(s).Ready()
	var out []engineRow
	for _, name := range web.Engines() {
		row := engineRow{Name: name, Ready: slices.Contains(ready, name), First: len(ready) > 0 && ready[0] == name, Needs: searchKeys[name]}
		switch name {
		case web.SearXNG:
			row.Needs = "--search-url or " + searxngURL
		case web.Bing:
			row.Needs = "Chromium"
			if path, err := browser.Find(); err == nil {
				row.Needs = path
			} else if !errors.Is(err, browser.ErrNone) {
				row.Needs = err.Error()
			}
		}
		out = append(out, row)
	}
	return out
}

func (e engineRow) attribute() string {
	if e.Ready {
		return plainText
	}
	return dim
}

// words are a line of the doctor.
func (e engineRow) words() string {
	switch {
	case e.First:
		return fmt.Sprintf("✓ web search: %s (%s), which web_search asks", e.Name, e.Needs)
	case e.Ready:
		return fmt.Sprintf("✓ web search: %s (%s)", e.Name, e.Needs)
	}
	return fmt.Sprintf("- web search: %s is not set up (%s)", e.Name, e.Needs)
}
