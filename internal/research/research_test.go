package research_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/research"
	"stopgap/internal/research/researchtest"
	"stopgap/models"
	"stopgap/runner"
)

// A shelf is a source of pages by their addresses.
type shelf map[string]research.Page

func (s shelf) Search(_ context.Context, queries []string) (string, error) {
	var out []string
	for address, p := range s {
		out = append(out, fmt.Sprintf("%s [%s] (score 1.00)", p.Title, address))
	}
	slices.Sort(out)
	return strings.Join(out, "\n"), nil
}

func (s shelf) Read(_ context.Context, address string) (research.Page, error) {
	p, ok := s[address]
	if !ok {
		return p, fmt.Errorf("%w: %s", research.ErrElsewhere, address)
	}
	return p, nil
}

// owls is a whole research about three owls, and its pages.
func owls() (*researchtest.Researcher, shelf) {
	pages := shelf{}
	r := &researchtest.Researcher{Answer: "Three owls."}
	for i, name := range []string{"Barn owl", "Tawny owl", "Snowy owl"} {
		s := researchtest.Section{Title: name, Queries: []string{name}}
		for j := range 4 {
			p := researchtest.Page{
				URL: fmt.Sprintf("owl-%d-%d.md", i, j), Goal: fmt.Sprintf("fact %d of the %s", j, name),
				Evidence: fmt.Sprintf("The %s has %d eggs in year %d.", name, i+2, 2000+j), Summary: fmt.Sprintf("%d eggs in %d.", i+2, 2000+j),
			}
			pages[p.URL] = research.Page{Title: fmt.Sprintf("%s, part %d", name, j), Text: "It is told of owls. " + p.Evidence + " That is all."}
			s.Pages = append(s.Pages, p)
		}
		r.Sections = append(r.Sections, s)
	}
	return r, pages
}

// newResearch is a research in a folder of its own.
func newResearch(t *testing.T, m models.Model, source research.Source) *research.Research {
	t.Helper()
	scripts, err := research.LoadScripts("", "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return &research.Research{
		Question: "How many eggs do owls have?", Date: "2026-11-22", Folder: t.TempDir(),
		Runner: &runner.Runner{Model: m, Name: "researcher", Context: 32_000}, Scripts: scripts, Sources: []research.Source{source},
	}
}

// run runs a research and gives its events and how it ended.
func run(t *testing.T, r *research.Research) ([]research.Event, research.Ended) {
	t.Helper()
	var events []research.Event
	var ended research.Ended
	for ev, err := range r.Run(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
		if e, ok := ev.(research.Ended); ok {
			ended = e
		}
	}
	return events, ended
}

func TestWholeResearch(t *testing.T) {
	author, pages := owls()
	events, ended := run(t, newResearch(t, author.Author(), pages))
	for _, ev := range events {
		switch ev := ev.(type) {
		case research.Ran, research.Moved:
		default:
			line, err := research.MarshalEvent(ev)
			t.Logf("%.300s %v", line, err)
		}
	}
	if ended.Sections != 3 || ended.Answer != author.Answer || ended.Partial {
		t.Errorf("%+v", ended)
	}
}
