package research

import (
	"bytes"
	"encoding/json"
	"time"

	"stopgap/internal/research/article"
	"stopgap/runner"
)

// An Event is one thing that happened in a research. The types of this file are
// all there are. Every research that began ends with exactly one Ended.
//
// What has been done before a kill is told again when the same research goes
// on: the events of a whole research and of one that was killed are the same,
// but for durations, for PhaseBegan and for Ran.
type Event interface {
	// Kind is the event's name in JSON, for example "page_read".
	Kind() string
}

// A Phase is a part of a research.
type Phase string

// The phases, in their order. An outline is written between two parts of the
// planning.
const (
	Planning  Phase = "plan"
	Outlining Phase = "outline"
	Writing   Phase = "write"
	Answering Phase = "answer"
)

// Began opens a research.
type Began struct {
	Question string `json:"question"`
	Folder   string `json:"folder,omitempty"`
	Bank     string `json:"bank,omitempty"`  // the file
	Given    int    `json:"given,omitempty"` // summaries that the bank had from other questions
	Resumed  bool   `json:"resumed,omitempty"`
}

// PhaseBegan says that a phase begins, or goes on after another one.
type PhaseBegan struct {
	Phase Phase `json:"phase"`
	Leg   int   `json:"leg"` // the number of its journal, from 1
	// Replayed says that what follows has been done before: it comes from the
	// leg's journal, and the model is not asked. A leg that was left in its middle
	// begins so, and a second time, without Replayed, where it goes on.
	Replayed bool `json:"replayed,omitempty"`
}

// Ran is an event of the runner, of the leg that PhaseBegan has told last. What
// is replayed has none.
type Ran struct {
	Event runner.Event
}

// Searched says what was looked for.
type Searched struct {
	Queries []string `json:"queries"`
}

// PageRead says that a page was read, or could not be.
type PageRead struct {
	URL        string `json:"url"` // or the id of a document
	Title      string `json:"title,omitempty"`
	Goal       string `json:"goal"`
	Characters int    `json:"characters,omitempty"`
	Error      string `json:"error,omitempty"`
}

// SummaryStored says that a page has its summary.
type SummaryStored struct {
	ID      int    `json:"id"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Goal    string `json:"goal"`
	Summary string `json:"summary"`
	Tokens  int    `json:"tokens"`
	// Known says that the bank had it already: the same page for the same goal.
	Known bool `json:"known,omitempty"`
}

// OutlineChanged gives the outline as it is now.
type OutlineChanged struct {
	Number  int    `json:"number"`  // of the outline, from 1
	Outline string `json:"outline"` // as Markdown, citations as [1, 2]
	Points  int    `json:"points"`  // its lines, and the sections without any
	Cited   []int  `json:"cited,omitempty"`
}

// Retrieved says which summaries the writer has before it.
type Retrieved struct {
	IDs  []int  `json:"ids"`
	Goal string `json:"goal"`
}

// SectionWritten gives a section of the report.
type SectionWritten struct {
	Number int    `json:"number"` // from 1
	Title  string `json:"title"`
	Text   string `json:"text"` // as the model wrote it
	Cited  []int  `json:"cited,omitempty"`
}

// Noted is a line of the report's log: something that was not as it should be
// and did not end the research.
type Noted struct {
	Phase Phase  `json:"phase"`
	What  string `json:"what"` // in one word, as "empty_summary"
	Text  string `json:"text"`
}

// PhaseEnded closes a phase and sums it up. A phase that an outline interrupts
// goes on and is closed once.
type PhaseEnded struct {
	Phase    Phase         `json:"phase"`
	Reason   string        `json:"reason"` // why, in words: "terminate", "the limit of turns is reached"
	Turns    int           `json:"turns"`
	Calls    int           `json:"calls"`
	Duration time.Duration `json:"duration_ns"`
}

// Moved says how far the research is, now and then.
type Moved struct {
	Phase     Phase         `json:"phase"`
	Turn      int           `json:"turn"` // of the phase
	Turns     int           `json:"turns"`
	Pages     int           `json:"pages"` // read, with a summary
	Prompt    int           `json:"prompt_tokens"`
	Context   int           `json:"context_tokens"`
	Generated int           `json:"generated_tokens"` // pieces of text, in all phases
	Duration  time.Duration `json:"duration_ns"`
}

// CitationChecked is what became of one citation of the report.
type CitationChecked struct {
	Section int    `json:"section"`
	ID      int    `json:"id"`
	Status  string `json:"status"` // "ok", or what is wrong: a cite.Verdict
}

// Ended closes a research.
type Ended struct {
	Answer      string        `json:"answer,omitempty"`
	Sections    int           `json:"sections"`
	Summaries   int           `json:"summaries"`
	Citations   int           `json:"citations"`
	Unsupported int           `json:"unsupported"`
	Notes       int           `json:"notes"`
	Duration    time.Duration `json:"duration_ns"`
	// Partial says that the research did not come to its end.
	Partial bool   `json:"partial,omitempty"`
	Error   string `json:"error,omitempty"`
	// Report is what there is.
	Report *article.Report `json:"-"`
}

func (Began) Kind() string           { return "research_began" }
func (PhaseBegan) Kind() string      { return "phase_began" }
func (e Ran) Kind() string           { return e.Event.Kind() }
func (Searched) Kind() string        { return "searched" }
func (PageRead) Kind() string        { return "page_read" }
func (SummaryStored) Kind() string   { return "summary_stored" }
func (OutlineChanged) Kind() string  { return "outline_changed" }
func (Retrieved) Kind() string       { return "retrieved" }
func (SectionWritten) Kind() string  { return "section_written" }
func (Noted) Kind() string           { return "noted" }
func (PhaseEnded) Kind() string      { return "phase_ended" }
func (Moved) Kind() string           { return "moved" }
func (CitationChecked) Kind() string { return "citation_checked" }
func (Ended) Kind() string           { return "research_ended" }

// MarshalEvent gives the event as one JSON object on one line, whose first
// field is "event". An event of the runner is as runner.MarshalEvent gives it.
func MarshalEvent(e Event) ([]byte, error) {
	if ran, ok := e.(Ran); ok {
		return runner.MarshalEvent(ran.Event)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	head := []byte(`{"event":"` + e.Kind() + `"`)
	if len(body) > 2 {
		head = append(head, ',')
	}
	return append(head, body[1:]...), nil
}
