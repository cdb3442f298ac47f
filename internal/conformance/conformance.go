// Package conformance says what every format must do, and checks it by playing.
//
// A scripted model, whose turns the format itself spells, and tools that answer
// by heart go through whole runs of the real runner: calls, results, failures,
// a last answer, text from outside that is full of the format's own tags. A
// shipped format and a user's own file pass the same checks.
//
// The package never talks to a server, never prints, and changes no file.
package conformance

import (
	"fmt"
	"iter"
	"slices"

	"stopgap/template"
)

// A Finding is something that a format does not do as it must.
type Finding struct {
	Check string `json:"check"` // its name, as in Result
	// Where is the head's key or the block to look at, "stops[1]" or "continue".
	Where   string `json:"where"`
	Message string `json:"message"`
}

// A Result is what one check gave.
type Result struct {
	Check string `json:"check"`
	// Skipped says why the check does not apply; empty where it was made.
	Skipped  string    `json:"skipped,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
}

// Check makes all the checks and gives what was found, nothing for a format
// that is as it must be.
func Check(f *template.Format) []Finding {
	var out []Finding
	for r := range Results(f) {
		out = append(out, r.Findings...)
	}
	return out
}

// Results makes one check after the other. A format without runs of its own has
// one result, which says so.
func Results(f *template.Format) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		if reason := Unplayable(f); reason != "" {
			yield(Result{Check: "runs", Skipped: reason})
			return
		}
		for _, c := range checks {
			if !yield(c.result(f)) {
				return
			}
		}
	}
}

// Unplayable says why a format has no run of its own to play, or nothing where
// it has one.
func Unplayable(f *template.Format) string {
	switch f.Opening {
	case template.OpenServer:
		return "its prompt is rendered by a server, and goes on in the format that is recognised in it"
	case template.OpenChat:
		return "its prompt and its calls are the server's"
	}
	return ""
}

// A check is one thing that formats must do.
type check struct {
	name string
	// needs says why the check does not apply to a format; nil for always.
	needs func(*template.Format) string
	run   func(*stage)
}

// checks are in the order of a format's life: its words, its runs, its limits.
var checks = []check{
	{"spelling", nil, (*stage).spelling},
	{"chosen calls", nil, (*stage).choices},
	{"words", nil, (*stage).words},
	{"single call", nil, (*stage).singleCall},
	{"several calls", severalCalls, (*stage).severalCalls},
	{"think before call", thinking, (*stage).thinkBeforeCall},
	{"two rounds", nil, (*stage).twoRounds},
	{"error response", nil, (*stage).errorResponse},
	{"broken call", nil, (*stage).brokenCall},
	{"unknown tool", nil, (*stage).unknownTool},
	{"neither call nor answer", nil, (*stage).neither},
	{"call in think", thinkingTags, (*stage).callInThink},
	{"invented response", responses, (*stage).inventedResponse},
	{"forced answer", nil, (*stage).forcedAnswer},
	{"cut thought", thinkingTags, (*stage).cutThought},
	{"follow-up question", nil, (*stage).followUp},
	{"untrusted text", nil, (*stage).untrusted},
	{"stops", stops, (*stage).stops},
	{"chunks", nil, (*stage).chunks},
}

func (c check) result(f *template.Format) Result {
	r := Result{Check: c.name}
	if c.needs != nil {
		r.Skipped = c.needs(f)
	}
	if r.Skipped == "" {
		s := newStage(f)
		s.check = c.name
		c.run(s)
		r.Findings = s.found
	}
	return r
}

func severalCalls(f *template.Format) string {
	if f.SingleCall {
		return "the format makes one call a turn"
	}
	return ""
}

func thinking(f *template.Format) string {
	if f.Think.Open == "" {
		return "the format has no thinking part"
	}
	return ""
}

func thinkingTags(f *template.Format) string {
	if f.Think.Close == "" {
		return "the format has no thinking part with an end"
	}
	return ""
}

func responses(f *template.Format) string {
	if f.Response.Open == "" {
		return "the format's responses have no tag"
	}
	return ""
}

func stops(f *template.Format) string {
	if len(f.Stops) == 0 {
		return "the format has no stops"
	}
	return ""
}

// find records a finding, each once.
func (s *stage) find(where, message string, args ...any) {
	f := Finding{Check: s.check, Where: where, Message: fmt.Sprintf(message, args...)}
	if !slices.Contains(s.found, f) {
		s.found = append(s.found, f)
	}
}
