package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// quick measures everything once, over short texts.
var quick = effort{sizes: []int{1000, 2000, 4000, 8000}, rounds: 1, each: 1, tokens: 256, most: time.Minute, least: time.Nanosecond}

// TestMeasure: every checker reads every text to its end, and every figure is
// there.
func TestMeasure(t *testing.T) {
	report, err := measure(t.Context(), quick, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("python3")
	if (report.Missing == "") != (err == nil) {
		t.Errorf("python3 is here: %v; missing: %q", err == nil, report.Missing)
	}
	for _, r := range report.Rows {
		if strings.Contains(r.Checker, "Python") && report.Missing != "" {
			continue
		}
		if len(r.Times) != 4 || slices.ContainsFunc(r.Times, func(n number) bool { return n.missing() || n <= 0 }) ||
			r.Growth.missing() || r.Ratio.missing() {
			t.Errorf("%+v", r)
		}
		if ours := !strings.HasPrefix(r.Checker, "rescan"); ours != (r.Engine != "") {
			t.Errorf("%s, %s: engine %q", r.Text, r.Checker, r.Engine)
		}
	}
	for _, f := range report.Once {
		if f.Value.missing() || f.Value <= 0 {
			t.Errorf("%+v", f)
		}
	}
	if out, err := json.Marshal(report); err != nil || !json.Valid(out) {
		t.Errorf("%s %v", out, err)
	}
}

// TestTexts: the texts are what their names say, and each goes on like it
// began.
func TestTexts(t *testing.T) {
	texts := samples(100_000)
	for i, want := range []struct{ opened, closed bool }{{true, false}, {true, true}, {false, false}} {
		s := texts[i]
		opened, closed := strings.Count(s.text, "<tool_call>"), strings.Count(s.text, "</tool_call>")
		if len(s.text) != 100_000 || (opened > 0) != want.opened || (closed > 0) != want.closed || opened > closed+1 {
			t.Errorf("%s: %d bytes, %d calls opened, %d closed", s.name, len(s.text), opened, closed)
		}
		if strings.ContainsFunc(s.text, func(r rune) bool { return r > 126 }) {
			t.Errorf("%s: not ASCII", s.name)
		}
	}
}

// TestWithoutPython: the rows stay, and the report says why they are empty.
func TestWithoutPython(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := rescanPython(t.Context(), samples(2000), quick); err == nil || !strings.Contains(err.Error(), "no python3") {
		t.Errorf("got %v", err)
	}
}

// TestPage: the page shows the columns and the rows that the command prints.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/stopping.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _, err := tables(string(page))
	if err != nil {
		t.Fatal(err)
	}
	want := labels(printed(t, empty(t)))
	got := labels(shown)
	if !slices.Equal(got, want) {
		t.Errorf("docs/stopping.md shows\n%s\nthe command prints\n%s\nmake bench-stopping ARGS='--page docs/stopping.md'",
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// empty is a report without figures.
func empty(t *testing.T) *Report {
	t.Helper()
	e := full(1)
	jobs, err := newJobs(samples(1000), e)
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{Sizes: e.sizes, Rounds: 5}
	for _, j := range jobs {
		j.conclude(e.sizes)
		report.Rows = append(report.Rows, j.Row)
	}
	report.compare()
	for _, what := range []string{compileCost, firstCost, coldCost} {
		report.Once = append(report.Once, Fact{what, missing, "ns"})
	}
	for _, name := range weighed {
		report.Once = append(report.Once, Fact{memoryCost + name, missing, "B"})
	}
	return report
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// labels are the cells of tables that are no figures: the heads, and of each
// row what it is about and what it is to reach.
func labels(tables string) []string {
	var out []string
	for line := range strings.Lines(tables) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "text" || cells[0] == "once":
		case len(cells) == 2:
			cells = cells[:1]
		default:
			cells = []string{cells[0], cells[1], cells[2], cells[len(cells)-1]}
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return out
}

// TestUpdate: only what stands between the marks changes, also the second time.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# before\n\n"+begin+"old\n"+end+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := empty(t)
	want := "# before\n\n" + begin + "\n" + printed(t, r) + "\n" + end + "\nafter\n"
	for range 2 {
		if err := r.update(path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s %v", got, err)
		}
	}
	if err := os.WriteFile(path, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.update(path); err == nil || !strings.Contains(err.Error(), "no lines") {
		t.Errorf("got %v", err)
	}
}

// TestMissed: a figure that is not reached is named, one that is missing is not.
func TestMissed(t *testing.T) {
	row := func(limit, slowest, growth, allocs number) *Row {
		return &Row{Text: "t", Checker: "c", Times: []number{10, slowest}, Limit: limit, Growth: growth, Allocs: allocs}
	}
	for _, tt := range []struct {
		row  *Row
		want string
	}{
		{row(12, 12, 1.1, 0.004), ""},
		{row(12, 12.1, 1, 0), "t, c: 12.1 ns at 2k, to reach ≤ 12 ns"},
		{row(12, 12, 1.2, 0), "t, c: growth 1.20, to reach ≤ 1.1"},
		{row(12, 12, 1, 1), "t, c: 1.00 allocations, to reach 0"},
		{row(12, missing, missing, missing), ""},
		{row(missing, 100, 100, 100), ""},
	} {
		r := &Report{Sizes: []int{1000, 2000}, Rows: []*Row{tt.row}}
		if got := strings.Join(r.missed(1), "\n"); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestPace: on a slower machine a time is also measured by what Python takes.
func TestPace(t *testing.T) {
	report := func(time number) string {
		ours := &Row{Text: "t", Checker: first, Times: []number{time, time, time}, Limit: 12}
		python := &Row{Text: "t", Checker: yardstick, Times: []number{1, 2, 2 * yardstickTime}, Limit: missing}
		return strings.Join((&Report{Sizes: []int{1000, 10_000, 100_000}, Rows: []*Row{ours, python}}).notes(), "\n")
	}
	for time, want := range map[number][]string{
		12: {"takes 1.34 ms, 2.0 times that", "Every figure to reach is reached."},
		24: {"Missed: t, one criterion: 24.0 ns", "Measured by the time that Python takes here, every figure to reach is reached."},
		25: {"Missed: t, one criterion: 25.0 ns", "Missed also when measured by the time that Python takes here: t, one criterion: 25.0 ns at 1k, 25.0 ns at 10k, 25.0 ns at 100k, to reach ≤ 24 ns."},
	} {
		got := report(time)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%v ns: %q has no %q", time, got, w)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		n    number
		want string
	}{
		{0, "0.00 ns"}, {0.304, "0.30 ns"}, {7.894, "7.89 ns"}, {12, "12.0 ns"}, {149.6, "150 ns"}, {999.4, "999 ns"}, {999.6, "1.00 µs"},
		{38e6, "38.0 ms"}, {9.5e9, "9.50 s"}, {2e12, "2,000 s"}, {missing, "–"}, {number(math.Inf(1)), "–"},
	} {
		if got := tt.n.duration(); got != tt.want {
			t.Errorf("%v: %q, want %q", float64(tt.n), got, tt.want)
		}
	}
	for n, want := range map[number]string{1: "1.0", 0.25: "0.2", 99.6: "100", 380_400: "380,000", 1_349_000: "1,300,000", 12_345: "12,000"} {
		if got := n.digits(2); got != want {
			t.Errorf("%v: %q, want %q", float64(n), got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--rounds", "0"}, {"--nonsense"}} {
		var stderr strings.Builder
		if code := run(args, io.Discard, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, stderr.String())
		}
	}
	if code := run([]string{"--help"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("help: code %d", code)
	}
}
