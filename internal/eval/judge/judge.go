// Package judge has a model judge whether an answer says what a gold answer
// says, for questions whose answers no comparison of words can score.
//
// A verdict is asked for once: it is kept in a file, by the hash of the judge's
// name and of the whole prompt. A model that gives no reply that can be read has
// given no verdict, which is never counted as a wrong answer. The package is
// given a function to ask; it knows neither models nor runs.
package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// An Ask asks a model in a prompt of its own and gives its answer, without
// thoughts. Where schema is not empty, the answer is held to it if the model's
// server can do that. The prompt holds text that models wrote: what the format
// reserves is to be escaped in it, as runner.Runner.Ask does. The answer must
// follow from the prompt alone, as greedy sampling makes it. An error that wraps
// ErrTooLong says that the prompt does not fit the model.
type Ask func(ctx context.Context, prompt string, schema json.RawMessage) (string, error)

// ErrTooLong says that a prompt does not fit the model's context.
var ErrTooLong = errors.New("the prompt is longer than the model's context")

// A Grade is what a judge finds.
type Grade string

// The grades. None is that of a judge whose replies could not be read.
const (
	Correct   Grade = "correct"
	Incorrect Grade = "incorrect"
	Unsure    Grade = "unsure"
	None      Grade = "no verdict"
)

// A Verdict is what a judge finds of an answer, and why.
type Verdict struct {
	Grade  Grade  `json:"verdict"`
	Reason string `json:"reason,omitempty"` // the judge's, on one line
}

// A Case is an answer that is to be judged.
type Case struct {
	Question string
	Gold     []string // any of which is right
	Answer   string
}

// A Judge gives verdicts. It is safe for concurrent use; its fields are not
// changed by it.
type Judge struct {
	Ask   Ask
	Model string // the judge's name, which verdicts are kept under
	Store *Store
	mu    sync.Mutex
	busy  map[string]chan struct{} // closed when the verdict is there, or is not
}

const (
	retries    = 2    // times that a reply is asked for again
	mostReason = 500  // characters
	mostText   = 8000 // characters of each text that a judge reads
)

// Judge gives the verdict on an answer: the one that is kept, or else that of
// the model, which is then kept. An empty answer is incorrect without asking,
// and where there is no gold answer there is no verdict. The errors are the
// store's, and those of Ask but ErrTooLong, which makes no verdict.
func (j *Judge) Judge(ctx context.Context, c Case) (Verdict, error) {
	if v, ok := c.plain(); ok {
		return v, nil
	}
	key := c.key(j.Model)
	for {
		if v, ok := j.Store.get(key); ok {
			return v, nil
		}
		done, mine := j.begin(key)
		if mine {
			defer j.end(key)
			if v, ok := j.Store.get(key); ok { // somebody has had it meanwhile
				return v, nil
			}
			break
		}
		select { // somebody asks the same
		case <-done:
		case <-ctx.Done():
			return Verdict{}, ctx.Err()
		}
	}
	v, err := j.verdict(ctx, c.prompt())
	if err != nil {
		return Verdict{}, err
	}
	return v, j.Store.put(key, j.Model, c, v)
}

func (j *Judge) begin(key string) (done chan struct{}, mine bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if done, ok := j.busy[key]; ok {
		return done, false
	}
	if j.busy == nil {
		j.busy = map[string]chan struct{}{}
	}
	j.busy[key] = make(chan struct{})
	return nil, true
}

func (j *Judge) end(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.busy[key])
	delete(j.busy, key)
}

// verdict asks the model, again where its reply cannot be read.
func (j *Judge) verdict(ctx context.Context, prompt string) (Verdict, error) {
	ask := prompt
	for again := 0; ; again++ {
		reply, err := j.Ask(ctx, ask, Schema)
		if errors.Is(err, ErrTooLong) {
			return Verdict{None, ErrTooLong.Error()}, nil
		}
		if err != nil {
			return Verdict{}, err
		}
		v, bad := parse(reply)
		switch {
		case bad == nil:
			return v, nil
		case again == retries:
			return Verdict{None, "the judge's replies could not be read: " + bad.Error()}, nil
		}
		ask = prompt + fmt.Sprintf(once, bad)
	}
}

// plain gives the verdict on a case that nobody has to be asked about.
func (c Case) plain() (Verdict, bool) {
	switch {
	case len(c.Gold) == 0:
		return Verdict{None, "there is no gold answer"}, true
	case strings.TrimSpace(c.Answer) == "":
		return Verdict{Incorrect, "there is no answer"}, true
	}
	return Verdict{}, false
}

// key tells verdicts apart: of other judges, on other prompts.
func (c Case) key(model string) string {
	sum := sha256.Sum256([]byte(model + "\x00" + c.prompt()))
	return hex.EncodeToString(sum[:16])
}
