package runner

import (
	"time"
	"unicode/utf8"
)

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

// EstimateTokens counts the tokens of a text from above without a vocabulary:
// three bytes of ASCII a token, and each other character one. Byte-pair
// vocabularies of today's models need fewer for prose in English, Chinese and
// code; only long runs of digits and rare scripts come near it.
func EstimateTokens(text string) int {
	ascii, wide := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			wide++
		}
	}
	return (ascii+2)/3 + wide
}
