package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"stopgap/stopping"
)

// A verdict is one line of "stopgap stop --json": what became of a criterion,
// or one of its matches where it reports them all. What a text has no part in
// is null. Nothing in it depends on how the text was cut.
type verdict struct {
	Criterion  string            `json:"criterion"`
	Fired      *bool             `json:"fired"`
	Wins       bool              `json:"wins"` // it ends the text when all criteria are at work
	MatchStart *int              `json:"match_start"`
	MatchEnd   *int              `json:"match_end"`
	KeepEnd    *int              `json:"keep_end"`
	Discarded  *int              `json:"discarded"` // bytes past the match
	Line       int               `json:"line,omitempty"`
	Column     int               `json:"column,omitempty"`
	Groups     map[string]string `json:"groups,omitempty"`
	Error      string            `json:"error,omitempty"`
	Plan       stopping.Engine   `json:"plan"`
	Reason     string            `json:"reason"`
	Warnings   []verdictWarning  `json:"warnings,omitempty"`
}

type verdictWarning struct {
	Problem string `json:"problem"`
	Hint    string `json:"hint"`
}

// A candidate is a criterion to be tried.
type candidate struct {
	declared
	trial    *trial
	plan     stopping.Plan
	warnings []stopping.Warning
}

// verdict says what is known of a candidate without a text.
func (c *candidate) verdict() verdict {
	v := verdict{Criterion: c.Name, Plan: c.plan.Engine, Reason: c.plan.Reason}
	for _, w := range c.warnings {
		v.Warnings = append(v.Warnings, verdictWarning{w.Problem, w.Hint})
	}
	return v
}

// fired fills in a match.
func (v *verdict) fired(d *stopping.Decision, at place, discarded int) {
	v.Fired, v.Groups, v.Line, v.Column = new(true), d.Groups, at.line, at.column
	v.MatchStart, v.MatchEnd, v.KeepEnd, v.Discarded = &d.MatchStart, &d.MatchEnd, &d.KeepEnd, &discarded
}

// A bench is where candidates are tried, and what shows how they did.
type bench struct {
	app        *app
	screen     screen
	json       bool
	quiet      bool // no plan, cost or warning
	explain    bool // also what the criteria mean
	candidates []*candidate
	together   *trial // of all candidates; nil where that says nothing more
	scan       *scan  // nil where no text is read
}

func (v *bench) encode(list []verdict) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, one := range list {
		if err := enc.Encode(one); err != nil {
			return err
		}
	}
	_, err := v.app.stdout.Write(b.Bytes())
	return err
}

// String gives line and column as compilers do.
func (p place) String() string { return fmt.Sprintf("%d:%d", p.line, p.column) }

// reports shows matches that end nothing, as they come.
func (v *bench) reports(list []report) error {
	if v.json {
		var out []verdict
		for _, r := range list {
			i := slices.IndexFunc(v.candidates, func(c *candidate) bool { return c.Name == r.Criterion.Name })
			one := v.candidates[i].verdict()
			one.Warnings = nil // once for each match is too often
			one.fired(r.Decision, r.place, 0)
			out = append(out, one)
		}
		return v.encode(out)
	}
	out := page{screen: v.screen}
	for _, r := range list {
		head := fmt.Sprintf("%d-%d (%s)", r.MatchStart, r.MatchEnd, r.place)
		if len(v.candidates) > 1 {
			head += " " + oneLine(r.Criterion.Name)
		}
		head += ": "
		match := oneLine(r.match)
		if len(r.match) < r.MatchEnd-r.MatchStart {
			match = "…" + match
		}
		if w := v.screen.width(); w != plain {
			match = runewidth.TruncatePrefix(match, max(w-cells(head), narrowest), "…")
		}
		fmt.Fprintln(&out, head+v.screen.paint(green, match))
	}
	_, err := v.app.stdout.Write(out.Bytes())
	return err
}

// verdicts shows what became of all candidates.
func (v *bench) verdicts(ctx context.Context) error {
	winner := v.winner()
	if v.json {
		var out []verdict
		for _, c := range v.candidates {
			if c.trial.reports == 0 || c.trial.err != nil { // reports have been shown
				out = append(out, v.verdict(c, winner))
			}
		}
		return v.encode(out)
	}
	out := page{screen: v.screen}
	for _, c := range v.candidates {
		name := v.screen.paint(bold, oneLine(c.Name))
		if c.where != "" {
			name += v.screen.paint(dim, " ("+oneLine(c.where)+")")
		}
		fmt.Fprintln(&out, name)
		if v.explain {
			out.line("", criterionWords(&c.Criterion))
		}
		if v.scan != nil {
			out.outcome(c.trial, v.scan.input.total())
		}
		if v.quiet {
			continue
		}
		out.line(dim, fmt.Sprintf("plan: %s, %s", c.plan.Engine, c.plan.Reason))
		v.cost(ctx, &out, c.trial)
		for _, w := range c.warnings {
			out.line(yellow, "warning: "+w.Problem)
			out.line("", "hint: "+w.Hint)
		}
	}
	if v.together != nil {
		v.all(ctx, &out, winner)
	}
	_, err := v.app.stdout.Write(out.Bytes())
	return err
}

// verdict fills in what a text has shown.
func (v *bench) verdict(c, winner *candidate) verdict {
	one := c.verdict()
	if v.scan == nil {
		return one
	}
	total := v.scan.input.total()
	one.Wins = c == winner
	switch t := c.trial; {
	case t.err != nil: // that is not "no match"
		one.Error = t.err.Error()
	case t.stop != nil:
		one.fired(t.stop, t.place, total-t.stop.MatchEnd)
	default:
		one.Fired, one.KeepEnd, one.Discarded = new(false), &total, new(0)
	}
	return one
}

// winner is the candidate that ends the text when all are at work.
func (v *bench) winner() *candidate {
	if v.together != nil && v.together.stop != nil {
		i := slices.IndexFunc(v.candidates, func(c *candidate) bool { return c.Name == v.together.stop.Criterion.Name })
		return v.candidates[i]
	}
	if c := v.candidates[0]; len(v.candidates) == 1 && c.trial != nil && c.trial.stop != nil {
		return c
	}
	return nil
}

// all writes what all candidates do at once.
func (v *bench) all(ctx context.Context, out *page, winner *candidate) {
	fmt.Fprintln(out, v.screen.paint(bold, "together"))
	switch t := v.together; {
	case t.err != nil:
		out.line(red, t.err.Error())
	case winner == nil:
		out.line(yellow, "nothing ends the text")
	default:
		out.line(green, fmt.Sprintf("%s ends the text at byte %d", oneLine(winner.Name), t.stop.MatchEnd))
	}
	if !v.quiet {
		v.cost(ctx, out, v.together)
	}
}

// cost writes what a trial took.
func (v *bench) cost(ctx context.Context, out *page, t *trial) {
	if v.scan == nil {
		return
	}
	ns := v.scan.cost(ctx, t)
	if ns == 0 {
		return
	}
	number := strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
	switch {
	case ns < 10:
		number = strconv.FormatFloat(ns, 'f', 1, 64) + " ns"
	case ns >= 10_000:
		number = strconv.FormatFloat(ns/1000, 'f', 0, 64) + " µs"
	}
	unit := "a token of 4 bytes"
	if v.scan.tokens > 0 {
		unit = fmt.Sprintf("a chunk of %d %s", v.scan.chunk, plural(v.scan.chunk, "byte"))
	}
	out.line(dim, fmt.Sprintf("cost: %s for %s, on average over %d %s", number, unit, t.received, plural(t.received, "byte")))
}

// A page is a few lines to be shown at once.
type page struct {
	bytes.Buffer
	screen screen
}

// line writes a sentence below a heading.
func (p *page) line(attribute, text string) {
	for _, l := range wrap(text, p.screen.width(), 2) {
		if attribute != "" {
			l = p.screen.paint(attribute, l)
		}
		fmt.Fprintln(p, l)
	}
}

// outcome writes what a trial came to in a text of so many bytes.
func (p *page) outcome(t *trial, total int) {
	tally := []string{fmt.Sprintf("kept %d %s", total, plural(total, "byte"))}
	switch d := t.stop; {
	case t.err != nil:
		p.line(red, t.err.Error())
		return
	case t.reports == 1:
		p.line(green, fmt.Sprintf("reports 1 match, at byte %d (%s)", t.first.MatchEnd, t.first.place))
	case t.reports > 1:
		p.line(green, fmt.Sprintf("reports %d matches, the first at byte %d (%s)", t.reports, t.first.MatchEnd, t.first.place))
	case d == nil:
		p.line(yellow, "does not fire")
	default:
		text := fmt.Sprintf("fires at byte %d (%s)", d.MatchEnd, t.place)
		if d.MatchStart < d.MatchEnd {
			text += fmt.Sprintf(", the match begins at byte %d", d.MatchStart)
		}
		p.line(green, text)
		text, marks := t.excerpt.lines(p.screen, 4)
		fmt.Fprintf(p, "    %s\n    %s\n", text, marks)
		for _, name := range slices.Sorted(maps.Keys(d.Groups)) {
			group := "  group " + oneLine(name) + ": " + oneLine(d.Groups[name])
			fmt.Fprintln(p, runewidth.Truncate(group, cmp.Or(p.screen.width(), excerptWidth), "…"))
		}
		tally[0] = fmt.Sprintf("kept %d %s", d.KeepEnd, plural(d.KeepEnd, "byte"))
		if cut := d.MatchEnd - d.KeepEnd; cut > 0 {
			tally = append(tally, fmt.Sprintf("cut off %d", cut))
		}
		tally = append(tally, fmt.Sprintf("discarded %d", total-d.MatchEnd))
	}
	if t.held > 0 {
		tally = append(tally, fmt.Sprintf("held back %d at most", t.held))
	}
	for l := range strings.SplitSeq(joinParts(tally, max(p.screen.width()-2, plain)), "\n") {
		fmt.Fprintln(p, "  "+l)
	}
}
