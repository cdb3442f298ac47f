// Package stopping decides where generated text ends.
//
// A [Criterion] fires at the smallest byte offset p > 0 such that its pattern
// matches text[:p] with the match ending at p, where text is what the model
// generated in this segment. Where the text was cut into chunks never changes
// that. The package never reads the prompt, earlier turns, or the network.
package stopping

import "time"

// A Criterion says where generated text ends and what happens to the bytes of
// the match. Exactly one of Literal, Regex, Repetition, JSON, Sentences, Tokens
// and Bytes is set.
type Criterion struct {
	// Name identifies the criterion in decisions; it must be unique in a Set
	// and not empty.
	Name string

	// Literal fires when the text ends with this string, of at most 8 KiB.
	Literal string

	// Regex fires when the text ends with a match. The syntax is regexp2's
	// (.NET and Python-like); "." matches a newline unless (?-s) turns it off,
	// "^" and "$" are the ends of the text unless (?m). The text ends at the
	// byte under test: a lookahead sees nothing past it, and "\b" is true there
	// after any word character. A pattern has at most 8 KiB.
	Regex string

	// Repetition fires when the text ends in a pattern repeated back to back.
	Repetition *Repetition

	// JSON fires at the end of the first balanced JSON object or array. Only
	// the nesting of brackets outside of strings is looked at.
	JSON bool

	// Sentences, Tokens and Bytes fire when that many have been generated.
	// A sentence ends at ".", "!" or "?" before white space, or at "。", "！", "？";
	// several of them in a row end one sentence. The white space is the last
	// character of the match. A token counts when all its bytes have arrived.
	// With a Scope only what is generated inside the scope counts.
	Sentences, Tokens, Bytes int

	// Strip removes the match from the output; otherwise it is kept.
	// StripGroup removes only from the start of this named group on, and
	// nothing when the group took no part in the match.
	Strip      bool
	StripGroup string

	// Action is what the stop means to the caller; the package only acts on
	// Notify, which reports the match and lets the text go on; it reports again
	// at the next match that does not overlap. Counts are reported once.
	Action Action

	// MinTokens and MinBytes are how many must have been generated before the
	// criterion may fire. The token that holds the last byte of the match counts.
	MinTokens, MinBytes int

	// Scope limits where a match may start. The zero value is anywhere.
	Scope Scope

	// Captures chooses between the leftmost and the nearest start of a match.
	Captures Captures

	// Budget is the time one check of a backtracking pattern may take.
	// Zero means one second. The clock ticks every 100 ms, so that much more
	// can pass before a [BudgetError] is returned.
	Budget time.Duration
}

// A Repetition is a pattern of Min to Max bytes that stands Count times in a row.
type Repetition struct {
	Min, Max int // bytes; zero means 1 and 256
	Count    int // at least 2
}

// A Scope is the part of the text where a match may start. A region begins
// after its opening tag and ends after its closing tag, so the closing tag
// itself starts inside. Regions do not nest.
type Scope struct {
	// Open and Close are the tags of the region, for example <think> and </think>.
	// Tags and marker have at most 8 KiB each.
	Open, Close string
	// Outside means that a match starts outside the region, otherwise inside it.
	Outside bool
	// StartsInside says that the prompt has already written Open.
	StartsInside bool
	// After means that a match starts after the first occurrence of this marker.
	After string
}

// An Action is what a stop means to the caller.
type Action string

// The actions. The zero value means Halt.
const (
	Halt   Action = "halt"   // the turn ends
	Call   Action = "call"   // the turn ends in a tool call
	Finish Action = "finish" // the run is answered
	Notify Action = "notify" // report the match and go on
)

// Captures chooses which of several matches with the same end is reported.
type Captures string

const (
	// Leftmost reports the start that Python's re.search gives. The zero value means Leftmost.
	Leftmost Captures = "leftmost"
	// Nearest reports the last start before the end.
	Nearest Captures = "nearest"
)

// A Reason is why a text ended.
type Reason string

const (
	Matched Reason = "matched" // a criterion fired
	Closed  Reason = "closed"  // the stream ended and no criterion fired
)

// A Decision is one stop (or, for Notify, one report). Offsets are bytes of
// the text that was received in this segment.
type Decision struct {
	Reason     Reason
	Criterion  *Criterion // the Set's copy, not to be changed; nil when Reason is Closed
	MatchStart int
	MatchEnd   int
	KeepEnd    int               // text[:KeepEnd] is the output
	Discarded  int               // bytes received past MatchEnd in the same chunk
	Groups     map[string]string // named groups of a regex that took part
}
