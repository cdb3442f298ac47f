package research

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stopgap/internal/research/bank"
	"stopgap/internal/research/cite"
	"stopgap/tools"
)

// idleLegs is how many legs in a row the writer may spend without a section and
// without fetching what it has not.
const idleLegs = 3

// write is the second phase: section by section the writer fetches what the
// outline cites and writes it.
func (s *state) write() error {
	if s.outline == "" {
		return nil // the planning has said why
	}
	for idle := 0; ; {
		written, fetched := len(s.report), len(s.fetched)
		p, err := s.writer()
		if err != nil {
			return err
		}
		end, err := s.run(p)
		if err != nil {
			return err
		}
		if end.by == "" && !end.full {
			if err := s.salvage(end.turn); err != nil {
				return err
			}
		}
		reason := s.spent(Writing, s.budget(s.Limits.Write), end)
		if idle++; len(s.report) > written || len(s.fetched) > fetched {
			idle = 0
		}
		switch {
		case end.by == writtenTool || end.by == "" && end.answer != "":
			return s.wrote(writtenTool)
		case reason != "":
			return s.wrote(reason)
		case idle == idleLegs:
			return s.wrote("the writer wrote no section any more: " + cmp.Or(words(end.reason), "the prompt is full"))
		}
	}
}

// wrote ends the writing.
func (s *state) wrote(reason string) error {
	if reason != writtenTool {
		if err := s.note(Writing, whatBudget, "the writing was ended: "+reason); err != nil {
			return err
		}
	}
	if len(s.report) == 0 {
		if err := s.note(Writing, whatNothing, "no section was written"); err != nil {
			return err
		}
	}
	return s.ended(Writing, reason)
}

// writer is a leg of the writing. It begins with the outline, the end of each
// section that is written, and what was fetched for the section at hand.
func (s *state) writer() (part, error) {
	left := s.rest(Writing, s.budget(s.Limits.Write))
	summaries, err := s.handed(s.ctx, s.fetched, s.share(5))
	return part{
		phase: Writing, script: s.Scripts.Write, ends: []string{writeTool, writtenTool},
		turns: left.Turns, tokens: left.Tokens, time: left.Time, result: s.share(4), write: s.turnTokens(),
		texts: texts(map[string]string{
			"outline":   plainCitations(s.outline),
			"written":   s.ends(s.share(8)),
			"summaries": summaries,
		}),
		tools: []tools.Tool{
			newVerb(retrieveTool, "Fetch summaries by their numbers.",
				`{"type":"object","properties":{"id":{"type":"array","items":{"type":"integer"},"description":"The numbers of the summaries."},"goal":{"type":"string","description":"The section that they are for."}}}`, s.retrieve),
			newVerb(writeTool, "Add a section to the end of the report, as Markdown that begins with its heading.",
				`{"type":"object","properties":{"text":{"type":"string","description":"The section."}},"required":["text"]}`, s.add),
			newVerb(writtenTool, "End the report.", noParameters, func(context.Context, none) (string, error) {
				return "The report is written.", nil
			}),
		},
	}, err
}

// errNoNumber says that nothing was asked for.
var errNoNumber = errors.New("there is no number; name the summaries that the outline cites for the section")

// retrieve gives summaries by their numbers. Numbers that nobody has given are
// an error, which comes with what there is.
func (s *state) retrieve(ctx context.Context, in retrieveArguments) (string, error) {
	if len(in.ID) == 0 {
		return "", errNoNumber
	}
	var ids, unknown []int
	for _, n := range in.ID {
		switch {
		case !slices.Contains(s.known, n):
			unknown = append(unknown, n)
		case !slices.Contains(ids, n):
			ids = append(ids, n)
		}
	}
	text, err := s.handed(ctx, ids, s.share(4)-64)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("there is no summary %s; the outline cites %s", numbers(unknown), numbers(s.cited()))
	}
	return text, err
}

// cited are the numbers that the outline cites.
func (s *state) cited() []int {
	var out []int
	for _, m := range cite.Find(s.outline) {
		for _, n := range m.Numbers {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// handed gives summaries as the writer reads them: with the evidence where
// there is room, else without, else by their numbers alone.
func (s *state) handed(ctx context.Context, ids []int, room int) (string, error) {
	found, _, err := s.bank.Get(ctx, ids...)
	if err != nil {
		return "", err
	}
	short := 0
	for _, b := range found {
		short += s.count(shortly(b)) + 1
	}
	var out []string
	var left []int
	for _, b := range found {
		brief, whole := shortly(b), wholly(b)
		extra := s.count(whole) - s.count(brief)
		switch {
		case short+extra <= room:
			out, short = append(out, whole), short+extra
		case s.count(strings.Join(out, "\n\n"))+s.count(brief) <= room:
			out = append(out, brief)
		default:
			left = append(left, b.Number)
		}
	}
	if len(left) > 0 {
		out = append(out, fmt.Sprintf("There is no room for %s; retrieve fewer at once.", numbers(left)))
	}
	return strings.Join(out, "\n\n"), nil
}

func shortly(b bank.Summary) string {
	return fmt.Sprintf("[%d] %s\nSummary: %s", b.Number, b.Title, cmp.Or(b.Summary, b.Evidence))
}

func wholly(b bank.Summary) string {
	if b.Evidence == "" || b.Summary == "" {
		return shortly(b)
	}
	return shortly(b) + "\nEvidence: " + b.Evidence
}

// add checks a section. It becomes part of the report when its event has come.
func (s *state) add(_ context.Context, in writeArguments) (string, error) {
	text := strings.TrimSpace(in.Text)
	if text == "" {
		return "", errors.New("the section is empty")
	}
	if slices.ContainsFunc(s.report, func(done section) bool { return done.text == text }) {
		return "", errors.New("this section is written already; go on with the next one, or end the report")
	}
	return "The section stands at the end of the report.", nil
}

// salvage takes a section without an end out of the writer's last turn.
func (s *state) salvage(turn string) error {
	const open = "<" + writeTool + ">"
	i := strings.LastIndex(turn, open)
	if i < 0 || strings.Contains(turn[i:], "</"+writeTool+">") {
		return nil
	}
	text := strings.TrimSpace(turn[i+len(open):])
	if _, err := s.add(s.ctx, writeArguments{text}); err != nil {
		return nil // there is nothing in it
	}
	if err := s.note(Writing, whatEnd, fmt.Sprintf("section %d has no end; what there is of it was kept", len(s.report)+1)); err != nil {
		return err
	}
	return s.written(text)
}

// ends gives the title and the end of each section: enough to go on from there.
func (s *state) ends(room int) string {
	const end = 160 // characters
	var out []string
	for i, done := range s.report {
		line := fmt.Sprintf("%d. %s", i+1, done.title)
		text := []rune(strings.Join(strings.Fields(plainCitations(done.text)), " "))
		out = append(out, line+"\n   … "+string(text[max(0, len(text)-end):]))
	}
	return s.cut(strings.Join(out, "\n"), room)
}

// plainCitations spells citations as [1, 2]: the tags are the writer's own.
func plainCitations(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range cite.Find(text) {
		b.WriteString(text[at:m.Start])
		if len(m.Numbers) > 0 {
			b.WriteString("[" + strings.Trim(strings.ReplaceAll(numbers(m.Numbers), "], [", ", "), "[]") + "]")
		}
		at = m.End
	}
	return b.String() + text[at:]
}

// conclude is the last phase: the question is answered from the report.
func (s *state) conclude() error {
	p := part{
		phase: Answering, script: s.Scripts.Write, turns: 2, result: s.share(16), write: s.turnTokens(),
		texts: texts(map[string]string{
			"history": s.past(s.share(10)),
			"outline": s.cut(plainCitations(s.outline), s.share(8)),
			"report":  s.cut(plainCitations(s.text()), s.share(2)),
		}),
	}
	end, err := s.run(p)
	if err != nil {
		return err
	}
	if s.answer = strings.TrimSpace(end.answer); s.answer == "" {
		if err := s.note(Answering, whatNothing, "there is no answer: "+words(end.reason)); err != nil {
			return err
		}
	}
	return s.ended(Answering, cmp.Or(string(end.reason), "answered"))
}

// text is the report: all sections in their order.
func (s *state) text() string {
	var out []string
	for _, done := range s.report {
		out = append(out, done.text)
	}
	return strings.Join(out, "\n\n")
}
