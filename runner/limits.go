package runner

import (
	"fmt"
	"time"
)

// Limits are the budgets of a run. A zero field means its default.
type Limits struct {
	// Turns is how many generations a run may have, without the one that is
	// forced at the end. Default 20.
	Turns int
	// Tokens limits the ledger, and with it the context that is used. Default:
	// Runner.Context, or none where that is unknown. A prompt that is longer
	// from the beginning gives a *LimitError.
	Tokens int
	// TurnTokens limits what the model may write in one turn, in however many
	// requests. A call that it cuts is gone on with once, with as many again.
	// Default: the format's, or 4096.
	TurnTokens int
	// Time is the wall clock of the run. Default: none.
	Time time.Duration
	// Problems is how many turns of a run that are not as the format asks are
	// sent back to the model; a negative number means none. Default 3.
	Problems int
	// Think is how many tokens the thinking part of a turn may have. Then it is
	// closed in the model's place, which goes on behind it, in the same turn.
	// Default: none. A format without a thinking part gives a *ThinkError.
	Think int
	// Resumes is how often a run goes on with a stream that was cut before the
	// server had said why it ends; a negative number means never. Default 2.
	Resumes int
}

// The defaults of Limits.
const (
	defaultTurns      = 20
	defaultTurnTokens = 4096
	defaultProblems   = 3
	defaultResumes    = 2
)

const (
	// answerReserve is how many tokens are kept free for a forced answer and
	// the note that asks for it: results are cut to leave them, and turns that
	// are not forced do not get them.
	answerReserve = 1024
	// resultReserve is the room below which another round of calls is not
	// worth its turn: the answer is asked for instead.
	resultReserve = 512
	// leastRoom is asked for where the context seems to be full: the server
	// knows best.
	leastRoom = 256
	// longestToken bounds the bytes of generated text for each token that was
	// asked for, against servers that never end. No vocabulary has longer ones.
	longestToken = 1024
)

// A LimitError says that the prompt leaves no room under the limit of tokens.
type LimitError struct {
	Tokens    int // of the prompt
	Limit     int
	Estimated bool // Tokens is an estimate from above
}

// A TruncatedError says that the server has read less of the prompt than was
// sent, and told nobody.
type TruncatedError struct {
	Server string
	Sent   int // tokens, as counted here
	Read   int // tokens, as the server counts
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s read %d of the prompt's %d tokens: it was cut in silence", e.Server, e.Read, e.Sent)
}

func (e *LimitError) Error() string {
	about := ""
	if e.Estimated {
		about = "about "
	}
	return fmt.Sprintf("the prompt has %s%d tokens, the limit is %d", about, e.Tokens, e.Limit)
}
