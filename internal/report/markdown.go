package report

import (
	"fmt"
	"io"
	"strings"

	"stopgap/internal/compare"
)

// listed is how many items Markdown lists: a table is no place for more.
const listed = 200

// Markdown writes the tables as CommonMark with GitHub's tables, and the items
// on which the configurations differ.
func Markdown(w io.Writer, r *compare.Report) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %s\n\n%s.\n", escape(title(r)), escape(lead(r)))
	for _, warning := range r.Warnings {
		p("\n> %s\n", escape(warning))
	}
	heads := []string{"", "configuration"}
	m := primary(r)
	if m != nil {
		heads = append(heads, titled(m)+" ", "95 % ")
	}
	rows := [][]string{}
	for i := range r.Configurations {
		c := &r.Configurations[i]
		row := []string{key(i), c.Name}
		if m != nil {
			row = append(row, "–", "")
			if s := c.Score(m.Key); s != nil {
				row[2], row[3] = number(s.Estimate, m.Unit), bounds(s.Interval, m.Unit, number)
			}
		}
		rows = append(rows, row)
	}
	table(&b, heads, rows)
	markdownPairs(&b, r, m)
	p("\n## All measures\n")
	markdownMeasures(&b, r)
	markdownItems(&b, r)
	p("\n%s\n", escape(method(r)))
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes a table. Columns whose heading ends in a space are numbers.
func table(b *strings.Builder, heads []string, rows [][]string) {
	b.WriteString("\n|")
	for _, h := range heads {
		b.WriteString(" " + inCell(h) + " |")
	}
	b.WriteString("\n|")
	for _, h := range heads {
		if strings.HasSuffix(h, " ") {
			b.WriteString(" ---: |")
		} else {
			b.WriteString(" --- |")
		}
	}
	b.WriteString("\n")
	for _, row := range rows {
		b.WriteString("|")
		for _, cell := range row {
			b.WriteString(" " + inCell(cell) + " |")
		}
		b.WriteString("\n")
	}
}

// marks are the characters that mean something in Markdown, or in HTML in it.
const marks = "\\`*_[]#!|~$"

// escape makes text from outside mean nothing in Markdown: on one line, each
// mark behind a backslash, what opens HTML as an entity. What makes an address
// of a text, and what makes a list or a heading of a line that begins with it,
// is a mark only there.
func escape(s string) string {
	s = line(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune(marks, r), r == ':' && strings.HasPrefix(s[i:], "://"), i == 0 && (r == '-' || r == '+' || r == '='):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inCell is escape where no line begins.
func inCell(s string) string {
	if s = escape(s); len(s) > 1 && s[0] == '\\' && (s[1] == '-' || s[1] == '+' || s[1] == '=') {
		return s[1:]
	}
	return s
}

func markdownPairs(b *strings.Builder, r *compare.Report, m *compare.Metric) {
	all := findings(r)
	if len(all) == 0 {
		return
	}
	b.WriteString("\n## Pairs\n")
	rows := [][]string{}
	for _, f := range all {
		t := f.test
		row := []string{
			key(f.pair.A) + " − " + key(f.pair.B), signed(t.Difference.Estimate, m.Unit), bounds(t.Difference, m.Unit, signed), probability(t.P), "–", "–",
			fmt.Sprintf("%s %d, %s %d", key(f.pair.A), len(f.pair.AheadA), key(f.pair.B), len(f.pair.AheadB)), f.words(),
		}
		if t.Holm != nil {
			row[4] = probability(*t.Holm)
		}
		if t.McNemar.Holm != nil {
			row[5] = probability(*t.McNemar.Holm)
		}
		rows = append(rows, row)
	}
	table(b, []string{"pair", "difference, " + points(m) + " ", "95 % ", "p ", "p, Holm ", "McNemar's p, Holm ", "items ahead", "so"}, rows)
}

func markdownMeasures(b *strings.Builder, r *compare.Report) {
	heads := []string{"measure"}
	for i := range r.Configurations {
		heads = append(heads, key(i)+" ")
	}
	rows := [][]string{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		row := []string{titled(m)}
		for c := range r.Configurations {
			cell := newCell(r.Configurations[c].Score(m.Key), m)
			if cell.Range != "" {
				cell.Estimate += " (" + cell.Range + ")"
			}
			row = append(row, cell.Estimate)
		}
		rows = append(rows, row)
	}
	for name, counts := range problems(r) {
		row := []string{"problem: " + name}
		for _, n := range counts {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	table(b, heads, rows)
}

// markdownItems lists the items on which the configurations differ.
func markdownItems(b *strings.Builder, r *compare.Report) {
	by := ruling(r)
	rows, differ := [][]string{}, 0
	for i := range r.Items {
		it := &r.Items[i]
		if !it.Differs {
			continue
		}
		if differ++; differ > listed {
			continue
		}
		row := []string{it.ID, shortened(line(it.Question)), shortened(line(strings.Join(it.Answers, " · ")))}
		for c := range r.Configurations {
			cell := ""
			if c < len(it.Runs) {
				for _, run := range it.Runs[c] {
					cell += signs[judge(by, run)]
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	if differ == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Where they differ\n\n%d of %s. Each mark is a rollout: ✓ right, ◐ partly right, ✗ wrong, ! ended by an error, · not scored, – not made.\n", differ, plural(len(r.Items), "item"))
	heads := []string{"item", "question", "right answer"}
	for i := range r.Configurations {
		heads = append(heads, key(i))
	}
	table(b, heads, rows)
	if differ > listed {
		fmt.Fprintf(b, "\nThe first %d are listed. The HTML page has all.\n", listed)
	}
}
