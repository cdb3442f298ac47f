package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/goal"
)

const (
	// A model reads for a visit, which takes as long as it takes.
	visitTime = 15 * time.Minute
	maxPages  = 10
)

// visit reads pages against a goal.
type visit struct{ *Tools }

func (visit) Deadline() time.Duration { return visitTime }

func (visit) Spec() tools.Spec {
	return tools.Spec{
		Name:         "visit",
		Description:  "Visit webpage(s) and return the summary of the content.",
		Parameters:   json.RawMessage(`{"type": "object", "properties": {"url": {"type": "array", "items": {"type": "string"}, "description": "The URL(s) of the webpage(s) to visit. Can be a single URL or an array of URLs."}, "goal": {"type": "string", "description": "The specific information goal for visiting webpage(s)."}}, "required": ["url", "goal"]}`),
		Capabilities: []tools.Capability{tools.Net},
	}
}

// Run gives a frame a page. A page that cannot be read has its frame too, and a
// line that says why; a model that cannot be asked is an error.
func (t visit) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		URL  json.RawMessage
		Goal string
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	var addresses []string
	if json.Unmarshal(in.URL, &addresses) != nil {
		var one string
		if err := json.Unmarshal(in.URL, &one); err != nil {
			return "", errors.New(`"url" is neither a string nor a list of strings`)
		}
		addresses = []string{one}
	}
	if len(addresses) == 0 || len(addresses) > maxPages {
		return "", fmt.Errorf("a call takes 1 to %d addresses, not %d", maxPages, len(addresses))
	}
	if t.options.Goal.Ask == nil {
		return "", errors.New("there is no model to read pages with; read_url gives a page as it is")
	}
	var parts []string
	for _, address := range addresses {
		text, err := t.report(ctx, address, in.Goal)
		if err != nil {
			return strings.Join(parts, between), err
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, between), nil
}

// report visits one page.
func (t visit) report(ctx context.Context, address, wanted string) (string, error) {
	d, _, err := t.page(ctx, address)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return goal.Unread(address, wanted) + fmt.Sprintf("Reason: %v.\n", err), nil
	}
	return t.options.Goal.Report(ctx, address, d.Title+"\n\n"+d.Markdown, wanted)
}

// readURL gives a page whole. Its name is not read, which is that of the tool
// for the user's own documents.
type readURL struct{ *Tools }

func (readURL) Spec() tools.Spec {
	return tools.Spec{
		Name:         "read_url",
		Description:  "Read a webpage or a PDF on the web, as Markdown.",
		Parameters:   json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","description":"The address, which begins with http:// or https://."}},"required":["url"]}`),
		Capabilities: []tools.Capability{tools.Net},
	}
}

func (t readURL) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ URL string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	d, p, err := t.page(ctx, in.URL)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s [%s]\n\n%s", d.Title, p.URL, d.Markdown), nil
}
