package research

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stopgap/internal/research/cite"
	"stopgap/runner"
	"stopgap/tools"
)

// A tally is what a phase has cost so far.
type tally struct {
	turns, calls, generated int
	duration                time.Duration
}

func (s *state) of(p Phase) *tally {
	t := s.tally[p]
	if t == nil {
		t = &tally{}
		s.tally[p] = t
	}
	return t
}

// take takes up what happened in a leg. It is the only place where a research
// learns anything, whether the leg runs or is read from its journal.
func (s *state) take(p Phase, h happening) error {
	switch {
	case h.stopped != nil:
		t := s.of(p)
		t.turns++
		t.generated += h.stopped.Pieces
		if p == Planning {
			s.remember(step{full: strings.TrimSpace(h.turn)})
		}
		return s.move(p, h.stopped)
	case h.nudged != nil:
		return s.note(p, whatTurn, nudges(h.nudged.Reason))
	}
	if h.call != nil {
		s.of(p).calls++
	}
	if h.result.Status != tools.OK {
		return s.failed(p, h)
	}
	switch h.result.Name {
	case searchTool:
		return s.searched(h)
	case accessTool:
		return s.accessed(h)
	case retrieveTool:
		return s.retrieved(h)
	case writeTool:
		return s.written(arguments[writeArguments](h.call).Text)
	}
	return nil
}

// nudges are the runner's reasons in words of the log.
func nudges(reason string) string {
	switch reason {
	case "no_call_no_answer":
		return "a turn had neither an action nor an answer"
	case "repeated_call":
		return "the same actions were taken again and again"
	}
	return "a turn was not as the format asks: " + strings.ReplaceAll(reason, "_", " ")
}

// move tells how far the research is.
func (s *state) move(p Phase, stopped *runner.Stopped) error {
	turns, generated := 0, 0
	for _, t := range s.tally {
		generated += t.generated
	}
	switch p {
	case Planning:
		turns = s.budget(s.Limits.Plan).Turns
	case Writing:
		turns = s.budget(s.Limits.Write).Turns
	}
	return s.emit(Moved{
		Phase: p, Turn: s.of(p).turns, Turns: turns, Pages: s.pages, Prompt: stopped.Usage.Prompt.N, Context: s.context,
		Generated: generated, Duration: time.Since(s.began),
	})
}

// failed takes a call that gave an error, or a turn in which none could be read.
func (s *state) failed(p Phase, h happening) error {
	text := oneLine(h.result.Content)
	if p == Planning {
		s.remember(step{full: h.result.Content, short: text})
	}
	if h.result.Name == accessTool && h.call != nil {
		in := arguments[accessArguments](h.call)
		if err := s.emit(PageRead{URL: in.URL, Goal: in.Goal, Error: text}); err != nil {
			return err
		}
		text = fmt.Sprintf("%s: %s", in.URL, text)
	}
	if h.result.Name != "" {
		text = h.result.Name + ": " + text
	}
	return s.note(p, whatFailed(h.result.Name, h.result.Content), text)
}

func (s *state) searched(h happening) error {
	s.searches++
	queries := arguments[searchArguments](h.call).queries()
	s.remember(step{full: h.result.Content, short: "searched: " + strings.Join(queries, "; ")})
	return s.emit(Searched{queries})
}

// accessed takes a page that was read: its number stands at the beginning of
// the result, and the rest is in the bank.
func (s *state) accessed(h happening) error {
	var number int
	if _, err := fmt.Sscanf(h.result.Content, "[%d]", &number); err != nil {
		return s.note(Planning, whatPage, "a page was read without a number") // a journal that somebody else wrote
	}
	found, _, err := s.bank.Get(s.ctx, number)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return s.note(Planning, whatPage, fmt.Sprintf("the bank has no summary %d any more", number))
	}
	b := found[0]
	known := slices.Contains(s.known, number)
	if !known {
		s.known = append(s.known, number)
		s.pages++
	}
	s.remember(step{full: fmt.Sprintf("read [%d] %s", number, b.Title), short: fmt.Sprintf("read [%d] %s", number, b.Title)})
	page := PageRead{URL: b.Source, Title: b.Title, Goal: b.Goal}
	if p, err := s.bank.Page(s.ctx, b.Page); err == nil {
		page.Characters = len([]rune(p.Text))
	}
	if err := s.emit(page); err != nil {
		return err
	}
	return s.emit(SummaryStored{
		ID: number, URL: b.Source, Title: b.Title, Goal: b.Goal, Summary: b.Summary, Tokens: b.Tokens, Known: known,
	})
}

func (s *state) retrieved(h happening) error {
	in := arguments[retrieveArguments](h.call)
	for _, n := range in.ID {
		if !slices.Contains(s.fetched, n) {
			s.fetched = append(s.fetched, n)
		}
	}
	return s.emit(Retrieved{IDs: in.ID, Goal: in.Goal})
}

// A section is a part of the report, as the model wrote it.
type section struct{ title, text string }

// written takes a section of the report, behind those before it.
func (s *state) written(text string) error {
	text = strings.TrimSpace(text)
	s.report = append(s.report, section{titleOf(text, len(s.report)+1), text})
	s.fetched = nil
	var cited, unknown []int
	for _, m := range cite.Find(text) {
		for _, n := range m.Numbers {
			switch {
			case !slices.Contains(s.known, n):
				unknown = append(unknown, n)
			case !slices.Contains(cited, n):
				cited = append(cited, n)
			}
		}
	}
	last := s.report[len(s.report)-1]
	if err := s.emit(SectionWritten{Number: len(s.report), Title: last.title, Text: text, Cited: cited}); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return s.note(Writing, whatUnknown, fmt.Sprintf("section %d cites what nobody has read: %s", len(s.report), numbers(unknown)))
	}
	if len(cited) == 0 {
		return s.note(Writing, whatCites, fmt.Sprintf("section %d cites nothing", len(s.report)))
	}
	return nil
}

// titleOf is the first heading of a section, or its number.
func titleOf(text string, number int) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if title := strings.TrimSpace(strings.TrimLeft(line, "#")); strings.HasPrefix(line, "#") && title != "" {
			return strings.TrimSpace(cite.Strip(title))
		}
		break
	}
	return fmt.Sprintf("Section %d", number)
}

// numbers writes numbers as a reader sees them.
func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = fmt.Sprintf("[%d]", n)
	}
	return strings.Join(words, ", ")
}

// oneLine is the beginning of a text on one line.
func oneLine(text string) string {
	const most = 300 // characters
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
