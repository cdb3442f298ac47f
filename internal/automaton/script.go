// Package automaton writes GGUF model files that say what a script tells them.
//
// The weights are set by hand: embeddings are one-hot, the one block adds
// nothing, and the row of the output matrix for token u points at the tokens
// that u follows. Such a file is a finite automaton whose state is the last
// token, so a real server that loads it is a real server in every way except
// that its answers are known. The package never runs a model and never talks
// to a server.
package automaton

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
)

// A Script is what the model says.
type Script struct {
	Turns []Turn
	// Words are further tokens. A server that looks words up whole, as Ollama's
	// engine does, reads prompts of such words as fewer tokens.
	Words []string
}

// A Turn is one generation.
//
// The model sees nothing but the last token of the prompt, so After becomes
// one token of the vocabulary, and where several of them end the prompt, the
// longest wins. Two turns therefore need two different texts to begin after.
// When both prompts end alike, let one of them reach further back:
//
//	"<|im_start|>assistant\n"                                   the first turn
//	"\n</tool_response><|im_end|>\n<|im_start|>assistant\n"     after a response
//	"Capital: Paris\nThought:"                                  after this response
//
// After is matched in the whole prompt as the server reads it; a client that
// sends token ids, or changes text from outside, can split it.
type Turn struct {
	// After is the end of the prompt at which this turn begins.
	After string
	// Text is what the model writes. It may hold the user-defined tokens of
	// Qwen's vocabulary (<think>, <tool_call>, …) but no control token: those
	// would not be rendered.
	Text string
	// Finish is "stop" (or empty) when the end-of-generation token follows
	// Text, "length" when the model never ends by itself: it then repeats
	// Text until the server's limit.
	Finish string
}

// The values of Turn.Finish.
const (
	FinishStop   = "stop"
	FinishLength = "length"
)

// ErrScript is wrapped by every error that says what is wrong with a script.
var ErrScript = errors.New("the script cannot become a model file")

// scriptFile is the YAML file of a scripted model (models.Script), so that one
// file serves both.
type scriptFile struct {
	Name    string
	Context int
	Turns   []struct {
		After, Text, Finish, Error string
		Chunk                      int
		Delay                      string
	}
}

// ReadScript reads a script from a YAML file, the same that the in-process
// model script:FILE takes. Unknown fields are errors, and so is a turn that
// ends in an error, which weights cannot do. What is only the pace of a model
// in process (chunk, delay, context) is passed over; finish "context" means
// "length". A turn without after is refused when the script is compiled.
func ReadScript(path string) (Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	var file scriptFile
	if err := yaml.UnmarshalWithOptions(b, &file, yaml.Strict()); err != nil {
		return Script{}, fmt.Errorf("%w: %s: %w", ErrScript, path, err)
	}
	s := Script{Turns: make([]Turn, len(file.Turns))}
	for i, t := range file.Turns {
		if t.Error != "" {
			return Script{}, fmt.Errorf("%w: %s: turn %d ends in an error, and a model file cannot", ErrScript, path, i+1)
		}
		s.Turns[i] = Turn{After: t.After, Text: t.Text, Finish: t.Finish}
		if t.Finish == "context" {
			s.Turns[i].Finish = FinishLength
		}
	}
	return s, nil
}

// check refuses what no vocabulary can express.
func (s Script) check() error {
	if len(s.Turns) == 0 {
		return fmt.Errorf("%w: it has no turns", ErrScript)
	}
	begins := map[string]int{}
	for i, t := range s.Turns {
		n := i + 1
		switch first, ok := begins[t.After]; {
		case t.After == "":
			return fmt.Errorf("%w: turn %d does not say what it begins after", ErrScript, n)
		case t.After == endOfTurn || t.After == endOfText:
			return fmt.Errorf("%w: turn %d begins after the token that ends a generation", ErrScript, n)
		case ok:
			return fmt.Errorf("%w: turns %d and %d begin after the same text %q; let one of them reach further back", ErrScript, first, n, t.After)
		case t.Finish != "" && t.Finish != FinishStop && t.Finish != FinishLength:
			return fmt.Errorf("%w: turn %d: finish is %q, not %q or %q", ErrScript, n, t.Finish, FinishStop, FinishLength)
		case t.Finish == FinishLength && t.Text == "":
			return fmt.Errorf("%w: turn %d never ends but has no text to repeat", ErrScript, n)
		}
		begins[t.After] = n
		for _, c := range controlTokens {
			if strings.Contains(t.Text, c) {
				return fmt.Errorf("%w: the text of turn %d holds the control token %s, which servers do not render", ErrScript, n, c)
			}
		}
	}
	return nil
}
