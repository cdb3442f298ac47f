package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"stopgap/internal/research"
)

// A researchView shows the events of a research. What is written to it is told
// beside them, a line at a time.
type researchView interface {
	io.Writer
	Event(research.Event) error
	Close()
}

// newResearchView chooses how a research is shown: as JSON, on a terminal, or
// in lines.
func (a *app) newResearchView(s *settings, asJSON bool) researchView {
	screen := a.screen(a.stderr, s.color)
	switch {
	case asJSON:
		return researchJSON{a.stderr, a.stdout}
	case screen.cursor && !s.quiet:
		return newResearchBoard(a.stderr, screen)
	}
	return &researchLines{Writer: a.stderr, screen: screen, quiet: s.quiet}
}

// researchJSON prints the events for other programs.
type researchJSON struct {
	io.Writer
	out io.Writer
}

// Event prints one event on one line.
func (v researchJSON) Event(ev research.Event) error {
	line, err := research.MarshalEvent(ev)
	if err != nil {
		return fmt.Errorf("event %s: %w", ev.Kind(), err)
	}
	_, err = fmt.Fprintf(v.out, "%s\n", line)
	return err
}

// Close does nothing.
func (researchJSON) Close() {}

// researchLines tells each thing in a line.
type researchLines struct {
	io.Writer
	screen screen
	quiet  bool
	past   researchPast
}

// Event tells one event, or nothing.
func (v *researchLines) Event(ev research.Event) error {
	if v.quiet {
		return nil
	}
	if words := v.past.words(ev); words != "" {
		fmt.Fprintln(v, paintResearch(v.screen, ev, words))
	}
	return nil // standard error has nowhere to report to
}

// Close does nothing.
func (*researchLines) Close() {}

// A researchPast keeps quiet about what was done before the process: it is told
// in one line when the research goes on from there.
type researchPast struct {
	resumed   bool
	replayed  bool // what comes has been done before
	pages     int
	outlines  int
	sections  int
	announced bool
}

// words tells an event in a line, empty for what is not worth one.
func (p *researchPast) words(ev research.Event) string {
	before := ""
	switch ev := ev.(type) {
	case research.Began:
		p.resumed = ev.Resumed
	case research.PhaseBegan:
		p.replayed = ev.Replayed
		if p.resumed && !p.replayed && !p.announced {
			p.announced = true
			before = "goes on in its first part"
			if p.pages+p.outlines > 0 {
				before = fmt.Sprintf("goes on: %s, %d %s and %d %s are there", summaries(p.pages),
					p.outlines, plural(p.outlines, "outline"), p.sections, plural(p.sections, "section"))
			}
		}
	case research.SummaryStored:
		p.pages = max(p.pages, ev.ID)
	case research.OutlineChanged:
		p.outlines = ev.Number
	case research.SectionWritten:
		p.sections = ev.Number
	}
	if p.replayed {
		return ""
	}
	if before != "" {
		return before
	}
	return researchWords(ev)
}

// researchWords tells an event in a line, empty for what is not worth one.
func researchWords(ev research.Event) string {
	words := ""
	switch ev := ev.(type) {
	case research.Began:
		words = "research: " + inOneLine(ev.Question)
		if ev.Given > 0 {
			words += fmt.Sprintf(" (the bank has %s)", summaries(ev.Given))
		}
	case research.Searched:
		words = "searched: " + inOneLine(strings.Join(ev.Queries, " · "))
	case research.PageRead:
		if ev.Error != "" {
			words = "not read: " + inOneLine(ev.URL) + ": " + inOneLine(ev.Error)
		}
	case research.SummaryStored:
		words = fmt.Sprintf("[%d] %s: %s", ev.ID, inOneLine(cmp.Or(ev.Title, ev.URL)), inOneLine(ev.Summary))
		if ev.Known {
			words += " (known before)"
		}
	case research.OutlineChanged:
		words = fmt.Sprintf("outline %d: %d %s, %s cited", ev.Number, ev.Points, plural(ev.Points, "point"), summaries(len(ev.Cited)))
	case research.SectionWritten:
		words = fmt.Sprintf("section %d: %s (%d cited)", ev.Number, inOneLine(ev.Title), len(ev.Cited))
	case research.Noted:
		words = fmt.Sprintf("note (%s): %s", phaseWords(ev.Phase), inOneLine(ev.Text))
	case research.PhaseEnded:
		words = fmt.Sprintf("%s done: %s · %d %s, %d %s · %s", phaseWords(ev.Phase), inOneLine(ev.Reason),
			ev.Turns, plural(ev.Turns, "turn"), ev.Calls, plural(ev.Calls, "call"), duration(ev.Duration))
	}
	return printable(words)
}

// summaries counts them.
func summaries(n int) string {
	if n == 1 {
		return "1 summary"
	}
	return fmt.Sprintf("%d summaries", n)
}

// phaseWords says what is done in a phase.
func phaseWords(p research.Phase) string {
	switch p {
	case research.Planning:
		return "planning"
	case research.Outlining:
		return "outlining"
	case research.Writing:
		return "writing"
	case research.Answering:
		return "answering"
	}
	return string(p)
}

// paintResearch gives the line of an event its colour.
func paintResearch(s screen, ev research.Event, line string) string {
	switch ev := ev.(type) {
	case research.Noted:
		return s.paint(yellow, line)
	case research.PageRead:
		if ev.Error != "" {
			return s.paint(red, line)
		}
	case research.SummaryStored, research.SectionWritten:
		return s.paint(green, line)
	case research.OutlineChanged:
		return s.paint(cyan, line)
	}
	return line
}
