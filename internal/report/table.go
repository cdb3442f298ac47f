package report

import (
	"fmt"
	"html/template"
	"slices"

	"stopgap/internal/compare"
)

type markWords struct {
	Verdict verdict
	Sign    string
	Words   string
}

type measureGroup struct {
	Name string
	Rows []measureRow
}

type measureRow struct {
	Name  string
	Cells []measureCell
}

type measureCell struct{ Estimate, Range string }

type pairRow struct {
	A, B              head
	At                whisker
	Zero              percent
	Colour            int
	Difference, Range string
	P, Holm           string
	McNemar, HolmMc   string
	AheadA, AheadB    int
	Link              template.URL
	Verdict           string
	On                string // of how many items, where not of all
	Sure              bool
}

type itemRow struct {
	Number   int
	Question string
	Gold     string
	Cells    []itemCell
}

type itemCell struct {
	Number int
	Marks  []itemMark
	Words  string
}

type itemMark struct {
	Verdict verdict
	Sign    string
}

func (p *page) pairs(r *compare.Report, m *compare.Metric) {
	all := findings(r)
	widest := 0.0
	for _, f := range all {
		d := f.test.Difference
		widest = max(widest, -d.Low, d.High, d.Estimate, -d.Estimate)
	}
	half, _ := round(0, widest, func(float64) string { return "" })
	across := scale{-half.high, half.high}
	if len(all) > 0 {
		p.PairPlot = []tick{{0, signed(across.low, m.Unit), false}, {50, "0", false}, {100, signed(across.high, m.Unit), false}}
	}
	for _, f := range all {
		t := f.test
		row := pairRow{
			A: p.Heads[f.pair.A], B: p.Heads[f.pair.B], At: across.whisker(t.Difference), Zero: 50, Colour: p.Heads[f.pair.A].Colour,
			Difference: signed(t.Difference.Estimate, m.Unit), Range: bounds(t.Difference, m.Unit, signed), P: probability(t.P),
			AheadA: len(f.pair.AheadA), AheadB: len(f.pair.AheadB),
			Link:    template.URL("#only=" + key(f.pair.A) + "." + key(f.pair.B) + "&show=differs"),
			Verdict: f.words(), Sure: f.better >= 0,
		}
		if t.Items < len(r.Items) {
			row.On = "on " + plural(t.Items, "item")
		}
		if t.Holm != nil {
			row.Holm = probability(*t.Holm)
		}
		row.McNemar = probability(t.McNemar.P)
		if t.McNemar.Holm != nil {
			row.HolmMc = probability(*t.McNemar.Holm)
		}
		p.Pairs = append(p.Pairs, row)
	}
}

// words say what a pair's test says, with the configurations' letters.
func (f finding) words() string {
	switch few := f.test.TooFew; {
	case f.better >= 0:
		return key(f.better) + " is better"
	case f.split:
		return "cannot tell: the tests disagree"
	case few != nil && few.Needed > 0:
		return "cannot tell: about " + plural(few.Needed, "item") + " needed"
	case few != nil && few.Detectable >= 1:
		return "cannot tell: too few items"
	case few != nil:
		return "no difference of " + number(few.Detectable, compare.Share) + " points seen"
	}
	return "no difference shown"
}

func (p *page) measures(r *compare.Report) {
	var names []compare.Group
	for _, m := range r.Metrics {
		if !slices.Contains(names, m.Group) {
			names = append(names, m.Group)
		}
	}
	for _, name := range names {
		g := measureGroup{Name: string(name)}
		for i := range r.Metrics {
			m := &r.Metrics[i]
			if m.Group != name {
				continue
			}
			p.Helps = append(p.Helps, *m)
			row := measureRow{Name: titled(m)}
			for c := range r.Configurations {
				row.Cells = append(row.Cells, newCell(r.Configurations[c].Score(m.Key), m))
			}
			g.Rows = append(g.Rows, row)
		}
		p.Measures = append(p.Measures, g)
	}
	if g := terminations(r); len(g.Rows) > 0 {
		p.Measures = append(p.Measures, g)
	}
}

func newCell(s *compare.Score, m *compare.Metric) measureCell {
	if s == nil {
		return measureCell{Estimate: "–"}
	}
	c := measureCell{Estimate: number(s.Estimate, m.Unit)}
	if s.Low != s.High || s.Unbounded { // all items are alike
		c.Range = bounds(s.Interval, m.Unit, number)
	}
	return c
}

// terminations counts how runs ended.
func terminations(r *compare.Report) measureGroup {
	g := measureGroup{Name: "how runs ended"}
	var kinds []string
	for _, c := range r.Configurations {
		for _, t := range c.Terminations {
			if !slices.Contains(kinds, t.Kind) {
				kinds = append(kinds, t.Kind)
			}
		}
	}
	for _, k := range kinds {
		row := measureRow{Name: words(k)}
		for _, c := range r.Configurations {
			row.Cells = append(row.Cells, measureCell{Estimate: fmt.Sprint(tally(c.Terminations, k))})
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

func tally(list []compare.Tally, kind string) int {
	for _, t := range list {
		if t.Kind == kind {
			return t.N
		}
	}
	return 0
}

func (p *page) items(r *compare.Report) {
	by := ruling(r)
	if by != nil {
		p.Ruling = line(by.Name)
	}
	seen := map[verdict]bool{}
	for i := range r.Items {
		it := &r.Items[i]
		row := itemRow{Number: i + 1, Question: shortened(line(it.Question))}
		for _, a := range it.Answers {
			if row.Gold != "" {
				row.Gold += " · "
			}
			row.Gold += shortened(line(a))
		}
		row.Gold = shortened(row.Gold)
		for c := range r.Configurations {
			cell := itemCell{Number: c}
			var all []verdict
			if c < len(it.Runs) {
				for _, run := range it.Runs[c] {
					v := judge(by, run)
					seen[v] = true
					all = append(all, v)
					cell.Marks = append(cell.Marks, itemMark{v, signs[v]})
				}
			}
			cell.Words = fmt.Sprint(key(c), ": ", all)
			row.Cells = append(row.Cells, cell)
		}
		p.Items = append(p.Items, row)
	}
	for _, m := range []markWords{
		{right, signs[right], "right"}, {part, signs[part], "partly right"}, {wrong, signs[wrong], "wrong"},
		{failed, signs[failed], "ended by an error"}, {unscored, signs[unscored], "not scored"}, {missing, signs[missing], "not made yet"},
	} {
		if seen[m.Verdict] {
			p.Marks = append(p.Marks, m)
		}
	}
}

// shortened cuts a line for a table.
func shortened(s string) string {
	if r := []rune(s); len(r) > 240 {
		return string(r[:239]) + "…"
	}
	return s
}
