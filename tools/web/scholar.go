package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"stopgap/tools"
)

// scholar is google_scholar: Google's where there is a key of Serper, else
// OpenAlex and arXiv.
type scholar struct{ *Tools }

func (scholar) Deadline() time.Duration { return searchTime }

func (scholar) Spec() tools.Spec {
	return tools.Spec{
		Name:         "google_scholar",
		Description:  "Leverage Google Scholar to retrieve relevant information from academic publications. Accepts multiple queries. This tool will also return results from google search",
		Parameters:   json.RawMessage(`{"type": "object", "properties": {"query": {"type": "array", "items": {"type": "string", "description": "The search query."}, "minItems": 1, "description": "The list of search queries for Google Scholar."}}, "required": ["query"]}`),
		Capabilities: []tools.Capability{tools.Net},
	}
}

func (t scholar) Run(ctx context.Context, args json.RawMessage) (string, error) {
	return texts(ctx, args, t.find, "A scholar search for '%s' found %d results:\n\n## Scholar Results\n", paperEntry)
}

// find asks all who know papers at once and takes their results by turns.
// One that does not answer is no reason to fail.
func (t scholar) find(ctx context.Context, query string) ([]Result, error) {
	lists, errs := make([][]Result, len(t.scholar)), make([]error, len(t.scholar))
	var all sync.WaitGroup
	for i, e := range t.scholar {
		all.Go(func() { lists[i], errs[i] = e.search(ctx, query) })
	}
	all.Wait()
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if failed == len(errs) {
		return nil, errs[0]
	}
	var out []Result
	seen := map[string]bool{}
	for rank := range MaxResults {
		for _, list := range lists {
			if rank >= len(list) || len(out) == MaxResults {
				continue
			}
			if key := letters(list[rank].Title); !seen[key] {
				seen[key] = true
				out = append(out, list[rank])
			}
		}
	}
	return out, nil
}

// letters is a title by which two spellings of it are the same.
func letters(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

func paperEntry(r Result) string {
	link := "no available link"
	switch {
	case r.PDF != "":
		link = "pdfUrl: " + r.PDF
	case r.Link != "":
		link = r.Link
	}
	year := r.Date
	if r.Year > 0 {
		year = strconv.Itoa(r.Year)
	}
	cited := ""
	if r.CitedBy > 0 {
		cited = strconv.Itoa(r.CitedBy)
	}
	return fmt.Sprintf("[%s](%s)%s%s%s\n%s", r.Title, link, labelled("publicationInfo", r.Info), labelled("Date published", year), labelled("citedBy", cited), onLine(r.Snippet))
}
