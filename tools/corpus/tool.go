package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stopgap/tools"
)

// A searcher finds and reads documents, here or on a server.
type searcher interface {
	Search(ctx context.Context, queries []string, k int) ([]Found, error)
	Read(ctx context.Context, id string) (Document, error)
}

// Tools gives the tools that a model uses the corpus with: search and read.
func (x *Index) Tools() []tools.Tool { return toolsOf(x, x.hits) }

func toolsOf(s searcher, k int) []tools.Tool {
	if k <= 0 {
		k = DefaultHits
	}
	return []tools.Tool{searchTool{s, k}, readTool{s}}
}

// The parameters as the model sees them. Models often write one query as a
// string, so both are taken.
const (
	searchParameters = `{"type":"object","properties":{"query":{"type":["array","string"],"items":{"type":"string"},"minItems":1,"maxItems":10,"description":"What to look for: a few words, or a list of several queries."}},"required":["query"]}`
	readParameters   = `{"type":"object","properties":{"id":{"type":"string","description":"The id of a document, as it stands in square brackets in the results of search."}},"required":["id"]}`
)

type searchTool struct {
	corpus searcher
	k      int
}

func (searchTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "search",
		Description: "Search the user's documents. Gives a line for each hit: title, matching text, [id] and score.",
		Parameters:  json.RawMessage(searchParameters),
	}
}

func (t searchTool) Run(ctx context.Context, args json.RawMessage) (string, error) {
	queries, err := queriesOf(args)
	if err != nil {
		return "", err
	}
	found, err := t.corpus.Search(ctx, queries, t.k)
	if err != nil {
		return "", err
	}
	return Render(found), nil
}

func queriesOf(args json.RawMessage) ([]string, error) {
	var in struct{ Query json.RawMessage }
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	var list []string
	if err := json.Unmarshal(in.Query, &list); err == nil {
		return list, nil
	}
	var one string
	if err := json.Unmarshal(in.Query, &one); err != nil {
		return nil, errors.New(`"query" is neither a string nor a list of strings`)
	}
	return []string{one}, nil
}

type readTool struct{ corpus searcher }

func (readTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "read",
		Description: "Read one of the user's documents.",
		Parameters:  json.RawMessage(readParameters),
	}
}

func (t readTool) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ ID string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	d, err := t.corpus.Read(ctx, in.ID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s [%s]\n\n%s", d.Title, d.ID, d.Text), nil
}

// The bounds of what a line of results repeats.
const (
	maxTitleRunes = 120
	maxQueryRunes = 200
)

// Render writes what a search found as the model reads it: a line a hit,
//
//	Title. Snippet [id] (score 12.31)
//
// and, where there are several queries, a line before the hits of each.
// Title first and id last is what small models quote best; models are trained
// on these very lines, so they change only together.
func Render(found []Found) string {
	var b strings.Builder
	for i, f := range found {
		query := abridge(squeeze(f.Query), maxQueryRunes)
		if i > 0 {
			b.WriteByte('\n')
		}
		switch {
		case f.Terms == 0:
			fmt.Fprintf(&b, "The query %q has no words to look for.\n", query)
		case len(f.Hits) == 0:
			fmt.Fprintf(&b, "No results for %q. Try other words.\n", query)
		case len(found) > 1:
			fmt.Fprintf(&b, "Results for %q:\n", query)
		}
		for _, h := range f.Hits {
			b.WriteString(line(h))
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// line writes one hit.
func line(h Hit) string {
	title := abridge(squeeze(h.Title), maxTitleRunes)
	if !strings.ContainsAny(lastRune(title), ".!?:。！？：…") {
		title += "."
	}
	return fmt.Sprintf("%s %s [%s] (score %.2f)", title, squeeze(h.Snippet), h.ID, h.Score)
}

func lastRune(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return ""
	}
	return string(r[len(r)-1:])
}

func abridge(s string, most int) string {
	if n := runes(s, most); n < len(s) {
		return s[:n] + "…"
	}
	return s
}
