package research_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/research"
	"stopgap/internal/research/bank"
	"stopgap/internal/research/researchtest"
	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/tools/goal"
)

// A meddler writes in the place of an author where it wants to: the text and
// true. at counts the prompts of a kind, from 0.
type meddler func(kind researchtest.Kind, at int, prompt string) (string, bool)

// meddle lets the meddler in. The same prompt gets the same text again.
func meddle(a researchtest.Author, m meddler) researchtest.Author {
	counts := map[researchtest.Kind]int{}
	said := map[string]string{}
	return func(ctx context.Context, prompt string) (string, error) {
		if text, ok := said[prompt]; ok {
			return text, nil
		}
		kind := researchtest.KindOf(prompt)
		at := counts[kind]
		counts[kind]++
		if text, ok := m(kind, at, prompt); ok {
			said[prompt] = text
			return text, nil
		}
		return a(ctx, prompt)
	}
}

// of gives the events of a type.
func of[T research.Event](events []research.Event) []T {
	var out []T
	for _, ev := range events {
		if e, ok := ev.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

// In ASearcherWeaver each section takes the place of the one before, and the
// report is the last one.
func TestOriginalMistakeReportIsOverwritten(t *testing.T) {
	author, pages := owls()
	_, ended := run(t, newResearch(t, author.Author(), pages))
	text, at := markdown(t, ended), 0
	for _, s := range author.Sections {
		i := strings.Index(text[at:], "## "+s.Title+"\n")
		if i < 0 {
			t.Fatalf("no section %q behind byte %d of\n%s", s.Title, at, text)
		}
		at += i
		for _, p := range s.Pages {
			if !strings.Contains(text[at:], p.Summary) {
				t.Errorf("section %q does not say %q", s.Title, p.Summary)
			}
		}
	}
}

// In ASearcherWeaver an access without a goal ends the run with an exception.
func TestOriginalMistakeMissingGoal(t *testing.T) {
	for name, spelled := range map[string]string{
		"no tag": "<access> owl-0-0.md </access>", "empty": "<access> owl-0-0.md <goal>  </goal> </access>", "open": "<access> owl-0-0.md <goal> </access>",
	} {
		t.Run(name, func(t *testing.T) {
			author, pages := owls()
			author.Sections[0].Pages[0].Goal = ""
			model := &listener{Model: meddle(author.Author(), func(kind researchtest.Kind, at int, _ string) (string, bool) {
				return spelled, kind == researchtest.Plan && at == 1 && author.Skip()
			})}
			r := newResearch(t, model, pages)
			events, ended := run(t, r)
			if ended.Sections != 3 || ended.Summaries != 12 {
				t.Errorf("%+v", ended)
			}
			if read := of[research.PageRead](events); read[0].Goal != goal.DefaultGoal || read[0].Error != "" {
				t.Errorf("%+v", read[0])
			}
			if !slices.ContainsFunc(model.requests, func(q request) bool {
				return researchtest.KindOf(q.prompt) == researchtest.Read && strings.Contains(q.prompt, goal.DefaultGoal)
			}) {
				t.Error("no page was read with the default goal")
			}
		})
	}
}

// In ASearcherWeaver a number that the bank does not have gives nothing, and
// nobody is told.
func TestOriginalMistakeUnknownNumbersVanish(t *testing.T) {
	author, pages := owls()
	model := &listener{Model: meddle(author.Author(), func(kind researchtest.Kind, at int, _ string) (string, bool) {
		return "<retrieve> <id>1</id>, <id>99</id>, <id>98</id> <goal> Barn owl </goal> </retrieve>", kind == researchtest.Write && at == 0
	})}
	_, ended := run(t, newResearch(t, model, pages))
	if ended.Sections != 3 {
		t.Errorf("%+v", ended)
	}
	told := slices.IndexFunc(model.requests, func(q request) bool {
		return researchtest.KindOf(q.prompt) == researchtest.Write && strings.Contains(q.prompt, "there is no summary [99], [98]")
	})
	if told < 0 {
		t.Error("the writer is not told")
	}
	if log := ended.Report.Log; len(log) != 1 || log[0].Kind != "unknown_id" || !strings.Contains(log[0].Message, "[99], [98]") {
		t.Errorf("the log: %+v", log)
	}
}

// In ASearcherWeaver a section that was written is stored twice.
func TestOriginalMistakeSectionsAreStoredTwice(t *testing.T) {
	author, pages := owls()
	r := newResearch(t, author.Author(), pages)
	events, ended := run(t, r)
	again, _ := run(t, r) // it has ended: all of it is read from its journals
	for _, list := range [][]research.Event{events, again} {
		var numbers []int
		for _, s := range of[research.SectionWritten](list) {
			numbers = append(numbers, s.Number)
		}
		if !slices.Equal(numbers, []int{1, 2, 3}) {
			t.Errorf("the sections %v", numbers)
		}
	}
	text := markdown(t, ended)
	for _, s := range author.Sections {
		if n := strings.Count(text, "\n## "+s.Title+"\n"); n != 1 {
			t.Errorf("section %q stands there %d times", s.Title, n)
		}
	}
	if n := written(t, r.Folder); n != 3 {
		t.Errorf("%d sections in the journals", n)
	}
	b, err := bank.Open(t.Context(), r.Folder+"/bank.db")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if all, err := b.Since(t.Context(), 0); err != nil || len(all) != 12 {
		t.Errorf("%d summaries in the bank, %v", len(all), err)
	}
}

// The journal of each leg has its end, also of one that was handed over to the
// next, and plays as it was recorded.
func TestLegsEnd(t *testing.T) {
	author, pages := owls()
	author.Sections = author.Sections[:1]
	r := newResearch(t, never(author.Author(), "<write_terminate>", "<retrieve> <id>1</id> </retrieve>"), pages)
	r.Limits.Write.Turns = 4
	leave(t, r, 20, false)
	run(t, r)
	var ends []runner.Termination
	for _, path := range journals(t, r.Folder) {
		runs, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := trace.NewDeck(runs).Replay(t.Context(), trace.Last(runs))
		if err != nil || report.Cut || len(report.Differences) > 0 {
			t.Errorf("%s: %+v, %v", filepath.Base(path), report, err)
			continue
		}
		ends = append(ends, report.Outcome.Termination)
	}
	over := runner.TermHandedOver // by write_outline, the outline, terminate, a section, and when the turns are used up
	if want := []runner.Termination{over, over, over, over, over, runner.TermAnswered}; !slices.Equal(ends, want) {
		t.Errorf("the legs end with %q, want %q", ends, want)
	}
}

// written counts the sections in the journals of a folder.
func written(t *testing.T, folder string) int {
	t.Helper()
	n := 0
	for _, path := range journals(t, folder) {
		runs, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			for _, rec := range run.Records {
				if rec.Kind == "returned" && strings.Contains(string(rec.Event), `"name":"write","status":"ok"`) {
					n++
				}
			}
		}
	}
	return n
}
