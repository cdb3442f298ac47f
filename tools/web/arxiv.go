package web

import (
	"context"
	"encoding/xml"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// arXiv: GET /api/query, an Atom feed, https://info.arxiv.org/help/api/user-manual.html.
type arXiv struct{ *api }

func (e arXiv) search(ctx context.Context, query string) ([]Result, error) {
	answer, err := e.get(ctx, "/api/query", url.Values{
		"search_query": {allOf(query)}, "start": {"0"}, "max_results": {strconv.Itoa(MaxResults)}, "sortBy": {"relevance"},
	}, map[string]string{"Accept": "application/atom+xml"})
	if err != nil {
		return nil, err
	}
	var feed struct {
		Entries []arXivEntry `xml:"entry"`
	}
	if err := xml.Unmarshal(answer, &feed); err != nil {
		return nil, &EngineError{Engine: e.name, Err: errors.New("its answer is not the feed that it should be")}
	}
	var out []Result
	for _, entry := range feed.Entries {
		if strings.Contains(entry.ID, "/api/errors") {
			return nil, &EngineError{Engine: e.name, Err: errors.New("it does not understand the query")}
		}
		out = append(out, entry.result())
	}
	return tidy(out), nil
}

// allOf asks for all words of a query, without what arXiv takes for operators.
func allOf(query string) string {
	words := strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"():", r) })
	var parts []string
	for _, w := range words {
		if w != "AND" && w != "OR" && w != "ANDNOT" {
			parts = append(parts, "all:"+w)
		}
	}
	return strings.Join(parts, " AND ")
}

type arXivEntry struct {
	ID        string   `xml:"id"`
	Title     string   `xml:"title"`
	Summary   string   `xml:"summary"`
	Published string   `xml:"published"`
	Authors   []string `xml:"author>name"`
	Links     []struct {
		Href  string `xml:"href,attr"`
		Title string `xml:"title,attr"`
	} `xml:"link"`
}

func (e arXivEntry) result() Result {
	r := Result{Title: e.Title, Link: e.ID, Snippet: e.Summary, Info: authors(e.Authors) + " - arXiv"}
	if len(e.Published) >= 4 {
		r.Year, _ = strconv.Atoi(e.Published[:4]) // else there is none
	}
	for _, l := range e.Links {
		if l.Title == "pdf" {
			r.PDF = l.Href
		}
	}
	return r
}
