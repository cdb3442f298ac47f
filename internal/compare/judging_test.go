package compare

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stopgap/internal/eval/judge"
)

// Answers are judged once each, whatever ends the judging, and the report has
// the verdicts without asking anybody.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	c := asking(dir, 2, cities, candidate(t, "diligent", clerk{script: diligent}), candidate(t, "idle", clerk{script: idle}))
	c.JudgedBy = "sage"
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range c.Run(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var asked, refuse atomic.Int32
	refuse.Store(3) // askings, then the server is gone
	gone := errors.New("gone")
	ask := func(_ context.Context, prompt string, _ json.RawMessage) (string, error) {
		if asked.Add(1) > refuse.Load() {
			return "", gone
		}
		_, answer, _ := strings.Cut(prompt, "## Answer to judge\n")
		grade := "incorrect"
		switch {
		case strings.Contains(answer, "Bern"), strings.Contains(answer, "Rome"):
			grade = "correct"
		case strings.Contains(answer, "Copenhagen"):
			grade = "unsure"
		}
		return `{"reason": "So it is.", "verdict": "` + grade + `"}`, nil
	}
	judgeAll := func() (announced, judged int, err error) {
		store, err := judge.OpenStore(c.Verdicts())
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for ev, err := range c.Judge(t.Context(), &judge.Judge{Ask: ask, Model: "sage", Store: store}) {
			if err != nil {
				return announced, judged, err
			}
			switch ev := ev.(type) {
			case Judging:
				announced = ev.Answers
			case Judged:
				judged++
			}
		}
		return announced, judged, nil
	}
	// Paris with its citation and without, Rome, Milan, Paris, two spellings of
	// Bern, Copenhagen and Paris; that without a gold answer needs no asking.
	if n, done, err := judgeAll(); n != 9 || done != 3 || !errors.Is(err, gone) {
		t.Fatalf("%d of %d judged, %v", done, n, err)
	}
	if r := report(t, dir); !strings.Contains(strings.Join(r.Warnings, "\n"), "answers have no verdict of the judge") {
		t.Errorf("%q", r.Warnings)
	}
	refuse.Store(1000)
	if n, done, err := judgeAll(); n != 6 || done != 6 || err != nil {
		t.Fatalf("%d of %d judged, %v", done, n, err)
	}
	asked.Store(0)
	if n, _, err := judgeAll(); n != 0 || err != nil || asked.Load() != 0 {
		t.Fatalf("%d again, %v", n, err)
	}
	r := report(t, dir)
	if r.Judge != "sage" || r.Primary != exactMatch || r.Metric(judged) == nil {
		t.Fatalf("%s", text(t, r))
	}
	score := r.Configurations[0].Score(judged)
	if score == nil || score.Items != 3 || *score.Values[0] != 0 || *score.Values[1] != 0.5 || *score.Values[2] != 1 || score.Values[3] != nil {
		t.Errorf("%+v", score)
	}
	if run := r.Items[3].Runs[0][0]; run.Verdict != "unsure: So it is." {
		t.Errorf("%+v", run)
	}
	if want := "2 answers have no verdict of the judge, or one that says neither right nor wrong; they are not scored by it"; !slices.Contains(r.Warnings, want) {
		t.Errorf("%q", r.Warnings)
	}
}

// A comparison that goes on without its judge shows the verdicts that it has.
func TestJudgeIsKept(t *testing.T) {
	make := func(dir, judge string) *Comparison {
		c := asking(dir, 1, cities, candidate(t, "idle", clerk{script: idle}))
		c.JudgedBy = judge
		return c
	}
	dir := t.TempDir()
	c := make(dir, "sage")
	compared(t, c)
	store, err := judge.OpenStore(c.Verdicts())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, err := range c.Judge(t.Context(), &judge.Judge{Model: "sage", Store: store, Ask: func(context.Context, string, json.RawMessage) (string, error) {
		return `{"verdict": "correct"}`, nil
	}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := text(t, report(t, dir))
	if got := text(t, compared(t, make(dir, ""))); got != want || !strings.Contains(want, `"judge": "sage"`) {
		t.Errorf("without the judge:\n%s\nwith it:\n%s", got, want)
	}
	if r := compared(t, make(dir, "oracle")); r.Judge != "oracle" || r.Metric(judged) != nil {
		t.Errorf("another judge has the verdicts of the first: %s", text(t, r))
	}
	if r := compared(t, make(t.TempDir(), "")); r.Judge != "" {
		t.Errorf("the judge is %q", r.Judge)
	}
}

// Who leaves the judging leaves nothing behind.
func TestJudgingLeft(t *testing.T) {
	c := asking(t.TempDir(), 1, cities, candidate(t, "diligent", clerk{script: diligent}))
	c.JudgedBy = "sage"
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range c.Run(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := judge.OpenStore(c.Verdicts())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for ev, err := range c.Judge(ctx, &judge.Judge{Model: "sage", Store: store, Ask: func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}}) {
		if _, ok := ev.(Judged); ok {
			t.Errorf("%+v", ev)
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("%v", last)
	}
	for ev := range c.Judge(t.Context(), &judge.Judge{Model: "sage", Store: store, Ask: func(context.Context, string, json.RawMessage) (string, error) {
		return `{"verdict": "correct"}`, nil
	}}) {
		if _, ok := ev.(Judged); ok {
			break
		}
	}
}
