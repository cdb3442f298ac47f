// Package goal reads a text against a goal: a model is asked what of the text
// serves the goal, and a fixed frame carries what it found back to whoever
// wanted to know.
//
// It is the ladder of Tongyi DeepResearch's visit: a text that is too long is
// cut, a summary that is too short is asked for again with less of the text,
// JSON that cannot be read is asked for again. It never fetches, never parses
// files, and knows neither models nor prompts: it is given a function to ask.
package goal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"stopgap/tools"
)

// An Ask asks a model a question in a prompt of its own and gives its answer,
// without thoughts. Where schema is not empty, the answer is held to it if the
// model's server can do that. An error that wraps ErrTooLong says that the
// prompt does not fit the model; any other error ends the reading.
type Ask func(ctx context.Context, prompt string, schema json.RawMessage) (string, error)

// ErrTooLong says that a prompt does not fit the model's context.
var ErrTooLong = errors.New("the prompt is longer than the model's context")

// ErrNoSummary says that the model was asked in vain.
var ErrNoSummary = errors.New("the model wrote no summary that can be read")

const (
	// DefaultTokens is how much of a text the model gets to read at most.
	DefaultTokens = 95_000
	// DefaultGoal stands in for a goal that is not told.
	DefaultGoal = "Find relevant information to answer the question."
	// Overhead is how many tokens the instructions around a text take at most,
	// without the goal.
	Overhead = 400

	shortest = 10     // bytes: a reply below this is none
	shrinks  = 3      // times a text is cut to seven tenths
	last     = 25_000 // characters that are left for the last try
	rereads  = 2      // times that JSON is asked for again
	mostGoal = 2_000  // characters of a goal
)

// A Reader reads texts. The zero value of each field but Ask has a default.
type Reader struct {
	Ask Ask
	// Tokens is how many tokens of a text the model gets to read, by Count;
	// zero means DefaultTokens. A model with a small context needs less.
	Tokens int
	// Room, where it is not nil, tells how many tokens the model's context has,
	// zero for unknown. It is asked at each reading: the model may be chosen late.
	// A quarter is left for the reply.
	Room func() int
	// Count counts the tokens of a text; nil means tools.EstimateTokens.
	Count func(string) int
}

// A Finding is what of a text serves a goal.
type Finding struct {
	Rational string // where in the text it stands, and why it matters
	Evidence string // the text's own words
	Summary  string
}

// Schema is what a reply is held to: a Finding as JSON.
var Schema = json.RawMessage(`{"type":"object","properties":{"rational":{"type":"string"},"evidence":{"type":"string"},"summary":{"type":"string"}},"required":["rational","evidence","summary"],"additionalProperties":false}`)

// Read asks the model what of a text serves a goal. The error is ErrNoSummary
// where the replies cannot be used, one that wraps ErrTooLong where even a
// short text does not fit, or the first other error of Ask.
func (r Reader) Read(ctx context.Context, text, goal string) (Finding, error) {
	text = head(strings.TrimSpace(text), r.fits(goal), r.count)
	reply, text, err := r.climb(ctx, text, goal)
	if err != nil {
		return Finding{}, err
	}
	for again := 0; ; again++ {
		f, bad := parse(reply)
		if bad == nil {
			return f, nil
		}
		if again == rereads {
			return Finding{}, fmt.Errorf("%w: %v", ErrNoSummary, bad)
		}
		reply, err = r.Ask(ctx, prompt(text, goal)+fmt.Sprintf(once, bad), Schema)
		if err != nil && !errors.Is(err, ErrTooLong) {
			return Finding{}, err
		}
	}
}

// climb asks with less and less of the text, until there is a reply. It gives
// the text that the reply is about.
func (r Reader) climb(ctx context.Context, text, goal string) (reply, read string, err error) {
	for step := 0; ; step++ {
		reply, err = r.Ask(ctx, prompt(text, goal), Schema)
		switch {
		case err != nil && !errors.Is(err, ErrTooLong):
			return "", "", err
		case err == nil && len(strings.TrimSpace(reply)) >= shortest:
			return reply, text, nil
		case step > shrinks && err != nil:
			return "", "", err
		case step > shrinks:
			return "", "", fmt.Errorf("%w: its replies are empty", ErrNoSummary)
		case step == shrinks:
			text = characters(text, last)
		default:
			text = characters(text, utf8.RuneCountInString(text)*7/10)
		}
	}
}

// fits is how many tokens of a text go to the model.
func (r Reader) fits(goal string) int {
	most := cmp.Or(r.Tokens, DefaultTokens)
	if r.Room == nil {
		return most
	}
	room := r.Room()
	if room <= 0 {
		return most
	}
	return max(min(most, room-room/4-Overhead-r.count(goal)), 1)
}

func (r Reader) count(text string) int {
	if r.Count != nil {
		return r.Count(text)
	}
	return tools.EstimateTokens(text)
}

// Report reads a text and frames what was found. A text without a word, and
// one of which the model makes nothing, give the frame that says so; all else
// that goes wrong is an error.
func (r Reader) Report(ctx context.Context, source, text, goal string) (string, error) {
	if goal = strings.TrimSpace(goal); goal == "" {
		goal = DefaultGoal
	}
	goal = characters(goal, mostGoal)
	if strings.TrimSpace(text) == "" {
		return Unread(source, goal), nil
	}
	f, err := r.Read(ctx, text, goal)
	if errors.Is(err, ErrNoSummary) {
		return Unread(source, goal), nil
	}
	if err != nil {
		return "", err
	}
	return Frame(source, goal, f), nil
}

// The frame is protocol: models have learned to read it.
const frame = "The useful information in %s for user goal %s as follows: \n\nEvidence in page: \n%s\n\nSummary: \n%s\n\n"

// Frame is how a model reads what was found in a source.
func Frame(source, goal string, f Finding) string {
	return fmt.Sprintf(frame, source, goal, f.Evidence, f.Summary)
}

// Unread is how a model reads that nothing could be found in a source.
func Unread(source, goal string) string {
	return fmt.Sprintf(frame, source, goal,
		"The provided webpage content could not be accessed. Please check the URL or file format.",
		"The webpage content could not be processed, and therefore, no information is available.")
}

// head is the longest beginning of a text that has at most so many tokens.
func head(text string, tokens int, count func(string) int) string {
	if len(text) <= tokens || count(text) <= tokens { // a token is at least a byte
		return text
	}
	low, high := 0, len(text) // text[:low] fits, text[:high] does not
	for high-low > 1 {
		if mid := low + (high-low)/2; count(whole(text, mid)) <= tokens {
			low = mid
		} else {
			high = mid
		}
	}
	return whole(text, low)
}

// whole is the beginning of a text up to a byte, without a part of a character.
func whole(text string, n int) string {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// characters is the beginning of a text, so many characters at most.
func characters(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
