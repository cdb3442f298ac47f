package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/mattn/go-runewidth"

	"stopgap/internal/compare"
)

// A Screen is what a terminal is like. The zero value is a stream without an
// end of its lines and without colours.
type Screen struct {
	Width  int // columns; zero for no limit
	Colour bool
}

// widest is how many columns the tables take where there is no limit.
const widest = 120

// The attributes, as SGR parameters.
const (
	bold = "1"
	dim  = "2"
)

// A terminal collects lines.
type terminal struct {
	Screen
	b strings.Builder
}

// Terminal writes what a person wants to see first: the scores, the pairs, the
// measures and the warnings. Times may be nil.
func Terminal(w io.Writer, r *compare.Report, times *compare.Times, s Screen) error {
	if s.Width <= 0 {
		s.Width = widest
	}
	t := &terminal{Screen: s}
	t.text(bold, title(r))
	t.text(dim, lead(r))
	if m := primary(r); m != nil {
		t.scores(r, m)
		t.pairs(r, m)
	} else {
		t.names(r)
	}
	t.measures(r)
	if times != nil {
		t.times(r, times)
	}
	for i, warning := range r.Warnings {
		if i == 0 {
			t.line("")
		}
		t.text("", "! "+line(warning))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *terminal) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// paint gives text an attribute.
func (t *terminal) paint(attribute, s string) string {
	if !t.Colour || attribute == "" || s == "" {
		return s
	}
	return "\x1b[" + attribute + "m" + s + "\x1b[0m"
}

// text writes a text in lines that fit.
func (t *terminal) text(attribute, s string) {
	for i, l := range fold(s, t.Width) {
		if i > 0 {
			l = "  " + l
		}
		t.line(t.paint(attribute, l))
	}
}

// fold breaks a text between words, and in a word that is longer than a line.
// Lines after the first leave two columns free.
func fold(s string, width int) []string {
	var out []string
	now := ""
	for _, word := range strings.Fields(s) {
		for runewidth.StringWidth(word) > width-2 {
			head := runewidth.Truncate(word, width-2, "")
			if head == "" {
				break
			}
			if now != "" {
				out = append(out, now)
			}
			out, now, word = append(out, head), "", word[len(head):]
		}
		switch {
		case now == "":
			now = word
		case runewidth.StringWidth(now)+1+runewidth.StringWidth(word) > width-2:
			out, now = append(out, now), word
		default:
			now += " " + word
		}
	}
	return append(out, now)
}

// left and right give a text so many columns.
func (t *terminal) left(s string, n int) string {
	return runewidth.FillRight(runewidth.Truncate(s, n, "…"), n)
}

func (t *terminal) right(s string, n int) string {
	return runewidth.FillLeft(runewidth.Truncate(s, n, "…"), n)
}

// nameWidth is how many columns the configurations' names take, at most.
func nameWidth(r *compare.Report, most int) int {
	n := len("configuration")
	for _, c := range r.Configurations {
		n = max(n, runewidth.StringWidth(line(c.Name)))
	}
	return min(n, most)
}

// names lists the configurations where there is nothing else to list.
func (t *terminal) names(r *compare.Report) {
	t.line("")
	for i, c := range r.Configurations {
		t.line(t.left(key(i), 3) + t.left(line(c.Name), t.Width-3))
	}
}

// scores is the table of the primary metric, with intervals drawn where there
// is room.
func (t *terminal) scores(r *compare.Report, m *compare.Metric) {
	const estimate, span = 9, 19
	name := nameWidth(r, max(13, t.Width-3-estimate-span-2))
	room := min(60, t.Width-3-name-estimate-span-4)
	t.line("")
	head := "   " + t.left("configuration", name) + t.right(titled(m), max(estimate, runewidth.StringWidth(titled(m))+2))
	head += strings.Repeat(" ", max(2, 3+name+estimate+span-runewidth.StringWidth(head)-len("95 %"))) + "95 %"
	t.line(t.paint(bold, head))
	for i := range r.Configurations {
		c := &r.Configurations[i]
		l := t.left(key(i), 3) + t.left(line(c.Name), name)
		s := c.Score(m.Key)
		if s == nil {
			t.line(l + t.right("–", estimate))
			continue
		}
		l += t.paint(bold, t.right(number(s.Estimate, m.Unit), estimate)) + t.paint(dim, t.right(bounds(s.Interval, m.Unit, number), span))
		if room >= 20 && m.Unit == compare.Share {
			l += "    " + track(s.Interval, room)
		}
		t.line(l)
	}
}

// track is an interval on the way from 0 to 100 %.
func track(in compare.Interval, n int) string {
	at := func(v float64) int { return min(n-1, max(0, int(math.Round(v*float64(n-1))))) }
	cells := []rune(strings.Repeat("·", n))
	for i := at(in.Low); i <= at(in.High); i++ {
		cells[i] = '─'
	}
	cells[at(in.Estimate)] = '●'
	return string(cells)
}

// pairs is the table of the pairs' tests.
func (t *terminal) pairs(r *compare.Report, m *compare.Metric) {
	all := findings(r)
	if len(all) == 0 {
		return
	}
	const pair, difference, span, p = 7, 9, 20, 10
	t.line("")
	head := t.left("pair", pair) + t.right(points(m), difference) + t.right("95 %", span) + t.right("p, Holm", p)
	t.line(t.paint(bold, head))
	for _, f := range all {
		d := f.test.Difference
		l := t.left(key(f.pair.A)+" − "+key(f.pair.B), pair) + t.right(signed(d.Estimate, m.Unit), difference) + t.paint(dim, t.right(bounds(d, m.Unit, signed), span))
		holm := "–"
		if f.test.Holm != nil {
			holm = probability(*f.test.Holm)
		}
		l += t.right(holm, p)
		if room := t.Width - pair - difference - span - p - 2; room >= 10 {
			words := fold(f.words(), room+2)
			if f.better >= 0 {
				words[0] = t.paint(bold, words[0])
			}
			t.line(l + "  " + words[0])
			for _, more := range words[1:] {
				t.line(strings.Repeat(" ", pair+difference+span+p+2) + more)
			}
			continue
		}
		t.line(l)
	}
}

// measures are all metrics, the configurations by their letters.
func (t *terminal) measures(r *compare.Report) {
	names, rows := []string{}, [][]string{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		row := make([]string, len(r.Configurations))
		for c := range r.Configurations {
			row[c] = newCell(r.Configurations[c].Score(m.Key), m).Estimate
		}
		names, rows = append(names, titled(m)), append(rows, row)
	}
	t.block("measure", names, rows)
	names, rows = nil, nil
	for k, counts := range problems(r) {
		row := make([]string, len(counts))
		for i, n := range counts {
			row[i] = fmt.Sprint(n)
		}
		names, rows = append(names, k), append(rows, row)
	}
	if len(rows) > 0 {
		t.block("problem", names, rows)
	}
}

// times are what the runs took, apart from the rest: they differ each time.
func (t *terminal) times(r *compare.Report, times *compare.Times) {
	names, rows := []string{}, [][]string{}
	for i := range times.Metrics {
		m := &times.Metrics[i]
		row := make([]string, len(r.Configurations))
		for c := range row {
			row[c] = "–"
			if c < len(times.Configurations) {
				row[c] = newCell(times.Configurations[c].Score(m.Key), m).Estimate
			}
		}
		names, rows = append(names, titled(m)), append(rows, row)
	}
	if len(rows) > 0 {
		t.block("as measured this time", names, rows)
	}
}

// block is a table with a column for each configuration, in as many parts as
// the width asks for.
func (t *terminal) block(heading string, names []string, rows [][]string) {
	first, column := runewidth.StringWidth(heading), 6
	for i, n := range names {
		first = max(first, runewidth.StringWidth(n))
		for _, cell := range rows[i] {
			column = max(column, runewidth.StringWidth(cell))
		}
	}
	first, column = min(first, t.Width/2), column+2
	each := max(1, (t.Width-first)/column)
	for from := 0; len(rows) > 0 && from < len(rows[0]); from += each {
		to := min(from+each, len(rows[0]))
		t.line("")
		head := t.left(heading, first)
		for c := from; c < to; c++ {
			head += t.right(key(c), column)
		}
		t.line(t.paint(bold, head))
		for i, n := range names {
			l := t.left(n, first)
			for _, cell := range rows[i][from:to] {
				l += t.right(cell, column)
			}
			t.line(l)
		}
	}
}
