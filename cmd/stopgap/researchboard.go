package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"stopgap/internal/research"
	"stopgap/runner"
	"stopgap/template"
)

// A researchBoard shows a research on a terminal: how far it is, what is being
// done, and the outline as it grows, which are drawn over and over. What has
// been done stands above them.
type researchBoard struct {
	board
	began   time.Time
	phase   research.Phase
	moved   research.Moved
	pages   int
	doing   string
	outline research.OutlineChanged
	written []string // the titles of the sections
	past    researchPast
}

// newResearchBoard starts a board. Close ends it.
func newResearchBoard(w io.Writer, s screen) *researchBoard {
	b := &researchBoard{board: board{w: w, screen: s, first: bold, others: dim}}
	b.start(b.frame)
	return b
}

// Event shows one event.
func (b *researchBoard) Event(ev research.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case research.Began:
		b.began = time.Now()
	case research.PhaseBegan:
		b.phase, b.doing = ev.Phase, "waiting for the model"
	case research.Ran:
		b.ran(ev.Event)
		return nil
	case research.Moved:
		b.moved, b.phase = ev, ev.Phase
	case research.PageRead:
		if ev.Error == "" {
			b.doing = "summarising " + inOneLine(ev.URL) + ": " + inOneLine(ev.Goal)
		}
	case research.SummaryStored:
		b.pages++
	case research.OutlineChanged:
		b.outline = ev
	case research.Retrieved:
		b.doing = "reading " + summaries(len(ev.IDs)) + " for " + inOneLine(ev.Goal)
	case research.SectionWritten:
		b.written = append(b.written, ev.Title)
	}
	if words := b.past.words(ev); words != "" {
		fmt.Fprintln(&b.waiting, paintResearch(b.screen, ev, b.screen.fit(words, 0)))
	}
	return nil
}

// ran shows what the model does.
func (b *researchBoard) ran(ev runner.Event) {
	switch ev := ev.(type) {
	case runner.Started:
		b.doing = "waiting for the model"
	case runner.Waiting:
		b.doing = waitingWords(ev)
	case runner.Text:
		if b.doing = "writing"; ev.Span == template.SpanThink {
			b.doing = "thinking"
		}
	case runner.Called:
		b.doing = callWords(ev.Name, ev.Arguments)
	case runner.Returned:
		b.doing = "waiting for the model"
	}
}

// frame is how far the research is and its outline, as far as the terminal is
// high enough.
func (b *researchBoard) frame() []string {
	if b.phase == "" {
		return nil
	}
	out := []string{b.status(), "  " + printable(inOneLine(b.doing))}
	if b.outline.Outline == "" {
		return out
	}
	plan := filledLines(b.outline.Outline)
	out = append(out, fmt.Sprintf("outline %d", b.outline.Number))
	room := max(b.height()-len(out)-2, 1)
	first := 0
	if len(plan) > room {
		room--
		first = min(b.at(plan), len(plan)-room)
	}
	for i, line := range plan[first:min(first+room, len(plan))] {
		mark := "  "
		if first+i < b.at(plan) {
			mark = "✓ "
		}
		out = append(out, mark+line)
	}
	if left := len(plan) - room; left > 0 {
		out = append(out, fmt.Sprintf("  … %d more", left))
	}
	return out
}

// at is the line of the outline where the writer is: behind as many headings of
// the highest kind as there are sections.
func (b *researchBoard) at(plan []string) int {
	sections := 0
	for i, line := range plan {
		if level := strings.IndexFunc(line, func(r rune) bool { return r != '#' }); level == 1 || level == 2 {
			if sections == len(b.written) {
				return i
			}
			sections++
		}
	}
	if len(b.written) == 0 {
		return 0
	}
	return len(plan)
}

// status is the first line.
func (b *researchBoard) status() string {
	parts := []string{phaseWords(b.phase)}
	if b.moved.Turn > 0 {
		turn := fmt.Sprintf("turn %d", b.moved.Turn)
		if b.moved.Turns > 0 {
			turn += fmt.Sprintf(" of %d", b.moved.Turns)
		}
		parts = append(parts, turn)
	}
	parts = append(parts, fmt.Sprintf("%d %s", b.pages, plural(b.pages, "page")))
	if len(b.written) > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", len(b.written), plural(len(b.written), "section")))
	}
	if b.moved.Prompt > 0 {
		prompt := fmt.Sprintf("prompt %d", b.moved.Prompt)
		if b.moved.Context > 0 {
			prompt += fmt.Sprintf(" of %d", b.moved.Context)
		}
		parts = append(parts, prompt+" tokens")
	}
	if b.moved.Generated > 0 {
		parts = append(parts, fmt.Sprintf("%d written", b.moved.Generated))
	}
	if !b.began.IsZero() {
		parts = append(parts, inSeconds(time.Since(b.began)))
	}
	return strings.Join(parts, " · ")
}
