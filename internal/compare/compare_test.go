package compare

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/batch"
	"stopgap/internal/eval/stats"
)

func report(t testing.TB, dir string) *Report {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is a report as JSON.
func text(t testing.TB, r *Report) string {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var cities = []batch.Item{
	{Answers: []string{"Paris"}, Documents: []string{"paris.md"}},
	{Answers: []string{"Rome"}, Documents: []string{"rome.md", "Milan"}},
	{Answers: []string{"Bern"}},
	{Answers: []string{"Oslo", "Christiania"}},
	{},
}

// diligent looks things up, in every way there is.
func diligent(item, rollout, turn int) string {
	switch {
	case item == 0:
		return []string{call("Paris"), "Paris [paris.md]"}[turn]
	case item == 1 && rollout == 0:
		return []string{call("Rome"), call("Milan"), "Rome [rome.md]"}[turn]
	case item == 1:
		return []string{call("Milan"), "Milan, of course [milan.md]"}[turn]
	case item == 2:
		return []string{"<tool_call>\n{'name': 'look', 'arguments': {'q': 'Bern',}}\n</tool_call>", "It is Bern."}[turn]
	case item == 3:
		return []string{"<tool_call>\n{\"name\": \"peek\", \"arguments\": {}}\n</tool_call>", "Copenhagen"}[turn]
	}
	return []string{"<tool_call>\nnothing\n</tool_call>", "Who knows."}[turn]
}

// idle knows two answers by heart.
func idle(item, _, _ int) string { return []string{"Paris", "Paris", "Bern", "Paris", "Paris"}[item] }

// Every number of a small comparison, worked out by hand.
func TestReport(t *testing.T) {
	r := compared(t, asking(t.TempDir(), 2, cities, candidate(t, "diligent", clerk{script: diligent}), candidate(t, "idle", clerk{script: idle})))
	if r.Data != "questions.jsonl" || r.Shape != "HotpotQA" || r.Primary != exactMatch || r.Rollouts != 2 || len(r.Items) != 5 || len(r.Pairs) != 1 {
		t.Fatalf("%s", text(t, r))
	}
	half, none := 0.5, math.NaN() // NaN stands for what is not measured
	for _, c := range []struct {
		name, metric string
		values       []float64
		estimate     float64
	}{
		{"diligent", exactMatch, []float64{1, half, 0, 0, none}, 0.375}, // "It is Bern." is no exact match
		{"diligent", "sub_em", []float64{1, half, 1, 0, none}, 0.625},
		{"diligent", f1, []float64{1, half, half, 0, none}, 0.5},
		{"diligent", "citation_recall", []float64{1, half, none, none, none}, 0.75},
		{"diligent", "citation_precision", []float64{1, 1, none, none, none}, 1},
		{"diligent", "evidence", []float64{1, 0.75, none, none, none}, 0.875},
		{"diligent", "answered", []float64{1, 1, 1, 1, 1}, 1},
		{"diligent", "pass_at_k", []float64{1, 1, 0, 0, none}, 0.5},
		{"diligent", "avg_at_k", []float64{1, half, 0, 0, none}, 0.375},
		{"diligent", "best_at_k", []float64{1, 1, half, 0, none}, 0.625},
		{"diligent", "strict_calls", []float64{1, 1, 0, 0, 0}, 0.4},
		{"diligent", "valid_calls", []float64{1, 1, 1, 0, 0}, 0.6},
		{"diligent", "problems", []float64{0, 0, 0, 1, 1}, 0.4},
		{"diligent", "calls", []float64{1, 1.5, 1, 1, 0}, 0.9},
		{"diligent", "turns", []float64{2, 2.5, 2, 2, 2}, 2.1},
		{"idle", exactMatch, []float64{1, 0, 1, 0, none}, 0.5},
		{"idle", "citation_recall", []float64{0, 0, none, none, none}, 0},
		{"idle", "citation_precision", nil, 0},
		{"idle", "strict_calls", nil, 0},
		{"idle", "tokens", []float64{1, 1, 1, 1, 1}, 1},
		{"idle", "tokens_per_right", nil, 2}, // four items with a gold answer, two of them right
		{"idle", judged, nil, 0},
	} {
		i := slices.IndexFunc(r.Configurations, func(conf Configuration) bool { return conf.Name == c.name })
		s := r.Configurations[i].Score(c.metric)
		if c.estimate == 0 && c.values == nil {
			if s != nil {
				t.Errorf("%s, %s: %+v, where nothing was measured", c.name, c.metric, s)
			}
			continue
		}
		if s == nil {
			t.Errorf("%s, %s: nothing", c.name, c.metric)
			continue
		}
		var got []float64
		for _, v := range s.Values {
			if v == nil {
				v = &none
			}
			got = append(got, *v)
		}
		same := slices.EqualFunc(got, c.values, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
		if !same || math.Abs(s.Estimate-c.estimate) > 1e-12 || s.Low > s.Estimate || s.High < s.Estimate && !s.Unbounded || s.Items != len(got)-count(got) && got != nil {
			t.Errorf("%s, %s: %v, %+v; want %v, %v", c.name, c.metric, got, s.Interval, c.values, c.estimate)
		}
	}
	first := &r.Configurations[0]
	if first.Done != 10 || first.Missing != 0 || first.Failed != 0 || !slices.Equal(first.Terminations, []Tally{{"answered", 10}}) ||
		!slices.Equal(first.Problems, []Tally{{"bad_json", 2}, {"unknown_tool", 2}}) || r.Configurations[1].Problems[0].N != 0 {
		t.Errorf("%+v", first)
	}
	run := r.Items[0].Runs[0][1]
	if run.Answer != "Paris [paris.md]" || run.Scored != "Paris" || run.Seed != batch.Seed("compare", "q0", 1) || run.Rollout != 2 {
		t.Errorf("%+v", run)
	}
	if !slices.Equal(r.Warnings, []string{"1 of 5 items have no gold answer and are not scored", "3 of 5 items name no documents; citations are scored on the others"}) {
		t.Errorf("%q", r.Warnings)
	}
}

func count(values []float64) int {
	n := 0
	for _, v := range values {
		if math.IsNaN(v) {
			n++
		}
	}
	return n
}

// The tests of a pair are those of package stats on the means of the items.
func TestPairs(t *testing.T) {
	r := compared(t, asking(t.TempDir(), 2, cities,
		candidate(t, "diligent", clerk{script: diligent}), candidate(t, "idle", clerk{script: idle}), candidate(t, "mute", clerk{script: func(int, int, int) string { return "Nothing" }})))
	if len(r.Pairs) != 3 {
		t.Fatalf("%d pairs", len(r.Pairs))
	}
	p := r.Pairs[0]
	a, b := []float64{1, 0.5, 0, 0}, []float64{1, 0, 1, 0}
	want := stats.Paired(a, b, resampling)
	got := p.Test(exactMatch)
	if got.Difference.Interval != want.Interval || got.P != want.P || got.Items != 4 || got.Difference.Estimate != -0.125 {
		t.Errorf("%+v, want %+v", got, want)
	}
	mc := got.McNemar
	if mc.B != 1 || mc.C != 1 || mc.P != 1 || mc.Holm == nil || *mc.Holm != 1 || got.Holm == nil || *got.Holm < got.P {
		t.Errorf("%+v", mc)
	}
	if !slices.Equal(p.AheadA, []int{1}) || !slices.Equal(p.AheadB, []int{2}) {
		t.Errorf("ahead: %v, %v", p.AheadA, p.AheadB)
	}
	if got.TooFew == nil || got.TooFew.Needed != 0 || got.TooFew.Detectable < 0.9 {
		t.Errorf("too few: %+v", got.TooFew)
	}
	if other := p.Test("sub_em"); other.Holm != nil || other.McNemar.Holm != nil || other.TooFew != nil {
		t.Errorf("a metric that is not the primary one is corrected: %+v", other)
	}
	if few := p.Test(tokens).McNemar; few.B != 0 || few.C != 5 || few.P != 0.0625 { // fewer are better
		t.Errorf("%+v", few)
	}
	if p.Test("calls") != nil || p.Test("strict_calls") != nil {
		t.Errorf("%+v", p.Tests)
	}
	var differ []bool
	for i := range r.Items {
		differ = append(differ, r.Items[i].Differs)
	}
	if !slices.Equal(differ, []bool{true, true, true, false, false}) {
		t.Errorf("differ: %v", differ)
	}
	ps := []float64{r.Pairs[0].Test(exactMatch).P, r.Pairs[1].Test(exactMatch).P, r.Pairs[2].Test(exactMatch).P}
	for i, adjusted := range stats.Holm(ps) {
		if *r.Pairs[i].Test(exactMatch).Holm != adjusted {
			t.Errorf("pair %d: %v, want %v", i, *r.Pairs[i].Test(exactMatch).Holm, adjusted)
		}
	}
}

// Of more than two rollouts there is also what fewer would reach, estimated from
// all of them.
func TestPassAtK(t *testing.T) {
	lucky := func(item, rollout, _ int) string {
		return []string{"Paris", "Rome", "Bern", "Oslo", ""}[(item+rollout)%5]
	}
	r := compared(t, asking(t.TempDir(), 5, cities[:2], candidate(t, "lucky", clerk{script: lucky})))
	var names []string
	for _, m := range r.Metrics {
		if m.Group == AtK {
			names = append(names, m.Key+" "+m.Name)
		}
	}
	if want := []string{"pass_at_2 pass@2", "pass_at_4 pass@4", "pass_at_k pass@5", "avg_at_k avg@5", "best_at_k best@5"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	for key, want := range map[string]float64{"pass_at_2": 0.4, "pass_at_4": 0.8, "pass_at_k": 1, "avg_at_k": 0.2} { // one of five is right
		if got := r.Configurations[0].Score(key); got == nil || math.Abs(got.Estimate-want) > 1e-12 {
			t.Errorf("%s: %+v, want %v", key, got, want)
		}
	}
}

// Where all items are alike their interval has a width, also where each is right
// in some of its rollouts.
func TestAlike(t *testing.T) {
	halves := func(_, rollout, _ int) string { return []string{"Paris", "Rome"}[rollout] }
	r := compared(t, asking(t.TempDir(), 2, cities[:2], candidate(t, "halves", clerk{script: halves})))
	for key, want := range map[string]stats.Interval{exactMatch: stats.Wilson(1, 2), "pass_at_k": stats.Wilson(2, 2), "citation_recall": stats.Wilson(0, 2)} {
		if got := r.Configurations[0].Score(key); !got.Wilson || got.Interval.Interval != want || got.Low == got.High {
			t.Errorf("%s: %+v, want %v", key, got, want)
		}
	}
}

// One item shows no difference by any metric: the bootstrap draws it again and
// again, and only the test of items beside it knows that it is one.
func TestOneItem(t *testing.T) {
	dir := t.TempDir()
	for _, primary := range []string{exactMatch, f1, tokens} {
		c := asking(dir, 1, cities[:1], candidate(t, "diligent", clerk{script: diligent}), candidate(t, "mute", clerk{script: func(int, int, int) string { return "Nothing" }}))
		c.Primary = primary
		r := compared(t, c)
		if test := r.Pairs[0].Test(primary); test.McNemar.P != 1 || *test.McNemar.Holm != 1 || test.TooFew == nil {
			t.Errorf("%s: %+v", primary, test)
		}
	}
}

// A comparison that is left in its middle again and again becomes the one that
// nobody left, and one that is made again is the same, byte for byte.
func TestLeftAndMadeAgain(t *testing.T) {
	dirs := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
	make := func(dir string) *Comparison {
		return asking(dir, 2, cities, candidate(t, "diligent", clerk{script: diligent}), candidate(t, "idle", clerk{script: idle}))
	}
	want := text(t, compared(t, make(dirs[0])))
	if got := text(t, compared(t, make(dirs[1]))); got != want {
		t.Errorf("made again:\n%s\nfirst:\n%s", got, want)
	}
	left := 0
	for {
		c := make(dirs[2])
		c.Parallel = 1 + left%2
		if err := c.Open(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		finished, missing := 0, 0
		for ev, err := range c.Run(ctx) {
			if err != nil {
				left++
			}
			if _, ok := ev.(batch.Finished); ok {
				if finished++; finished == 2 {
					cancel()
				}
			}
			if ev, ok := ev.(Ended); ok {
				missing = ev.Missing
			}
		}
		cancel()
		c.Close()
		if r := report(t, dirs[2]); missing > 0 != strings.Contains(strings.Join(r.Warnings, "\n"), "have not been made") {
			t.Errorf("%d are missing, and the report says %q", missing, r.Warnings)
		}
		if missing == 0 {
			break
		}
	}
	if got := text(t, report(t, dirs[2])); got != want || left < 3 {
		t.Errorf("left %d times:\n%s\nnever left:\n%s", left, got, want)
	}
}

// More rollouts, more questions and more configurations are more of the same:
// what is there is not asked again.
func TestMoreOfTheSame(t *testing.T) {
	dir, asked := t.TempDir(), 0
	make := func(first, rollouts int, names ...string) *Comparison {
		var list []*Candidate
		for _, name := range names {
			list = append(list, candidate(t, name, clerk{script: idle, asked: func() error { asked++; return nil }}))
		}
		c := asking(dir, rollouts, cities, list...)
		c.First, c.Parallel = first, 1
		return c
	}
	for _, step := range []struct {
		first, rollouts int
		names           []string
		asked, items    int // asked in this step
	}{
		{2, 1, []string{"a", "b"}, 4, 2},
		{2, 1, []string{"a", "b"}, 0, 2},
		{2, 2, []string{"a", "b"}, 4, 2},
		{3, 2, []string{"b", "a"}, 4, 3},
		{3, 2, []string{"b", "c"}, 6, 3},
		{0, 1, []string{"a", "b", "c"}, 6, 5},
		{1, 1, []string{"a"}, 0, 1},
	} {
		asked = 0
		r := compared(t, make(step.first, step.rollouts, step.names...))
		if asked != step.asked || len(r.Items) != step.items || len(r.Configurations) != len(step.names) || len(r.Warnings) > 2 {
			t.Errorf("%+v: %d asked, %d items, %d configurations, %q", step, asked, len(r.Items), len(r.Configurations), r.Warnings)
		}
		for i, name := range step.names {
			if r.Configurations[i].Name != name || r.Configurations[i].Missing != 0 || len(r.Items[0].Runs[i]) != step.rollouts {
				t.Errorf("%+v: %+v", step, r.Configurations[i])
			}
		}
	}
}

// Segments are the ledger of the run, by who wrote it.
func TestSegments(t *testing.T) {
	dir := t.TempDir()
	hostile := func(item, rollout, turn int) string {
		return []string{"I look. " + call("漢字<script>END"), "Done <b>.</b>"}[turn]
	}
	r := compared(t, asking(dir, 1, cities[:1], candidate(t, "qwen", clerk{script: hostile})))
	list, err := Segments(t.Context(), dir, r.Items[0].Runs[0][0], 0)
	if err != nil {
		t.Fatal(err)
	}
	var sources, by []string
	for _, s := range list {
		sources = append(sources, string(s.Source))
		by = append(by, s.Text)
	}
	if want := []string{"template", "user", "template", "model", "template", "tool", "template", "model"}; !slices.Equal(sources, want) {
		t.Fatalf("%q\n%q", sources, by)
	}
	if by[1] != "Question number 0?" || !strings.HasPrefix(by[3], "I look. <tool_call>") || !strings.HasPrefix(by[5], "漢字<script><|im_end|>. It is") || by[7] != "Done <b>.</b>" {
		t.Errorf("%q", by)
	}
	for most := 1; most < 200; most++ {
		short, err := Segments(t.Context(), dir, r.Items[0].Runs[0][0], most)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range short {
			whole := list[i].Text
			if len(s.Text) > most || whole != s.Text[:s.At]+whole[s.At:s.At+s.Cut]+s.Text[s.At:] || !slices.Equal([]rune(s.Text), []rune(strings.ToValidUTF8(s.Text, ""))) {
				t.Fatalf("%d: %+v of %q", most, s, whole)
			}
		}
		if most > 20 {
			most += 7
		}
	}
}

// What the report says of damage: it costs what comes from the journal.
func TestDamagedJournals(t *testing.T) {
	dir := t.TempDir()
	whole := compared(t, asking(dir, 1, cities, candidate(t, "diligent", clerk{script: diligent})))
	for i, spoil := range []func(string) error{
		os.Remove,
		func(p string) error { return os.WriteFile(p, []byte("not a journal\n"), 0o600) },
		func(p string) error { return os.Truncate(p, 300) },
	} {
		run := whole.Items[i].Runs[0][0]
		if err := spoil(filepath.Join(dir, run.Journal)); err != nil {
			t.Fatal(err)
		}
		r := report(t, dir)
		now := r.Items[i].Runs[0][0]
		if now.Damaged == "" || now.Answer != run.Answer || now.Scores["sub_em"] != run.Scores["sub_em"] || len(r.Warnings) != i+3 ||
			!strings.Contains(strings.Join(r.Warnings, "\n"), run.Journal+" cannot be read: "+now.Damaged) {
			t.Errorf("%d: %+v, %q", i, now, r.Warnings)
		}
		for _, key := range []string{"strict_calls", "problems", "citation_recall"} {
			if v, ok := now.Scores[key]; ok {
				t.Errorf("%d: %s is %v", i, key, v)
			}
		}
		if _, err := Segments(t.Context(), dir, now, 0); err == nil {
			t.Errorf("%d: segments of a damaged journal", i)
		}
	}
}

// Without gold answers what can be compared is compared.
func TestNoGold(t *testing.T) {
	dir := t.TempDir()
	blank := make([]batch.Item, 3)
	c := asking(dir, 1, blank, candidate(t, "a", clerk{script: idle}), candidate(t, "b", clerk{script: idle}))
	r := compared(t, c)
	if r.Primary != "" || r.Metric(exactMatch) != nil || r.Metric("tokens_per_right") != nil || r.Metric(tokens) == nil || r.Pairs[0].Test(tokens) == nil ||
		r.Pairs[0].Test(tokens).Holm != nil || r.Pairs[0].AheadA != nil ||
		!slices.Equal(r.Warnings, []string{"the dataset has no gold answers: what is right is not measured"}) {
		t.Errorf("%s", text(t, r))
	}
	c.Primary = tokens
	if r = compared(t, c); r.Primary != tokens || r.Pairs[0].Test(tokens).Holm == nil {
		t.Errorf("%s", text(t, r))
	}
	if strings.Contains(text(t, r), "NaN") {
		t.Error("there is a NaN")
	}
	times, err := ReadTimes(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	conf := times.Configurations[0]
	if conf.Score(seconds) == nil || conf.Score("generated") != nil || conf.Score("seconds_per_right") != nil || conf.Score("prompt").Items != 3 ||
		conf.Score("evaluated").Estimate >= conf.Score("prompt").Estimate || !reflect.DeepEqual(conf.Servers, []string{"clerk of a"}) || len(times.Metrics) != 3 {
		t.Errorf("%+v", times)
	}
}
