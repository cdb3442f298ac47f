package research_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/research"
	"stopgap/internal/research/article"
	"stopgap/internal/research/researchtest"
)

// whats are the log's words, in their order.
func whats(e research.Ended) []string {
	var out []string
	for _, entry := range e.Report.Log {
		out = append(out, entry.Phase+" "+entry.Kind)
	}
	return out
}

// never changes what a model writes: where it would write one thing it writes
// another.
func never(a researchtest.Author, this, that string) researchtest.Author {
	return func(ctx context.Context, prompt string) (string, error) {
		text, err := a(ctx, prompt)
		return strings.ReplaceAll(text, this, that), err
	}
}

// A planner that never ends is ended by its turns, its tokens or its pages; what
// it read stands in an outline all the same, and the report is written.
func TestPlanningEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits research.Limits
		log    []string
		pages  int
	}{
		{"turns", research.Limits{Plan: research.Budget{Turns: 6}}, []string{"plan ended_early"}, 4},
		{"turns in the middle", research.Limits{Plan: research.Budget{Turns: 4}}, []string{"plan ended_early", "write unknown_id", "write unknown_id"}, 3},
		{"generated tokens", research.Limits{Plan: research.Budget{Tokens: 20}}, []string{"plan ended_early", "write unknown_id", "write unknown_id"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			author, pages := owls()
			author.Sections = author.Sections[:1]
			r := newResearch(t, never(author.Author(), "<terminate>", "<search> more owls </search>"), pages)
			r.Limits = tt.limits
			_, ended := run(t, r)
			if log := whats(ended); !slices.Equal(log, tt.log) {
				t.Errorf("the log is %q: %+v", log, ended.Report.Log)
			}
			if ended.Summaries != tt.pages || ended.Partial {
				t.Errorf("%d pages", ended.Summaries)
			}
			if (ended.Report.Outline != nil) != (tt.pages > 0) || ended.Sections != min(tt.pages, 1) {
				t.Errorf("%d sections of %+v", ended.Sections, ended.Report.Outline)
			}
		})
	}
}

// A clock ends what is under way where the test says so.
type clock struct {
	limits []time.Duration // of the legs that had one
	end    context.CancelFunc
}

func (c *clock) limit(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(parent)
	c.limits, c.end = append(c.limits, d), end
	return ctx, end
}

// at gives the author whose time is over in one of its prompts of a kind.
func (c *clock) at(a researchtest.Author, kind researchtest.Kind, place int) researchtest.Author {
	n := 0
	return func(ctx context.Context, prompt string) (string, error) {
		if researchtest.KindOf(prompt) == kind {
			if n++; n == place {
				c.end()
				<-ctx.Done()
				return "", ctx.Err()
			}
		}
		return a(ctx, prompt)
	}
}

// A phase whose time is over ends with what it has: the outline is written, the
// sections stay. A second look at the same journals gives the same report.
func TestTimeIsOver(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits research.Limits
		kind   researchtest.Kind
		place  int
		log    string
		of     int // sections that are to be written
		pages  int
		made   int // sections
		legs   int // with a limit
	}{
		{"planning, in a turn", research.Limits{Plan: research.Budget{Time: time.Hour}}, researchtest.Plan, 4, "the planning was ended: the limit of 1h0m0s is reached", 1, 2, 1, 1},
		{"planning, while a page is read", research.Limits{Plan: research.Budget{Time: time.Hour}}, researchtest.Read, 3, "the planning was ended: the limit of 1h0m0s is reached", 1, 2, 1, 1},
		{"planning, at once", research.Limits{Plan: research.Budget{Time: time.Hour}}, researchtest.Plan, 1, "no page was read, so there is nothing to write from", 1, 0, 0, 1},
		{"writing, after a section", research.Limits{Write: research.Budget{Time: time.Hour}}, researchtest.Write, 3, "the writing was ended: the limit of 1h0m0s is reached", 2, 8, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			author, pages := owls()
			author.Sections = author.Sections[:tt.of]
			var c clock
			r := newResearch(t, c.at(author.Author(), tt.kind, tt.place), pages)
			r.Runner.WithTimeout, r.Limits = c.limit, tt.limits
			_, ended := run(t, r)
			if ended.Partial || ended.Summaries != tt.pages || ended.Sections != tt.made || ended.Answer == "" {
				t.Errorf("%+v", ended)
			}
			if !slices.ContainsFunc(ended.Report.Log, func(e article.Entry) bool { return e.Message == tt.log }) {
				t.Errorf("the log: %+v", ended.Report.Log)
			}
			if len(c.limits) != tt.legs || c.limits[0] != time.Hour || c.limits[tt.legs-1] > time.Hour {
				t.Errorf("the limits %v", c.limits)
			}
			_, again := run(t, r)
			if got, want := markdown(t, again), markdown(t, ended); got != want || len(c.limits) != tt.legs {
				t.Errorf("then the report is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A page beyond the limit is refused, which the planner is told.
func TestPagesAreLimited(t *testing.T) {
	author, pages := owls()
	author.Sections = author.Sections[:1]
	r := newResearch(t, author.Author(), pages)
	r.Limits.Pages = 3
	_, ended := run(t, r)
	if ended.Summaries != 3 || !slices.Contains(whats(ended), "plan unread_page") {
		t.Errorf("%d pages; %+v", ended.Summaries, ended.Report.Log)
	}
}

// A writer that never ends keeps the sections that it wrote.
func TestWritingEnds(t *testing.T) {
	author, pages := owls()
	r := newResearch(t, never(author.Author(), "<write_terminate>", "<retrieve> <id>1</id> </retrieve>"), pages)
	r.Limits.Write.Turns = 8
	_, ended := run(t, r)
	if ended.Sections != 3 || ended.Answer != author.Answer || !slices.Equal(whats(ended), []string{"write ended_early"}) {
		t.Errorf("%d sections, %q, %+v", ended.Sections, ended.Answer, ended.Report.Log)
	}
}

// Another question begins with what the bank has, and reads none of it again.
func TestBankIsUsedAgain(t *testing.T) {
	author, pages := owls()
	author.Sections = author.Sections[:1]
	first := newResearch(t, author.Author(), pages)
	first.Bank = filepath.Join(t.TempDir(), "owls.db")
	run(t, first)

	var prompts []string
	second := newResearch(t, researchtest.Author(func(_ context.Context, prompt string) (string, error) {
		prompts = append(prompts, prompt)
		switch {
		case strings.Contains(prompt, "- <write_outline>:"):
			if strings.Count(prompt, "<information>") == 3 { // one stands in the instructions
				return "<write_outline>", nil
			}
			if strings.Contains(prompt, "The outline so far:") {
				return "<terminate>", nil
			}
			return "<access> owl-0-1.md <goal> fact 1 of the Barn owl </goal> </access>", nil
		case strings.Contains(prompt, "- <write_terminate>:"):
			return "<write_terminate>", nil
		case strings.Contains(prompt, "Write the whole outline anew"):
			return "<outline>\n## Owls [1, 4]\n</outline>", nil
		}
		return "<answer>Two.</answer>", nil
	}), pages)
	second.Bank, second.Question = first.Bank, "How many eggs does the barn owl have?"
	events, ended := run(t, second)
	if began := events[0].(research.Began); began.Given != 4 || ended.Summaries != 4 || ended.Answer != "Two." {
		t.Errorf("%+v, %+v", began, ended)
	}
	if !strings.Contains(prompts[0], "Summaries since the last outline, by number:\n[1] Barn owl, part 0: 2 eggs in 2000.\n[2]") {
		t.Errorf("the first prompt is %s", prompts[0])
	}
	for _, ev := range events {
		if s, ok := ev.(research.SummaryStored); ok && (s.ID != 2 || !s.Known) {
			t.Errorf("%+v", s)
		}
	}
	for _, p := range prompts {
		if strings.Contains(p, `"rational"`) {
			t.Errorf("a page was read again: %s", p)
		}
	}
}

// A server that fails ends the research with what there is; the same research
// goes on where it was.
func TestServerFails(t *testing.T) {
	author, pages := owls()
	model := author.Author()
	_, ended := run(t, newResearch(t, model, pages))
	want := markdown(t, ended)
	fault := errors.New("the server is gone")
	for _, at := range []int{1, 5, 11, 30, 38} {
		n := 0
		r := newResearch(t, researchtest.Author(func(ctx context.Context, prompt string) (string, error) {
			if n++; n == at {
				return "", fault
			}
			return model(ctx, prompt)
		}), pages)
		var failed error
		for ev, err := range r.Run(t.Context()) {
			if failed = err; err != nil {
				break
			}
			if e, ok := ev.(research.Ended); ok && (!e.Partial || !slices.Contains(whats(e), " partial")) {
				t.Errorf("request %d: %+v", at, e)
			}
		}
		if !errors.Is(failed, fault) {
			t.Errorf("request %d: %v", at, failed)
		}
		if _, again := run(t, r); markdown(t, again) != want {
			t.Errorf("request %d: the report is\n%s", at, markdown(t, again))
		}
	}
}

// A folder has one research, which goes on as it began.
func TestChangedResearch(t *testing.T) {
	author, pages := owls()
	r := newResearch(t, author.Author(), pages)
	r.Settings = map[string]string{"--pages": "100"}
	run(t, r)
	r.Question, r.Settings = "Why?", map[string]string{"--pages": "7", "--seed": "1"}
	var changed *research.ChangedError
	for _, err := range r.Run(t.Context()) {
		if !errors.As(err, &changed) {
			t.Fatal(err)
		}
	}
	want := []string{
		`the question was "How many eggs do owls have?" and is "Why?"`, `--pages was "100" and is "7"`, `--seed was nothing and is "1"`,
	}
	if !slices.Equal(changed.Changes, want) {
		t.Errorf("%q", changed.Changes)
	}
}
