package research

import (
	"context"
	"strings"

	"stopgap/internal/research/article"
	"stopgap/internal/research/outline"
)

// compile makes the report of what there is and has its citations checked. It
// names nothing that another run of the same research would have otherwise: no
// times, and no folders.
func (s *state) compile(ctx context.Context, partial bool) (*article.Report, error) {
	r := &article.Report{
		Question: s.Question, Model: s.Runner.Name, Date: s.Date, Answer: s.answer,
		Sections: []article.Section{}, Log: []article.Entry{},
		Totals: article.Totals{
			Searches: s.searches, Pages: s.pages, Summaries: len(s.known), Outlines: s.changes,
		},
	}
	if s.outline != "" {
		r.Outline, _ = outline.Parse(s.outline)
	}
	for _, done := range s.report {
		r.Sections = append(r.Sections, article.Section{Title: done.title, Text: done.text})
	}
	for _, n := range s.log {
		r.Log = append(r.Log, article.Entry{Phase: string(n.Phase), Kind: n.What, Message: n.Text})
	}
	if partial {
		r.Log = append(r.Log, article.Entry{Kind: "partial", Message: "the research did not come to its end; this is what there is"})
	}
	return r, r.Check(ctx, s.bank)
}

// tellChecks tells of each citation.
func (s *state) tellChecks(r *article.Report) error {
	for _, c := range r.Citations {
		if err := s.emit(CitationChecked{Section: c.Section, ID: c.Bank, Status: string(c.Verdict)}); err != nil {
			return err
		}
	}
	return nil
}

// What a line of the log is about, in one word.
const (
	whatTurn     = "turn"              // not as the format asks
	whatTool     = "failed"            // a tool gave an error
	whatPage     = "unread_page"       // it could not be read
	whatEmpty    = "empty_summary"     // it was read in vain
	whatOutline  = "unusable_outline"  // something is wrong with it
	whatCites    = "no_citations"      // of an outline or a section
	whatUnknown  = "unknown_id"        // a number that nobody has given
	whatRetrieve = "empty_retrieve"    // nothing was asked for
	whatEnd      = "section_not_ended" // there is no closing tag
	whatBudget   = "ended_early"       // a phase was ended
	whatNothing  = "nothing"           // no page, no section, no answer
)

// whatFailed says what a call that gave an error is about. It follows from the
// words that the model was told, which are all that a journal has.
func whatFailed(tool, content string) string {
	switch has := func(words string) bool { return strings.Contains(content, words) }; {
	case tool == accessTool && has(errEmptySummary.Error()):
		return whatEmpty
	case tool == accessTool:
		return whatPage
	case tool == retrieveTool && (has(errNoNumber.Error()) || has("call is empty")):
		return whatRetrieve
	case tool == retrieveTool && has("there is no summary"):
		return whatUnknown
	case tool == outlineTool && has((outline.Problem{Kind: outline.NoCitations}).Error()[:24]):
		return whatCites
	case tool == outlineTool && has("There is no summary"):
		return whatUnknown
	case tool == outlineTool:
		return whatOutline
	case tool == "":
		return whatTurn
	}
	return whatTool
}
