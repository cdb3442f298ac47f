package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"stopgap/internal/eval/probe"
	"stopgap/internal/eval/stats"
)

// A probeBoard shows a probe under way and reports it.
type probeBoard struct {
	app     *app
	json    bool
	screen  screen // of standard output
	spinner *spinner
	total   int
	right   int
	results []probe.Result
}

func (a *app) newProbeBoard(s *settings, asJSON bool, total int) *probeBoard {
	busy := a.screen(a.stderr, s.color)
	if s.quiet {
		busy.cursor = false
	}
	return &probeBoard{app: a, json: asJSON, screen: a.screen(a.stdout, s.color), spinner: newSpinner(a.stderr, busy), total: total}
}

func (b *probeBoard) close() { b.spinner.Close() }

// asking says which case is asked.
func (b *probeBoard) asking(i int, c *probe.Case) {
	words := fmt.Sprintf("case %d of %d, %s", i+1, b.total, c.ID)
	if i > 0 {
		words += fmt.Sprintf(" · %d right", b.right)
	}
	b.spinner.show(words)
}

// add takes the result of a case.
func (b *probeBoard) add(r probe.Result) error {
	b.results = append(b.results, r)
	if r.Right {
		b.right++
	}
	if !b.json {
		return nil
	}
	b.spinner.hide()
	return b.line("case", r)
}

// line prints an event on one line.
func (b *probeBoard) line(event string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.app.stdout, "{\"event\":%q,%s\n", event, body[1:])
	return err
}

// report prints what the results say. Without any there is nothing to say.
func (b *probeBoard) report() error {
	b.spinner.hide()
	if len(b.results) == 0 {
		return nil
	}
	s := probe.Summarise(b.results)
	if b.json {
		return b.line("summary", s)
	}
	b.scores(s)
	b.counts("what was wrong", s.Faults)
	b.counts("problems", s.Problems)
	b.counts("repairs", s.Repairs)
	b.propensity(s.Propensity)
	b.certainty(s)
	return b.app.stdout.err
}

func (b *probeBoard) p(format string, args ...any) { fmt.Fprintf(b.app.stdout, format+"\n", args...) }

// scores is the table of the groups.
func (b *probeBoard) scores(s probe.Summary) {
	width := len("group")
	for _, g := range s.Groups {
		width = max(width, cells(g.Name))
	}
	row := func(name, cases, strict, right string) string {
		return fmt.Sprintf("%s%s %7s %9s %9s", name, strings.Repeat(" ", width-cells(name)), cases, strict, right)
	}
	b.p("%s", b.screen.paint(bold, row("group", "cases", "strict", "repaired")))
	for _, g := range s.Groups {
		b.p("%s", row(printable(g.Name), strconv.Itoa(g.Cases), share(g.Strict, g.Cases), share(g.Right, g.Cases)))
	}
	b.p("%s", b.screen.paint(bold, row("all", strconv.Itoa(s.Cases), points(s.Strict.Estimate), points(s.Right.Estimate))))
	b.p("%s", b.screen.paint(dim, row("95 %", "from", points(s.Strict.Low), points(s.Right.Low))))
	b.p("%s", b.screen.paint(dim, row("", "to", points(s.Strict.High), points(s.Right.High))))
}

// share is a part in percent.
func share(part, whole int) string { return points(float64(part) / float64(whole)) }

func points(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + " %" }

// counts lists how many cases have what.
func (b *probeBoard) counts(title string, list []probe.Count) {
	if len(list) == 0 {
		return
	}
	b.p("\n%s", b.screen.paint(bold, title))
	for _, c := range list {
		b.p("%6d  %s", c.Cases, printable(c.Name))
	}
}

// propensity says how likely a call is.
func (b *probeBoard) propensity(p *probe.Propensity) {
	if p == nil {
		return
	}
	b.p("\n%s", b.screen.paint(bold, "how likely a call is, behind the model's own thoughts"))
	for _, half := range []struct {
		logprob *float64
		words   string
	}{{p.Wanted, "where one is right (median)"}, {p.Unwanted, "where none is (median)"}} {
		if half.logprob != nil {
			b.p("%8s  %s", percent(math.Exp(*half.logprob)), half.words)
		}
	}
	if p.AUC != nil {
		b.p("%8.2f  the chance that it is higher in a case of the first kind (AUC)", *p.AUC)
	}
}

// certainty says what so many cases can tell.
func (b *probeBoard) certainty(s probe.Summary) {
	b.p("")
	words := fmt.Sprintf("Two configurations cannot be compared by %d %s.", s.Cases, plural(s.Cases, "case"))
	if s.Detectable < 1 && s.Cases >= fewest {
		words = fmt.Sprintf("%d cases show a difference of %.0f points between two configurations, and hardly a smaller one (McNemar, power 80 %%, differing on a quarter of the cases).",
			s.Cases, math.Ceil(100*s.Detectable))
	}
	if need := stats.ItemsNeeded(0.25, 0.05); s.Cases < need {
		words += fmt.Sprintf(" For one of 5 points it takes about %d.", need)
	}
	for _, line := range wrap(words, b.screen.width(), 0) {
		b.p("%s", b.screen.paint(dim, strings.TrimSpace(line)))
	}
}

// fewest cases that a comparison is worth mentioning for.
const fewest = 20
