package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
)

// Tavily: POST /search, https://docs.tavily.com/documentation/api-reference/endpoint/search.
type tavily struct{ *api }

func (e tavily) search(ctx context.Context, query string) ([]Result, error) {
	answer, err := e.post(ctx, "/search", map[string]any{"query": query, "max_results": MaxResults, "search_depth": "basic"},
		map[string]string{"Authorization": "Bearer " + e.key})
	return e.results(answer, err)
}

// results reads what Tavily and SearXNG answer, which differs in one name.
func (e *api) results(answer []byte, err error) ([]Result, error) {
	var got struct {
		Results []struct {
			Title, URL, Content string
			Date                string `json:"published_date"` // Tavily's
			PublishedDate       string `json:"publishedDate"`  // SearXNG's
		}
	}
	if err := e.decode(answer, err, &got); err != nil {
		return nil, err
	}
	var out []Result
	for _, r := range got.Results {
		out = append(out, Result{Title: r.Title, Link: r.URL, Snippet: r.Content, Date: cmp.Or(r.Date, r.PublishedDate)})
	}
	return tidy(out), nil
}

// SearXNG: GET /search with format=json, https://docs.searxng.org/dev/search_api.html.
type searxng struct{ *api }

func (e searxng) search(ctx context.Context, query string) ([]Result, error) {
	q := url.Values{"q": {query}, "format": {"json"}, "pageno": {"1"}}
	if l := languageOf(query); l != nil {
		q.Set("language", l.searxng)
	}
	header := map[string]string{}
	if e.key != "" { // of what stands before it
		header["Authorization"] = "Bearer " + e.key
	}
	answer, err := e.get(ctx, "/search", q, header)
	return e.results(answer, err)
}

// Brave: GET /res/v1/web/search, https://api-dashboard.search.brave.com/app/documentation/web-search.
type brave struct{ *api }

func (e brave) search(ctx context.Context, query string) ([]Result, error) {
	q := url.Values{"q": {query}, "count": {strconv.Itoa(MaxResults)}, "text_decorations": {"false"}, "result_filter": {"web"}}
	if l := languageOf(query); l != nil {
		q.Set("search_lang", l.brave)
	}
	answer, err := e.get(ctx, "/res/v1/web/search", q, map[string]string{"X-Subscription-Token": e.key})
	var got struct {
		Web struct {
			Results []struct {
				Title, URL, Description string
				PageAge                 string `json:"page_age"`
			}
		}
	}
	if err := e.decode(answer, err, &got); err != nil {
		return nil, err
	}
	var out []Result
	for _, r := range got.Web.Results {
		out = append(out, Result{Title: r.Title, Link: r.URL, Snippet: r.Description, Date: r.PageAge})
	}
	return tidy(out), nil
}

// Serper: POST /search and /scholar, https://serper.dev.
type serper struct {
	*api
	path string
}

func (e serper) search(ctx context.Context, query string) ([]Result, error) {
	body := map[string]any{"q": query, "num": MaxResults}
	if l := languageOf(query); l != nil {
		body["hl"], body["gl"] = l.google, l.country
	}
	answer, err := e.post(ctx, e.path, body, map[string]string{"X-API-KEY": e.key})
	var got struct {
		Organic []struct {
			Title, Link, Snippet, Date, PublicationInfo, PDFURL string
			Year, CitedBy                                       number
		}
	}
	if err := e.decode(answer, err, &got); err != nil {
		return nil, err
	}
	var out []Result
	for _, r := range got.Organic {
		out = append(out, Result{
			Title: r.Title, Link: r.Link, Snippet: r.Snippet, Date: r.Date,
			Info: r.PublicationInfo, PDF: r.PDFURL, Year: int(r.Year), CitedBy: int(r.CitedBy),
		})
	}
	return tidy(out), nil
}

// A number may stand in quotes, or be something else altogether, which is zero.
type number int

// UnmarshalJSON never fails: a missing year is no reason to lose a result.
func (n *number) UnmarshalJSON(b []byte) error {
	s := string(b)
	if unquoted, err := strconv.Unquote(s); err == nil {
		s = unquoted
	}
	i, _ := strconv.Atoi(s)
	*n = number(i)
	return nil
}

// OpenAlex: GET /works, https://docs.openalex.org/api-entities/works/search-works.
type openAlex struct{ *api }

func (e openAlex) search(ctx context.Context, query string) ([]Result, error) {
	q := url.Values{
		"search": {query}, "per-page": {strconv.Itoa(MaxResults)},
		"select": {"id,doi,display_name,publication_year,cited_by_count,authorships,primary_location,open_access,abstract_inverted_index"},
	}
	answer, err := e.get(ctx, "/works", q, nil)
	var got struct{ Results []openAlexWork }
	if err := e.decode(answer, err, &got); err != nil {
		return nil, err
	}
	var out []Result
	for _, w := range got.Results {
		out = append(out, w.result())
	}
	return tidy(out), nil
}

type openAlexWork struct {
	ID, DOI     string
	DisplayName string `json:"display_name"`
	Year        int    `json:"publication_year"`
	CitedBy     int    `json:"cited_by_count"`
	Authorships []struct {
		Author struct {
			DisplayName string `json:"display_name"`
		}
	}
	Location *struct {
		Page   string `json:"landing_page_url"`
		PDF    string `json:"pdf_url"`
		Source *struct {
			DisplayName string `json:"display_name"`
		}
	} `json:"primary_location"`
	OpenAccess struct {
		URL string `json:"oa_url"`
	} `json:"open_access"`
	Abstract map[string][]int `json:"abstract_inverted_index"`
}

func (w openAlexWork) result() Result {
	r := Result{Title: w.DisplayName, Link: w.ID, Year: w.Year, CitedBy: w.CitedBy, Snippet: inOrder(w.Abstract), PDF: w.OpenAccess.URL}
	if w.DOI != "" {
		r.Link = w.DOI
	}
	var names []string
	for _, a := range w.Authorships {
		names = append(names, a.Author.DisplayName)
	}
	r.Info = authors(names)
	if l := w.Location; l != nil {
		if l.Source != nil && l.Source.DisplayName != "" {
			r.Info += " - " + l.Source.DisplayName
		}
		if l.Page != "" {
			r.Link = l.Page
		}
		if l.PDF != "" {
			r.PDF = l.PDF
		}
	}
	return r
}

// maxWords bounds an abstract.
const maxWords = 400

// inOrder puts the words of an inverted index in their places.
func inOrder(index map[string][]int) string {
	places := map[int]string{}
	for word, at := range index {
		for _, i := range at {
			if i >= 0 && i < maxWords {
				places[i] = word
			}
		}
	}
	text := ""
	for i := range maxWords {
		if w, ok := places[i]; ok {
			text += w + " "
		}
	}
	return text
}

// authors names the first of many.
func authors(names []string) string {
	const most = 4
	text := ""
	for i, n := range names[:min(most, len(names))] {
		if i > 0 {
			text += ", "
		}
		text += n
	}
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
