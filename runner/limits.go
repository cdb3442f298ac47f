package runner

import "time"

// Limits are the budgets of a run. A zero field means its default.
type Limits struct {
	// Turns is how many generations a run may have, without the one that is
	// forced at the end. Default 20.
	Turns int
	// Tokens limits the ledger, and with it the context that is used. Default:
	// Runner.Context, or none where that is unknown.
	Tokens int
	// TurnTokens limits what one generation may write. Default: the format's,
	// or 4096.
	TurnTokens int
	// Time is the wall clock of the run. Default: none.
	Time time.Duration
	// Problems is how many turns that are not as the format asks are sent back
	// to the model. Default 3.
	Problems int
}

const (
	// answerReserve is how many tokens are kept free for a forced answer and
	// the note that asks for it: results are cut to leave them.
	answerReserve = 1024
	// resultReserve is the room below which another round of calls is not
	// worth its turn: the answer is asked for instead.
	resultReserve = 512
)
