package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"stopgap/tools"
	"stopgap/tools/fetch"
)

// The bounds of what the model reads of a result.
const (
	maxTitle   = 200 // characters
	maxSnippet = 600
	maxQueries = 10
	atOnce     = 3 // queries of one call
)

// A single search may wait for its turn and try again.
const searchTime = 2 * time.Minute

// tag is what engines mark words with.
var tag = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// brackets would end a link in text, or look like a tag.
var brackets = strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", "(", "%28", ")", "%29")

// tidy makes results fit to be read: no tags, one line, no more than there may
// be, and links to pages alone.
func tidy(list []Result) []Result {
	var out []Result
	for _, r := range list {
		if u, err := fetch.Parse(r.Link); err != nil {
			continue
		} else if r.Link = brackets.Replace(u.String()); len(out) == MaxResults {
			break
		}
		if u, err := fetch.Parse(r.PDF); err != nil {
			r.PDF = ""
		} else {
			r.PDF = brackets.Replace(u.String())
		}
		for _, s := range []*string{&r.Title, &r.Snippet, &r.Date, &r.Info} {
			*s = strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(strings.ToValidUTF8(*s, ""), ""))), " ")
		}
		r.Title, r.Snippet = shortened(r.Title, maxTitle), shortened(r.Snippet, maxSnippet)
		r.Date, r.Info = shortened(r.Date, maxTitle), shortened(r.Info, maxTitle)
		if r.Title == "" {
			r.Title = r.Link
		}
		out = append(out, r)
	}
	return out
}

func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// queriesOf reads a query or a list of them. Models write both.
func queriesOf(field json.RawMessage) ([]string, error) {
	var list []string
	if json.Unmarshal(field, &list) != nil {
		var one string
		if err := json.Unmarshal(field, &one); err != nil {
			return nil, errors.New(`"query" is neither a string nor a list of strings`)
		}
		list = []string{one}
	}
	if len(list) == 0 || len(list) > maxQueries {
		return nil, fmt.Errorf("a call takes 1 to %d queries, not %d", maxQueries, len(list))
	}
	for _, q := range list {
		if strings.TrimSpace(q) == "" {
			return nil, errors.New("a query is empty")
		}
	}
	return list, nil
}

// An answer is what one query gave.
type answer struct {
	query string
	found []Result
	err   error
}

// each asks for several queries, some of them at once, and keeps their order.
func each(ctx context.Context, queries []string, ask func(context.Context, string) ([]Result, error)) []answer {
	out := make([]answer, len(queries))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, q := range queries {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i] = answer{query: q}
			out[i].found, out[i].err = ask(ctx, q)
		})
	}
	all.Wait()
	return out
}

// engine gives the engine of a name, or the preferred one.
func (t *Tools) engine(name string) (string, engine, error) {
	if name == "" && len(t.ready) > 0 {
		name = t.ready[0]
	}
	if name == "" {
		return "", nil, ErrNoEngine
	}
	e, ok := t.engines[name]
	if !ok {
		return name, nil, fmt.Errorf("search engine %q is not set up; there are %s", name, strings.Join(t.ready, ", "))
	}
	return name, e, nil
}

// webSearch is the tool of agents behind a chat API: JSON with titles and
// links.
type webSearch struct{ *Tools }

func (webSearch) Deadline() time.Duration { return searchTime }

// Spec offers the engines that are set up.
func (t webSearch) Spec() tools.Spec {
	names := t.ready
	if len(names) == 0 {
		names = order
	}
	enum, _ := json.Marshal(names) // strings
	return tools.Spec{
		Name:         "web_search",
		Description:  "Search the web. Gives the title, the link and a few words of each page that was found.",
		Parameters:   json.RawMessage(`{"type":"object","properties":{"query":{"type":["string","array"],"items":{"type":"string"},"minItems":1,"maxItems":10,"description":"What to look for, or a list of several queries."},"search_engine":{"type":"string","enum":` + string(enum) + `,"description":"The search engine to ask."}},"required":["query"]}`),
		Capabilities: []tools.Capability{tools.Net},
	}
}

type (
	webResult struct {
		Title   string `json:"title"`
		Link    string `json:"link"`
		Snippet string `json:"snippet,omitempty"`
		Date    string `json:"date,omitempty"`
	}
	webMetadata struct {
		Engine    string `json:"engine"`
		Query     string `json:"query"`
		Total     int    `json:"total_results"`
		Timestamp int64  `json:"timestamp"` // seconds since 1970
	}
	webAnswer struct {
		Status   string       `json:"tool_call_status"`
		Results  []webResult  `json:"search_results,omitempty"`
		Metadata *webMetadata `json:"metadata,omitempty"`
		Error    string       `json:"error_message,omitempty"`
	}
)

// Run gives a JSON object a query, each on a line. A search that failed is such
// an object too: that is how the model knows it.
func (t webSearch) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Query  json.RawMessage
		Engine string `json:"search_engine"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	queries, err := queriesOf(in.Query)
	if err != nil {
		return "", err
	}
	name, e, err := t.engine(in.Engine)
	if err != nil {
		return line(webAnswer{Status: "error", Error: err.Error()}), nil
	}
	var lines []string
	for _, a := range each(ctx, queries, e.search) {
		out := webAnswer{Status: "success", Metadata: &webMetadata{name, a.query, len(a.found), time.Now().Unix()}}
		switch {
		case ctx.Err() != nil:
			return strings.Join(lines, "\n"), ctx.Err()
		case a.err != nil:
			out = webAnswer{Status: "error", Error: a.err.Error()}
		case len(a.found) == 0:
			out = webAnswer{Status: "error", Error: fmt.Sprintf("no results for %q; try a more general query", a.query)}
		}
		for _, r := range a.found {
			out.Results = append(out.Results, webResult{r.Title, r.Link, r.Snippet, r.Date})
		}
		lines = append(lines, line(out))
	}
	return strings.Join(lines, "\n"), nil
}

// line is a value as JSON on one line, with the characters as they are.
func line(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings and numbers
	return strings.TrimSpace(b.String())
}

// The words that part the answers to several queries, and those for nothing,
// are the ones that Tongyi DeepResearch reads.
const (
	between   = "\n=======\n"
	noResults = "No results found for '%s'. Try with a more general query."
)

// search is web_search as Tongyi DeepResearch knows it: numbered links in text.
// It says of itself what the model was trained with, to the byte; so do
// google_scholar and visit.
type search struct{ *Tools }

func (search) Deadline() time.Duration { return searchTime }

func (search) Spec() tools.Spec {
	return tools.Spec{
		Name:         "search",
		Description:  "Perform Google web searches then returns a string of the top search results. Accepts multiple queries.",
		Parameters:   json.RawMessage(`{"type": "object", "properties": {"query": {"type": "array", "items": {"type": "string", "description": "The search query."}, "minItems": 1, "description": "The list of search queries."}}, "required": ["query"]}`),
		Capabilities: []tools.Capability{tools.Net},
	}
}

func (t search) Run(ctx context.Context, args json.RawMessage) (string, error) {
	_, e, err := t.engine("")
	if err != nil {
		return "", err
	}
	return texts(ctx, args, e.search, "A web search for '%s' found %d results:\n\n## Web Results\n", webEntry)
}

// texts answers the queries of a call in text. Only where none of them could be
// asked is that an error.
func texts(ctx context.Context, args json.RawMessage, ask func(context.Context, string) ([]Result, error), heading string, entry func(Result) string) (string, error) {
	var in struct{ Query json.RawMessage }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	queries, err := queriesOf(in.Query)
	if err != nil {
		return "", err
	}
	var parts []string
	failed := 0
	for _, a := range each(ctx, queries, ask) {
		switch {
		case ctx.Err() != nil:
			return strings.Join(parts, between), ctx.Err()
		case a.err != nil:
			failed, err = failed+1, a.err
			parts = append(parts, fmt.Sprintf("The search for '%s' failed: %v.", a.query, a.err))
		case len(a.found) == 0:
			parts = append(parts, fmt.Sprintf(noResults, a.query))
		default:
			var b strings.Builder
			fmt.Fprintf(&b, heading, a.query, len(a.found))
			for i, r := range a.found {
				if i > 0 {
					b.WriteString("\n\n")
				}
				fmt.Fprintf(&b, "%d. %s", i+1, entry(r))
			}
			parts = append(parts, b.String())
		}
	}
	if failed == len(queries) {
		return "", err
	}
	return strings.Join(parts, between), nil
}

func webEntry(r Result) string {
	return fmt.Sprintf("[%s](%s)%s\n%s", r.Title, r.Link, labelled("Date published", r.Date), onLine(r.Snippet))
}

func labelled(label, value string) string {
	if value == "" {
		return ""
	}
	return "\n" + label + ": " + value
}

func onLine(s string) string {
	if s == "" {
		return ""
	}
	return "\n" + s
}
