package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// A Report is everything that one run measured.
type Report struct {
	Machine string `json:"machine"`
	Sizes   []int  `json:"sizes"` // characters of the text before the token
	Rounds  int    `json:"rounds"`
	Rows    []*Row `json:"rows"`
	Once    []Fact `json:"once"`
	Missing string `json:"missing,omitempty"` // why a checker was not measured
}

// A Row is one checker on one text. Times are for the next token of four bytes.
type Row struct {
	Text    string   `json:"text"`
	Checker string   `json:"checker"`
	Engine  string   `json:"engine"`       // engines of the plan, empty for a search of the whole text
	Times   []number `json:"ns_per_token"` // at the sizes of the report
	Growth  number   `json:"growth"`       // time at 100k over time at 1k
	Allocs  number   `json:"allocations"`  // of a token at 100k, on average
	Ratio   number   `json:"ratio"`        // time at 100k over that of one criterion on the same text
	Limit   number   `json:"limit_ns"`     // the time to reach
}

// A Fact is a figure that is not one of each token.
type Fact struct {
	What  string `json:"what"`
	Value number `json:"value"`
	Unit  string `json:"unit"` // ns or B
}

// A number is a figure that may be missing: a dash in the table, null in JSON.
type number float64

var missing = number(math.NaN())

func (n number) missing() bool { return math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) }

// MarshalJSON writes null for what is missing.
func (n number) MarshalJSON() ([]byte, error) {
	if n.missing() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n number) duration() string { return n.scaled("ns", "µs", "ms", "s") }

func (n number) size() string { return n.scaled("B", "kB", "MB", "GB") }

// scaled is the figure with three digits and the unit that fits.
func (n number) scaled(units ...string) string {
	if n.missing() {
		return "–"
	}
	for n >= 999.5 && len(units) > 1 {
		n, units = n/1000, units[1:]
	}
	return n.digits(3) + " " + units[0]
}

// digits is the figure with so many significant digits, or as many decimals as
// that leaves when it is smaller than one.
func (n number) digits(count int) string {
	if n.missing() {
		return "–"
	}
	before := 1
	if n >= 1 {
		before = int(math.Log10(float64(n))) + 1
	}
	if before <= count {
		return fmt.Sprintf("%.*f", count-before, float64(n))
	}
	step := math.Pow10(before - count)
	whole := fmt.Sprintf("%.0f", math.Round(float64(n)/step)*step)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole
}

// compare works out how much longer the rows take than one criterion does.
func (r *Report) compare() {
	ours := map[string]number{}
	for _, row := range r.Rows {
		if row.Checker == first {
			ours[row.Text] = row.Times[2]
		}
		row.Ratio = row.Times[2] / ours[row.Text]
	}
}

// print writes the report as Markdown.
func (r *Report) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; medians of %d rounds\n\n", r.Machine, r.Rounds)
	var rows [][]string
	for _, row := range r.Rows {
		rows = append(rows, row.cells())
	}
	markdown(&b, r.columns(), rows, 3)
	b.WriteString("\n")
	rows = nil
	for _, f := range r.Once {
		value := f.Value.duration()
		if f.Unit == "B" {
			value = f.Value.size()
		}
		rows = append(rows, []string{f.What, value})
	}
	markdown(&b, []string{"once", "cost"}, rows, 1)
	b.WriteString("\n")
	for _, n := range r.notes() {
		b.WriteString("- " + n + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) columns() []string {
	out := []string{"text", "checked by", "engine"}
	for _, s := range r.Sizes {
		out = append(out, characters(s))
	}
	return append(out, "growth", "allocations", "ratio", "to reach")
}

// characters is a size with a unit: 100k, 1M.
func characters(n int) string {
	if n%1_000_000 == 0 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1000)
}

func (r *Row) cells() []string {
	out := []string{r.Text, r.Checker, r.Engine}
	for _, t := range r.Times {
		out = append(out, t.duration())
	}
	limit := ""
	if !r.Limit.missing() {
		limit = fmt.Sprintf("≤ %g ns", float64(r.Limit))
	}
	ratio := "1"
	if r.Checker != first {
		ratio = r.Ratio.digits(2)
	}
	return append(out, r.Growth.digits(3), r.Allocs.digits(3), ratio, limit)
}

// What the rows with a limit are to reach beside the time. The buffer of the
// text grows now and then, so that a few thousandths of an allocation are none.
const (
	growth      = 1.1
	allocations = 0.005
)

// A machine's speed is told by a row that does not depend on this package: the
// times to reach were set where it takes so long.
const (
	yardstick            = "rescan, Python re"
	yardstickTime number = 670_000 // ns, one open call at 100k
)

// notes say what was missed, how fast the machine is, and what was not measured.
func (r *Report) notes() []string {
	var notes []string
	pace := number(1)
	for _, row := range r.Rows {
		if row.Checker == yardstick && row.Text == r.Rows[0].Text && !row.Times[2].missing() {
			pace = row.Times[2] / yardstickTime
			notes = append(notes, fmt.Sprintf("The times to reach were set where %s, %s, takes %s at %s; here it takes %s, %s times that.",
				row.Text, row.Checker, yardstickTime.duration(), characters(r.Sizes[2]), row.Times[2].duration(), pace.digits(2)))
		}
	}
	here := r.missed(1)
	if len(here) == 0 {
		notes = append(notes, "Every figure to reach is reached.")
	}
	for _, m := range here {
		notes = append(notes, "Missed: "+m+".")
	}
	if pace > 1 && len(here) > 0 {
		slow := r.missed(pace)
		if len(slow) == 0 {
			notes = append(notes, "Measured by the time that Python takes here, every figure to reach is reached.")
		}
		for _, m := range slow {
			notes = append(notes, "Missed also when measured by the time that Python takes here: "+m+".")
		}
	}
	if r.Missing != "" {
		notes = append(notes, r.Missing+".")
	}
	return notes
}

// missed says for each row what was to be reached and is not, on a machine so
// many times slower than the one where the times were set.
func (r *Report) missed(pace number) []string {
	var out []string
	for _, row := range r.Rows {
		if row.Limit.missing() {
			continue
		}
		var parts []string
		for i, t := range row.Times {
			if t > row.Limit*pace {
				parts = append(parts, fmt.Sprintf("%s at %s", t.duration(), characters(r.Sizes[i])))
			}
		}
		if len(parts) > 0 {
			parts = append(parts, fmt.Sprintf("to reach ≤ %.0f ns", float64(row.Limit*pace)))
		}
		if row.Growth > growth {
			parts = append(parts, fmt.Sprintf("growth %s, to reach ≤ %g", row.Growth.digits(3), growth))
		}
		if row.Allocs > allocations {
			parts = append(parts, row.Allocs.digits(3)+" allocations, to reach 0")
		}
		if len(parts) > 0 {
			out = append(out, fmt.Sprintf("%s, %s: %s", row.Text, row.Checker, strings.Join(parts, ", ")))
		}
	}
	return out
}

// markdown writes a table whose cells are aligned, to the right from the column
// with the number left on.
func markdown(b *strings.Builder, head []string, rows [][]string, left int) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < left {
				b.WriteString("| " + cell + pad + " ")
			} else {
				b.WriteString("| " + pad + cell + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(head)
	for i, w := range widths {
		if i < left {
			b.WriteString("|" + strings.Repeat("-", w+2))
		} else {
			b.WriteString("|" + strings.Repeat("-", w+1) + ":")
		}
	}
	b.WriteString("|\n")
	for _, row := range rows {
		line(row)
	}
}

// The tables of a page stand between these lines.
const (
	begin = "<!-- stopbench: begin -->\n"
	end   = "<!-- stopbench: end -->\n"
)

// tables cuts a page at its tables.
func tables(page string) (before, tables, after string, err error) {
	before, rest, ok := strings.Cut(page, begin)
	tables, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", "", "", fmt.Errorf("the page has no lines %q and %q", begin, end)
	}
	return before, tables, after, nil
}

// update puts the report into a page.
func (r *Report) update(page string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, _, after, err := tables(string(old))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+b.String()+"\n"+end+after), 0o644)
}
