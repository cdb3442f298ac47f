package research

import "context"

// A Report is what a research found.
type Report struct {
	Question string
	Answer   string
	Outline  string
	Sections []string
	Log      []Noted
	Partial  bool
}

func (s *state) compile(_ context.Context, e *Ended) *Report {
	r := &Report{Question: s.Question, Answer: s.answer, Outline: s.outline, Log: s.log, Partial: e.Partial}
	for _, done := range s.report {
		r.Sections = append(r.Sections, done.text)
	}
	return r
}

func (s *state) tellChecks(*Report) error { return nil }
