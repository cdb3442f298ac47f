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
	if ended.Sections != 3 || ended.Answer != author.Answer || ended.Partial || ended.Citations != 12 || ended.Unsupported != 0 || ended.Notes != 0 {
		t.Errorf("%+v", ended)
	}
	kinds := map[string]int{}
	for _, ev := range events {
		kinds[ev.Kind()]++
	}
	for kind, want := range map[string]int{
		"research_began": 1, "searched": 3, "page_read": 12, "summary_stored": 12, "outline_changed": 3, "retrieved": 3,
		"section_written": 3, "citation_checked": 12, "phase_ended": 4, "research_ended": 1, "noted": 0,
	} {
		if kinds[kind] != want {
			t.Errorf("%d of %s, want %d", kinds[kind], kind, want)
		}
	}
}

// markdown is a report as its readers get it.
func markdown(t *testing.T, e research.Ended) string {
	t.Helper()
	var b strings.Builder
	if err := e.Report.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGoesOn leaves a research at every event, as Ctrl-C does and as a consumer
// does that has gone, and goes on: the report is the same.
func TestGoesOn(t *testing.T) {
	author, pages := owls()
	author.Sections = author.Sections[:2]
	for i := range author.Sections {
		author.Sections[i].Pages = author.Sections[i].Pages[:2]
	}
	model := author.Author()
	events, ended := run(t, newResearch(t, model, pages))
	want := markdown(t, ended)
	for at, ev := range events {
		if ran, ok := ev.(research.Ran); ok && at%13 != 0 && ran.Kind() != "called" {
			continue // of the rest, some will do
		}
		r := newResearch(t, model, pages)
		leave(t, r, at, at%2 == 0)
		_, again := run(t, r)
		if got := markdown(t, again); got != want || again.Partial {
			t.Fatalf("left at event %d, %s: the report is\n%s\nwant\n%s", at, ev.Kind(), got, want)
		}
	}
}

// leave runs a research to an event and leaves it there. It gives what was told.
func leave(t *testing.T, r *research.Research, at int, cancelled bool) []research.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []research.Event
	for ev := range r.Run(ctx) {
		if ev != nil {
			events = append(events, ev)
		}
		if len(events) == at+1 {
			cancel()
		}
		if len(events) > at && !cancelled {
			break
		}
	}
	return events
}

// What was told before a research was left is told again as what was done
// before, wherever that was.
func TestToldOnce(t *testing.T) {
	author, pages := owls()
	author.Sections = author.Sections[:1]
	author.Sections[0].Pages = author.Sections[0].Pages[:2]
	model := author.Author()
	all, _ := run(t, newResearch(t, model, pages))
	for at, ev := range all {
		if ev.Kind() != "stopped" && ev.Kind() != "summary_stored" { // some will do
			continue
		}
		r := newResearch(t, model, pages)
		told := news(t, leave(t, r, at, false))
		again, _ := run(t, r)
		for _, line := range news(t, again) {
			if slices.Contains(told, line) {
				t.Errorf("left at event %d, %s: told twice: %s", at, ev.Kind(), line)
			}
		}
	}
}

// news is what events tell a reader, but for what was done before.
func news(t *testing.T, events []research.Event) []string {
	t.Helper()
	var out []string
	replayed := false
	for _, ev := range events {
		switch ev := ev.(type) {
		case research.PhaseBegan:
			replayed = ev.Replayed
		case research.Ran:
			if replayed {
				t.Errorf("%s of what was done before", ev.Kind())
			}
		case research.Searched, research.SummaryStored, research.OutlineChanged, research.Retrieved, research.SectionWritten, research.Noted:
			line, err := research.MarshalEvent(ev)
			if err != nil {
				t.Fatal(err)
			}
			if !replayed {
				out = append(out, string(line))
			}
		}
	}
	return out
}
