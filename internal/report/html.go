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
	Points    string // what differences are counted in
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
		p.Primary, p.Points = line(m.Name), points(m)
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
