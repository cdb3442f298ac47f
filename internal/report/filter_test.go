//go:build unix

package report

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"stopgap/internal/chromiumtest"
	"stopgap/internal/compare"
)

// counts are how many items a made-up comparison has of which something holds,
// worked out from the report itself.
func counts(r *compare.Report, holds func(runs [][]*compare.Run) bool) int {
	n := 0
	for _, it := range r.Items {
		if holds(it.Runs) {
			n++
		}
	}
	return n
}

// every reports whether all runs of some configurations have a score.
func every(score float64, configurations ...int) func([][]*compare.Run) bool {
	return func(runs [][]*compare.Run) bool {
		for _, c := range configurations {
			for _, run := range runs[c] {
				if run.Scores["exact_match"] != score {
					return false
				}
			}
		}
		return true
	}
}

// state is what the page shows.
type state struct {
	Count   string `json:"count"`
	Rows    int    `json:"rows"`
	Columns int    `json:"columns"`
	Hash    string `json:"hash"`
}

// settled gives what the page shows once what was typed has been taken.
func settled(b *chromiumtest.Tab) state {
	return chromiumtest.Run[state](b, `new Promise(r => setTimeout(r, 400)).then(() => ({
		count: document.getElementById("count").textContent, hash: location.hash,
		rows: [...document.querySelectorAll("tr.item")].filter(e => e.getClientRects().length).length,
		columns: [...document.querySelectorAll("#items thead [data-c]")].filter(e => e.getClientRects().length).length,
	}))`)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	r := made(abilities, 40, 2)
	b := chromiumtest.Open(t, drawn(t, r, madeRuns), 1280)
	set := func(name, value string) string {
		return fmt.Sprintf(`(() => { const e = document.getElementById("filters").elements[%q]; e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); })()`, name, value)
	}
	box := func(i int) string { return fmt.Sprintf(`document.querySelectorAll("[name=c]")[%d].click()`, i) }
	differing := counts(r, func(runs [][]*compare.Run) bool {
		var sums []float64
		for _, c := range runs {
			sums = append(sums, c[0].Scores["exact_match"]+c[1].Scores["exact_match"])
		}
		return slices.Max(sums) != slices.Min(sums)
	})
	said := counts(r, func(runs [][]*compare.Run) bool {
		return slices.ContainsFunc(slices.Concat(runs...), func(run *compare.Run) bool { return run.Seed%50 == 7 })
	})
	if differing == 0 || differing == 40 || said == 0 || said == 40 {
		t.Fatalf("%d items differ, %d say it: the test tests nothing", differing, said)
	}
	pair := r.Pairs[1]
	for _, step := range []struct {
		what, do      string
		rows, columns int
		hash          string
	}{
		{"nothing", "0", 40, 4, ""},
		{"right in all", set("show", "right"), counts(r, every(1, 0, 1, 2, 3)), 4, "#show=right"},
		{"right in none", set("show", "wrong"), counts(r, every(0, 0, 1, 2, 3)), 4, "#show=wrong"},
		{"where they differ", set("show", "differs"), differing, 4, "#show=differs"},
		{"a pair", `document.querySelectorAll(".pairs a")[1].click()`, len(pair.AheadA) + len(pair.AheadB), 2, "#only=A.C&show=differs"},
		{"another configuration", set("show", "wrong") + ";" + box(0), counts(r, every(0, 2)), 1, "#show=wrong&only=C"},
		{"no configuration", box(2), 0, 0, "#show=wrong&only="},
		{"all of it", `document.querySelector("#filters [type=reset]").click()`, 40, 4, ""},
		{"text of a question", set("text", "NUMBER 17 of"), 1, 4, "#text=NUMBER+17+of"},
		{"text of a tool", set("text", "river number 7 rises"), said, 4, "#text=river+number+7+rises"},
		{"text of the template", set("text", "each call stands between"), 0, 4, "#text=each+call+stands+between"},
		{"an address", `location.hash = "#only=B.D&show=right"`, counts(r, every(1, 1, 3)), 2, "#only=B.D&show=right"},
		{"a wrong address", `location.hash = "#only=Z&show=<b>&text=%FF"`, 0, 0, "#only=Z&show=%3Cb%3E&text=%FF"},
	} {
		chromiumtest.Run[any](b, step.do)
		want := state{fmt.Sprintf("%d of 40 items", step.rows), step.rows, step.columns, step.hash}
		if got := settled(b); got != want {
			t.Errorf("%s: %+v, not %+v", step.what, got, want)
		}
	}
	b.Quiet()
}

// What a pair's link shows is what the pair counts: items that differ by the
// metric of the comparison, without those that were not scored.
func TestFilterOfWhatWasScored(t *testing.T) {
	t.Parallel()
	r := made(abilities[:2], 10, 2)
	for i := range r.Items {
		for c := range 2 {
			for _, run := range r.Items[i].Runs[c] {
				run.Scores["exact_match"], run.Tokens, run.Scores["tokens"] = 1, 100, 100
			}
		}
	}
	for _, runs := range r.Items[0].Runs { // nothing that could be right
		for _, run := range runs {
			delete(run.Scores, "exact_match")
		}
	}
	for _, run := range r.Items[1].Runs[0] { // a judge that was not sure
		delete(run.Scores, "exact_match")
	}
	r.Items[2].Runs[1][0].Scores["exact_match"] = 0
	r.Items[3].Runs[0][1].Scores["tokens"] = 101
	r.Items[2].Runs[1][0].Verdict = "incorrect: It is <b>another</b> city."
	for primary, want := range map[string]map[string]string{
		"exact_match": {"differs": "1 of 10 items", "wrong": "0 of 10 items", "right": "7 of 10 items"},
		"tokens":      {"differs": "1 of 10 items", "wrong": "0 of 10 items", "right": "7 of 10 items"},
	} {
		r.Primary = primary
		b := chromiumtest.Open(t, drawn(t, r, nil), 1280)
		for show, count := range want {
			chromiumtest.Run[any](b, `location.hash = "#only=A.B&show=`+show+`"`)
			if got := settled(b).Count; got != count {
				t.Errorf("by %s, %s: %s, not %s", primary, show, got, count)
			}
		}
		chromiumtest.Run[any](b, `location.hash = "#item=q3"`)
		settled(b)
		if got := chromiumtest.Run[string](b, `[...document.querySelectorAll(".detail .facts")].map(e => e.textContent).filter(s => s.startsWith("judge")).join()`); got != "judge: incorrect: It is <b>another</b> city." {
			t.Errorf("the judge says %q", got)
		}
		question := map[string]int{"exact_match": 2, "tokens": 3}[primary]
		chromiumtest.Run[any](b, `location.hash = "#only=A.B&show=differs"`)
		settled(b)
		if got := chromiumtest.Run[string](b, `[...document.querySelectorAll("tr.item")].filter(e => e.getClientRects().length).map(e => e.querySelector(".question").textContent).join()`); got != r.Items[question].Question {
			t.Errorf("by %s, %q differ", primary, got)
		}
	}
}

// The page can be used without a mouse, and an address opens an item.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	b := chromiumtest.Open(t, drawn(t, made(abilities, 4, 2), madeRuns), 1280)
	chromiumtest.Run[any](b, `document.querySelector("#filters [type=reset]").focus()`)
	b.Key("Tab")
	b.Key("Enter")
	opened := func() []string {
		return chromiumtest.Run[[]string](b, `[...document.querySelectorAll(".detail")].map(e => e.previousElementSibling.querySelector(".question").textContent + ": " + [...e.querySelectorAll(".run .answer")].length + " runs")`)
	}
	question := func(i int) string { return made(abilities, 4, 2).Items[i].Question + ": 4 runs" }
	if got := opened(); !slices.Equal(got, []string{question(0)}) {
		t.Fatalf("Enter opened %q", got)
	}
	b.Key("Tab")
	b.Key("Tab")
	if got := chromiumtest.Run[string](b, "document.activeElement.textContent"); got != "Rollout 2" {
		t.Errorf("behind the item stands %q", got)
	}
	b.Key("Enter")
	if got := chromiumtest.Run[string](b, `document.activeElement.textContent + " " + document.activeElement.getAttribute("aria-pressed")`); got != "Rollout 2 true" {
		t.Errorf("after Enter there is %q", got)
	}
	chromiumtest.Run[any](b, `document.querySelector(".opens").focus()`)
	b.Key("Enter")
	if got := opened(); len(got) != 0 {
		t.Errorf("Enter closed nothing: %q", got)
	}
	chromiumtest.Run[any](b, `location.hash = "#item=q3"`)
	settled(b)
	if got := opened(); !slices.Equal(got, []string{question(2)}) {
		t.Errorf("the address opened %q", got)
	}
	if got := chromiumtest.Run[[]string](b, unlabelled); len(got) > 0 {
		t.Errorf("without a name: %q", got)
	}
	b.Quiet()
}

// unlabelled names what a screen reader has no words for.
const unlabelled = `[...document.querySelectorAll("button, input, select, a, svg:not([aria-hidden]), [tabindex], [role=region]")].filter(e =>
	!(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length && e.labels[0].textContent.trim())).map(e => e.outerHTML.slice(0, 80))
	.concat([...document.querySelectorAll("table")].filter(e => !e.querySelector("thead th[scope=col]") || !e.querySelector("tbody th[scope=row]")).map(e => e.className))`

// The same report gives the same files.
func TestFilesAreTheSame(t *testing.T) {
	draw := func() []byte {
		var b bytes.Buffer
		for _, err := range []error{
			HTML(&b, made(abilities, 12, 3), madeRuns), Markdown(&b, made(abilities, 12, 3)), CSV(&b, made(abilities, 12, 3)), JSON(&b, made(abilities, 12, 3)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	first := draw()
	for range 5 {
		if !bytes.Equal(draw(), first) {
			t.Fatal("the files differ")
		}
	}
}
