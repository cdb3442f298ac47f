package research_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"stopgap/internal/research"
	"stopgap/internal/research/researchtest"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/tools"
)

// A size is how a research of 200 pages is cut into sections, each of which is
// planned before the next one is read.
type size struct{ sections, pages int }

// library is a research of 200 pages, each of which marks its own words, those
// of its evidence and those of its summary.
func (n size) library() (*researchtest.Researcher, shelf) {
	pages := shelf{}
	r := &researchtest.Researcher{Answer: "Two hundred."}
	at := 0
	for i := range n.sections {
		s := researchtest.Section{Title: fmt.Sprintf("Part %d", i+1), Brief: true}
		for range n.pages {
			at++
			p := researchtest.Page{
				URL: fmt.Sprintf("page-%d.md", at), Goal: fmt.Sprintf("what page number %d tells of the matter", at),
				Evidence: fmt.Sprintf("evidence%d%s", at, strings.Repeat(", so and not otherwise", 8)),
				Summary:  fmt.Sprintf("summary%d%s", at, strings.Repeat(", as somebody says", 12)),
				Claim:    fmt.Sprintf("Claim %d.", at),
			}
			pages[p.URL] = research.Page{
				Title: fmt.Sprintf("Page %d", at),
				Text:  fmt.Sprintf("text%d. %s%s", at, strings.Repeat("Much is told here. ", 150), p.Evidence),
			}
			s.Pages = append(s.Pages, p)
		}
		r.Sections = append(r.Sections, s)
	}
	return r, pages
}

// A request is what a model was asked, and how much it may write.
type request struct {
	prompt string
	max    int
}

// A listener is a model whose requests are kept.
type listener struct {
	models.Model
	mu       sync.Mutex
	requests []request
}

func (l *listener) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	var b strings.Builder
	for _, s := range req.Prompt {
		b.WriteString(s.Text)
	}
	l.mu.Lock()
	l.requests = append(l.requests, request{b.String(), req.MaxTokens})
	l.mu.Unlock()
	return l.Model.Stream(ctx, req)
}

// Two hundred summaries in a context of 32 000 tokens and in one of 8 000, with
// an outline after each ten of them and after each hundred: no prompt comes near
// the end of the context, and each has the summaries that its phase needs at that
// moment and no others.
func TestTwoHundredSummaries(t *testing.T) {
	for _, n := range []size{{20, 10}, {2, 100}} {
		for _, window := range []int{32_000, 8_000} {
			t.Run(fmt.Sprintf("%d in %d", n.pages, window), func(t *testing.T) {
				t.Parallel()
				author, pages := n.library()
				model := &listener{Model: author.Author()}
				r := newResearch(t, model, pages)
				r.Runner.Context = window
				r.Limits = research.Limits{Pages: 500, Plan: research.Budget{Turns: 1000}, Write: research.Budget{Turns: 1000}}
				events, ended := run(t, r)
				for _, ev := range events {
					if n, ok := ev.(research.Noted); ok {
						t.Errorf("the log says: %s: %s", n.Phase, n.Text)
					}
				}
				if ended.Summaries != n.sections*n.pages || ended.Sections != n.sections || ended.Answer != author.Answer || ended.Partial {
					t.Errorf("%d summaries, %d sections, %q", ended.Summaries, ended.Sections, ended.Answer)
				}
				model.fit(t, window)
				n.needed(t, model.requests)
				inJournals(t, r.Folder, model.requests)
			})
		}
	}
}

// fit asserts that each prompt leaves room for what may be written behind it.
func (l *listener) fit(t *testing.T, window int) {
	t.Helper()
	longest := map[researchtest.Kind]int{}
	for _, q := range l.requests {
		kind := researchtest.KindOf(q.prompt)
		n := tools.EstimateTokens(q.prompt)
		longest[kind] = max(longest[kind], n)
		if n+q.max > window {
			t.Errorf("a prompt of the phase %s has %d tokens and %d to write, of %d", kind, n, q.max, window)
		}
	}
	t.Logf("tokens of the longest prompts in a context of %d: %v", window, longest)
	if len(longest) != 5 {
		t.Errorf("the phases: %v", longest)
	}
}

// marked are the numbers that stand behind a mark, in their order.
func marked(text, mark string) []int {
	var out []int
	for _, m := range regexp.MustCompile(`\b`+mark+`([0-9]+)\b`).FindAllStringSubmatch(text, -1) {
		if n, _ := strconv.Atoi(m[1]); !slices.Contains(out, n) { // digits
			out = append(out, n)
		}
	}
	return out
}

// needed looks at every prompt for the words of every summary, of every evidence
// and of every page. What a phase needs is:
//
//   - to read: one page, and no summary;
//   - to plan: the summaries since the last outline, without their evidence;
//   - to outline: the same;
//   - to write: the summaries that the outline cites for the section at hand;
//   - to answer: none, for the report has them.
func (n size) needed(t *testing.T, requests []request) {
	t.Helper()
	covered, read, written := 0, 0, 0 // what outlines have, what was read, how often the writer was asked
	for i, q := range requests {
		summaries, evidence, texts := marked(q.prompt, "summary"), marked(q.prompt, "evidence"), marked(q.prompt, "text")
		from, to := 1, 0 // the summaries that may stand in the prompt
		switch researchtest.KindOf(q.prompt) {
		case researchtest.Read:
			read++
			if !slices.Equal(texts, []int{read}) || !slices.Equal(evidence, texts) || len(summaries) > 0 {
				t.Fatalf("request %d, reading page %d: texts %v, evidence %v, summaries %v", i+1, read, texts, evidence, summaries)
			}
			continue
		case researchtest.Plan:
			covered = max(covered, lastCited(q.prompt))
			from, to, evidence = covered+1, read, append(evidence, texts...)
		case researchtest.Outline:
			from, to, evidence = covered+1, read, append(evidence, texts...)
			covered = max(covered, lastOf(summaries))
		case researchtest.Write: // twice for a section: it is fetched for, and written
			section := written / 2
			written++
			from, to, evidence = section*n.pages+1, (section+1)*n.pages, texts
		case researchtest.Answer:
			evidence = append(evidence, texts...)
		}
		if len(evidence) > 0 {
			t.Errorf("request %d, %s: has the pages' own words: %v", i+1, researchtest.KindOf(q.prompt), evidence)
		}
		for _, k := range summaries {
			if k < from || k > to {
				t.Errorf("request %d, %s: has summary %d, and needs %d to %d", i+1, researchtest.KindOf(q.prompt), k, from, to)
			}
		}
	}
	if read != n.sections*n.pages || covered != read || written != 2*n.sections+1 {
		t.Errorf("%d pages were read, %d outlined, and the writer was asked %d times", read, covered, written)
	}
}

// lastCited is the highest number that the outline of a planner's prompt cites.
func lastCited(prompt string) int {
	_, outline, _ := strings.Cut(prompt, "\n\nThe outline so far:\n")
	outline, _, _ = strings.Cut(outline, "\n\n")
	n := 0
	for _, m := range regexp.MustCompile(`[0-9]+(?:[,\]])`).FindAllString(outline, -1) {
		k, _ := strconv.Atoi(m[:len(m)-1]) // digits
		n = max(n, k)
	}
	return n
}

func lastOf(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

// inJournals asserts that the journals have no prompt but those that were looked
// at.
func inJournals(t *testing.T, folder string, requests []request) {
	t.Helper()
	asked := map[string]bool{}
	for _, q := range requests {
		asked[q.prompt] = true
	}
	for _, path := range journals(t, folder) {
		runs, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range runs {
			p, err := trace.NewDeck(runs).Prompt(i)
			if err != nil {
				t.Fatal(err)
			}
			if !asked[p] {
				t.Errorf("%s: nobody saw the prompt %.200q", filepath.Base(path), p)
			}
		}
	}
}

// journals are the files of a research's legs.
func journals(t *testing.T, folder string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(folder, "journals", "*.trace"))
	if err != nil || len(list) < 3 {
		t.Fatalf("%d journals, %v", len(list), err)
	}
	return list
}
