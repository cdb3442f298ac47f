package runner

import (
	"bytes"
	"encoding/json"
	"time"

	"stopgap/models"
	"stopgap/template"
	"stopgap/tools"
)

// An Event is one thing that happened in a run. The types of this file are all
// there are. Every run ends with exactly one Ended.
type Event interface {
	// Kind is the event's name in JSON, for example "called".
	Kind() string
}

// Started opens a run: the prompt stands.
type Started struct {
	Question string    `json:"question"`
	Format   string    `json:"format"`
	Model    string    `json:"model,omitempty"`
	Tools    []string  `json:"tools,omitempty"`
	Prompt   []Segment `json:"prompt"`
}

// Waiting says what the server does before the first token of a turn.
type Waiting struct {
	Turn  int          `json:"turn"`
	Phase models.Phase `json:"phase"`
	Done  int          `json:"done,omitempty"`  // prompt tokens read
	Total int          `json:"total,omitempty"` // zero where unknown
}

// Text is generated text. The Texts of a turn, joined, are what the ledger
// keeps of it.
type Text struct {
	Turn int               `json:"turn"` // from 1
	Span template.SpanKind `json:"span"`
	Text string            `json:"text"`
}

// Noticed says that a criterion with the action Notify matched. The offsets are
// bytes of this turn's text.
type Noticed struct {
	Turn       int    `json:"turn"`
	Criterion  string `json:"criterion"`
	MatchStart int    `json:"match_start"`
	MatchEnd   int    `json:"match_end"`
}

// Resumed says that the server's stream was cut and is gone on with: the next
// request's prompt ends with what was received of the turn. A name or arguments
// under a schema, of which nothing has been shown, are asked for again.
type Resumed struct {
	Turn  int    `json:"turn"`
	Bytes int    `json:"bytes"` // of this turn's text that the request goes on from
	Error string `json:"error"` // how the stream was cut
}

// Stopped ends a generation that came to its end; one that an error ended has
// none. With the format chat the turn's text is the answer's, without thoughts
// and calls.
type Stopped struct {
	Turn int `json:"turn"`
	// Criterion is the name of the criterion that fired; empty where the server ended.
	Criterion string           `json:"criterion,omitempty"`
	Means     template.Meaning `json:"means"`
	// Finish is the server's reason; empty where a criterion halted the stream.
	Finish     models.Finish `json:"finish,omitempty"`
	MatchStart int           `json:"match_start,omitempty"` // bytes of this turn's text
	MatchEnd   int           `json:"match_end,omitempty"`
	KeepEnd    int           `json:"keep_end"`
	Discarded  int           `json:"discarded,omitempty"` // bytes received past the stop
	Pieces     int           `json:"pieces"`              // chunks with text, about a token each
	// Requests is how many requests the turn took: one, unless calls were
	// written under a schema, a call or a stream that was cut was gone on with,
	// or the thinking was closed. Usage sums them.
	Requests int          `json:"requests"`
	Resumed  int          `json:"resumed,omitempty"` // streams that were cut and gone on with
	Usage    models.Usage `json:"usage"`
	// Problems are what in the turn is not as the format or the tools ask.
	Problems []template.Problem `json:"problems,omitempty"`
	// Halt is the time from the last byte of the match to the request's end.
	Halt    time.Duration  `json:"halt_ns,omitempty"`
	Timings models.Timings `json:"timings"`
}

// Called says that a tool is about to run.
type Called struct {
	Turn      int             `json:"turn"`
	Index     int             `json:"index"` // of the call in its turn, from 0
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	// Repairs are what it took to read the call.
	Repairs []template.Repair `json:"repairs,omitempty"`
}

// Returned is a tool's answer, or the message that stands in for it.
type Returned struct {
	Turn     int           `json:"turn"`
	Index    int           `json:"index"`
	Name     string        `json:"name"`
	Status   tools.Status  `json:"status"`
	Content  string        `json:"content"`
	Cut      int           `json:"cut_tokens,omitempty"` // tokens left out
	Duration time.Duration `json:"duration_ns"`
}

// Nudged says that the runner told the model something of its own accord.
type Nudged struct {
	Turn int `json:"turn"`
	// Reason is a template.ProblemKind, "repeated_call", ThinkLimit, or a
	// Termination that forces an answer.
	Reason string `json:"reason"`
	Note   string `json:"note"`
	// Forced says that an answer without tools is asked for.
	Forced bool `json:"forced,omitempty"`
}

// Answered is the answer of the run.
type Answered struct {
	Turn   int    `json:"turn"`
	Answer string `json:"answer"`
	Forced bool   `json:"forced,omitempty"`
	// Truncated says that the answer was cut at the token limit of a turn.
	Truncated bool `json:"truncated,omitempty"`
}

// Ended closes a run.
type Ended struct {
	Outcome
}

func (Started) Kind() string  { return "started" }
func (Waiting) Kind() string  { return "waiting" }
func (Text) Kind() string     { return "text" }
func (Noticed) Kind() string  { return "noticed" }
func (Resumed) Kind() string  { return "resumed" }
func (Stopped) Kind() string  { return "stopped" }
func (Called) Kind() string   { return "called" }
func (Returned) Kind() string { return "returned" }
func (Nudged) Kind() string   { return "nudged" }
func (Answered) Kind() string { return "answered" }
func (Ended) Kind() string    { return "ended" }

// A Termination is why a run ended.
type Termination string

// The terminations. A run has exactly one.
const (
	TermAnswered       Termination = "answered"
	TermAnsweredForced Termination = "answered_forced" // a budget was reached; one last generation without tools answered
	TermNoAnswer       Termination = "no_answer"       // the model ended without an answer
	TermCalled         Termination = "called"          // with calls that nobody makes, see Runner.CallsEnd
	TermTurnLimit      Termination = "turn_limit"
	TermTokenLimit     Termination = "token_limit"
	TermDeadline       Termination = "deadline"
	TermLoop           Termination = "loop"         // the same calls again and again
	TermFormatError    Termination = "format_error" // too many turns that are not as the format asks
	TermServerError    Termination = "server_error"
	TermCancelled      Termination = "cancelled"
	TermHandedOver     Termination = "handed_over" // whoever asked had enough, see ErrHandedOver
)

// An Outcome sums up a run.
type Outcome struct {
	Termination Termination `json:"termination"`
	Answer      string      `json:"answer,omitempty"`
	Turns       int         `json:"turns"`
	Requests    int         `json:"requests"` // to the model
	Calls       int         `json:"calls"`
	Problems    int         `json:"problems,omitempty"`
	Invented    int         `json:"invented,omitempty"`  // tool responses that the model began to write itself
	Discarded   int         `json:"discarded,omitempty"` // bytes received past stops
	Resumed     int         `json:"resumed,omitempty"`   // streams that were cut and gone on with
	// Prefilled counts prompt tokens that were read while tools ran, where the
	// server tells.
	Prefilled int `json:"prefilled,omitempty"`
	// Usage sums the turns. A sum with an unknown part is unknown: most servers
	// say nothing of a generation that was halted. Pieces is known always.
	Usage  models.Usage `json:"usage"`
	Pieces int          `json:"pieces"` // chunks with text, about a token each
	// Duration is the wall clock of the whole run, tools included.
	Duration time.Duration `json:"duration_ns"`
	// Error is the text of the error that ended the run, if one did; the
	// error itself is the last thing that Run yields.
	Error string `json:"error,omitempty"`
	// Ledger is the whole prompt as it stands; a further Task may continue it.
	Ledger *Ledger `json:"-"`
}

// MarshalEvent gives the event as one JSON object on one line, whose first
// field is "event". The tags of a prompt stand there as they are, not as
// escapes that are meant for HTML.
func MarshalEvent(e Event) ([]byte, error) {
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
