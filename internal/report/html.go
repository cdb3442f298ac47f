package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"iter"
	"slices"

	"stopgap/internal/compare"
)

var (
	//go:embed page.html.tmpl
	pageText string
	//go:embed page.css
	styleText string
	//go:embed page.js
	scriptText string
)

// HTML writes one file that needs nothing else: no network, no other file, and
// to be read not even its script, which filters the items and shows their runs.
// A policy in the page keeps everything else from running and from being asked
// for. Runs may be nil.
func HTML(w io.Writer, r *compare.Report, runs Runs) error {
	body, err := json.Marshal(newData(r, runs)) // which escapes <, > and &
	if err != nil {
		return err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"visible": visible, "line": line, "capital": capital, "inc": func(n int) int { return n + 1 }}).Parse(pageText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(r, template.JS(body))); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is what the template draws. All of its strings are text that the
// template escapes; those from outside went through visible.
type page struct {
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS

	Title     string
	Lead      string
	Warnings  []string
	Primary   string // its name, empty for none
	Ruling    string
	Intervals intervals
	Scatter   *scatterChart
	Problems  *problemChart
	Pairs     []pairRow
	PairPlot  []tick
	Measures  []measureGroup
	Helps     []compare.Metric
	Heads     []head
	Items     []itemRow
	Marks     []markWords
	Method    string
}

// A head is a configuration as tables name it.
type head struct {
	Number, Colour int
	Key, Name      string
	Format, Model  string // below the name, where they say more
	Done           string
}

type intervals struct {
	Ticks []tick
	Rows  []intervalRow
}

type intervalRow struct {
	Head            head
	At              whisker
	Estimate, Range string
	Scored          bool
}

type scatterChart struct {
	X, Y   string
	Points []scatterPoint
	Across []tick
	Up     []tick
	Words  string
}

type scatterPoint struct {
	point
	Colour int
	Head   head
}

type problemChart struct {
	Rows   []problemRow
	Kinds  []kind
	Header []head
}

type problemRow struct {
	Head   head
	Slices []slice
	Total  int
	Each   string // of a run
}

type kind struct {
	Colour int
	Name   string
	Counts []int
}

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

// colours is how many the style sheet has for configurations and for problems.
const colours, problemColours = 7, 9

// hash is how a policy names an inline script or style.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func newPage(r *compare.Report, data template.JS) *page {
	p := &page{
		Policy: "default-src 'none'; script-src " + hash(scriptText) + "; style-src " + hash(styleText) + "; img-src data:; base-uri 'none'; form-action 'none'",
		Style:  template.CSS(styleText), Script: template.JS(scriptText), Data: data,
		Title: title(r), Lead: lead(r), Heads: heads(r), Method: method(r),
	}
	for _, w := range r.Warnings {
		p.Warnings = append(p.Warnings, line(w))
	}
	if m := primary(r); m != nil {
		p.Primary = line(m.Name)
		p.Intervals = newIntervals(r, m, p.Heads)
		p.Scatter = newScatter(r, m, p.Heads)
		p.pairs(r, m)
	}
	p.Problems = newProblems(r, p.Heads)
	p.measures(r)
	p.items(r)
	return p
}

func title(r *compare.Report) string {
	if len(r.Configurations) == 1 {
		return line(r.Configurations[0].Name) + " on " + line(r.Data)
	}
	return plural(len(r.Configurations), "configuration") + " on " + line(r.Data)
}

func lead(r *compare.Report) string {
	s := plural(len(r.Items), "item") + ", " + plural(r.Rollouts, "rollout") + " each"
	if m := primary(r); m != nil {
		s += ", scored by " + line(m.Name)
	}
	return s
}

// method says how the numbers came to be.
func method(r *compare.Report) string {
	s := line(r.Data)
	if r.Shape != "" {
		s += " (" + line(r.Shape) + ")"
	}
	if r.Date != "" {
		s += "; the prompts tell " + line(r.Date)
	}
	if r.Judge != "" {
		s += "; judged by " + line(r.Judge)
	}
	s += ". "
	if b := r.Bootstrap; b.Draws > 0 {
		s += fmt.Sprintf("Intervals and probabilities come from %d bootstrap draws over items, seed %d. ", b.Draws, b.Seed)
	}
	if len(r.Configurations) > 1 {
		s += "Rollouts have the same seeds in every configuration. "
	}
	return s + "Drawn by stopgap, from the runs alone."
}

func heads(r *compare.Report) []head {
	models := map[string]bool{}
	for _, c := range r.Configurations {
		models[c.Model] = true
	}
	var out []head
	for i, c := range r.Configurations {
		h := head{Number: i, Colour: i % colours, Key: key(i), Name: line(c.Name), Format: line(c.Format), Model: line(c.Model)}
		h.Done = plural(c.Done, "run")
		if c.Failed > 0 {
			h.Done += fmt.Sprintf(", %d failed", c.Failed)
		}
		if c.Missing > 0 {
			h.Done += fmt.Sprintf(", %d missing", c.Missing)
		}
		out = append(out, h)
	}
	return out
}

func newIntervals(r *compare.Report, m *compare.Metric, heads []head) intervals {
	highest := 0.0
	for i := range r.Configurations {
		if s := r.Configurations[i].Score(m.Key); s != nil {
			highest = max(highest, s.Estimate, s.High)
		}
	}
	across, ticks := axis(m, highest)
	out := intervals{Ticks: ticks}
	for i := range r.Configurations {
		row := intervalRow{Head: heads[i]}
		if s := r.Configurations[i].Score(m.Key); s != nil {
			row.Scored, row.At = true, across.whisker(s.Interval)
			row.Estimate, row.Range = number(s.Estimate, m.Unit)+sign(m.Unit), bounds(s.Interval, m.Unit, number)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// newScatter draws the primary metric over what it costs, where both are there.
func newScatter(r *compare.Report, m *compare.Metric, heads []head) *scatterChart {
	tokens := r.Metric("tokens")
	if tokens == nil || tokens.Key == m.Key {
		return nil
	}
	c := &scatterChart{X: "tokens generated in a run", Y: titled(m)}
	points, across, up, words := scatter(r, tokens, m)
	for _, p := range points {
		c.Points = append(c.Points, scatterPoint{p, p.Number % colours, heads[p.Number]})
	}
	c.Across, c.Up, c.Words = across, up, words
	return c
}

// problems gives, for each kind of problem that there is, how many each
// configuration has, in the order of the report.
func problems(r *compare.Report) iter.Seq2[string, []int] {
	var kinds []string
	counts := map[string][]int{}
	for i, c := range r.Configurations {
		for _, t := range c.Problems {
			if counts[t.Kind] == nil {
				kinds = append(kinds, t.Kind)
				counts[t.Kind] = make([]int, len(r.Configurations))
			}
			counts[t.Kind][i] = t.N
		}
	}
	return func(yield func(string, []int) bool) {
		for _, k := range kinds {
			if !yield(words(k), counts[k]) {
				return
			}
		}
	}
}

func newProblems(r *compare.Report, heads []head) *problemChart {
	c := &problemChart{Header: heads}
	totals := make([]int, len(heads))
	for name, counts := range problems(r) {
		c.Kinds = append(c.Kinds, kind{len(c.Kinds) % problemColours, name, counts})
		for i, n := range counts {
			totals[i] += n
		}
	}
	most := slices.Max(append(totals, 0))
	if most == 0 {
		return nil
	}
	for i, conf := range r.Configurations {
		row := problemRow{Head: heads[i], Slices: c.stack(i, most), Total: totals[i]}
		if conf.Done > 0 {
			row.Each = number(float64(row.Total)/float64(conf.Done), compare.Count) + " a run"
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// stack lays the problems of a configuration end to end; whole is what the full
// width stands for.
func (c *problemChart) stack(n, whole int) []slice {
	var out []slice
	at, s := 0, scale{0, float64(whole)}
	for _, k := range c.Kinds {
		if k.Counts[n] == 0 {
			continue
		}
		out = append(out, slice{k.Colour, s.at(float64(at)), s.at(float64(k.Counts[n])), fmt.Sprintf("%s: %d", k.Name, k.Counts[n])})
		at += k.Counts[n]
	}
	return out
}

func (p *page) pairs(r *compare.Report, m *compare.Metric) {
	all := findings(r)
	widest := 0.0
	for _, f := range all {
		d := f.test.Difference
		widest = max(widest, -d.Low, d.High, d.Estimate, -d.Estimate)
	}
	across, ticks := round(-widest, widest, func(v float64) string { return signed(v, m.Unit) })
	half := max(-across.low, across.high)
	across = scale{-half, half}
	if ticks = []tick{{0, signed(-half, m.Unit), false}, {50, "0", false}, {100, signed(half, m.Unit), false}}; len(all) > 0 {
		p.PairPlot = ticks
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
		if t.McNemar != nil {
			row.McNemar = probability(t.McNemar.P)
			if t.McNemar.Holm != nil {
				row.HolmMc = probability(*t.McNemar.Holm)
			}
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
	case few != nil:
		return "no difference seen"
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
