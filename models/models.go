// Package models streams text from a model server.
//
// It sends a prompt whose every byte belongs to the caller to the server's raw
// completion route and gives back what the model writes, piece by piece. It
// never applies a chat template, never parses the text and never retries once
// a token has arrived.
package models

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"
)

// A Model generates text.
type Model interface {
	// Stream sends the prompt and yields chunks. The last chunk of a complete
	// generation has Final set; a stream that ends without it yields an error.
	// Leaving the range ends the request at the server. After an error nothing
	// more is yielded.
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// A Describer tells what the server says of its model. Optional. It asks the
// server each time, so that an error also tells that nobody is there.
type Describer interface {
	Describe(ctx context.Context) (Info, error)
}

// A Tokenizer turns text into the model's token ids. Optional.
// Special tokens in the text are recognised, as in a prompt.
type Tokenizer interface {
	Tokenize(ctx context.Context, text string) ([]Token, error)
}

// A Scorer tells how likely a text is, without sampling. Optional.
type Scorer interface {
	// Score gives the tokens of text, as they follow the prompt, each with its
	// log-probability. Special tokens in text are recognised, as in a prompt.
	Score(ctx context.Context, prompt []Segment, text string) ([]Scored, error)
}

// A Scored is a token and the natural logarithm of the probability that the
// model gives it after all that stands before it, without any sampling option
// (temperature 1, no truncation).
type Scored struct {
	Token
	LogProb float64
}

// A Lister lists the models that the server has. Optional.
type Lister interface {
	List(ctx context.Context) ([]Listed, error)
}

// A Request is one generation.
type Request struct {
	// Prompt is the whole prompt, in order; it is sent as it is.
	Prompt []Segment
	// MaxTokens limits the generated tokens; zero means the rest of the context.
	MaxTokens int
	Sampling  Sampling
	// Stop are literal stop strings for the server. The servers cut them from
	// the output; criteria that are checked here need none.
	Stop []string
	// Schema, where it is not empty, is a JSON schema, an object, that the
	// generated text matches from its first byte on, with no white space before
	// it. The generation ends with the value (FinishStop); Ollama allows white
	// space after it. The end-of-generation token shows where Preserve lists
	// it, as ever. A server that cannot do it gives an *UnsupportedError, one
	// that refuses the schema a *SchemaError. Servers leave out in silence what
	// they do not know of a schema, so the text is still to be checked.
	Schema json.RawMessage
	// Preserve are special tokens that must appear in the text where the
	// server would hide them, each a single token.
	Preserve []string
	// Prefill says that nothing of the generation is wanted: the server is only
	// to read the prompt. What it generates all the same, up to MaxTokens, comes.
	Prefill bool
	// Session names the conversation, so that a server with fixed slots can
	// keep its cache. Empty means none.
	Session string
}

// A Segment is a piece of the prompt. Tokens, where present, are the ids that
// spell Text; servers that take ids get them, others get Text.
type Segment struct {
	Text   string
	Tokens []int
}

// Sampling are the options of the sampler. A nil field is left to the server.
type Sampling struct {
	Temperature     *float64 `json:"temperature,omitempty" yaml:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty" yaml:"top_p,omitempty"`
	TopK            *int     `json:"top_k,omitempty" yaml:"top_k,omitempty"`
	MinP            *float64 `json:"min_p,omitempty" yaml:"min_p,omitempty"`
	PresencePenalty *float64 `json:"presence_penalty,omitempty" yaml:"presence_penalty,omitempty"`
	RepeatPenalty   *float64 `json:"repeat_penalty,omitempty" yaml:"repeat_penalty,omitempty"`
	Seed            *int     `json:"seed,omitempty" yaml:"seed,omitempty"`
}

// A Chunk is one piece of a stream.
type Chunk struct {
	// Text is the new text. It may end inside a UTF-8 sequence.
	Text string
	// Tokens are the new ids, nil where the server does not say or where they
	// do not spell the text. A token whose text the server hides, or holds back
	// until the next one, comes with an empty Text: over the whole stream the
	// ids are what was generated, without the end-of-generation token. A text
	// without ids stands for tokens that are not known.
	Tokens []int
	// Progress is set while the server loads the model or reads the prompt.
	Progress *Progress
	// Usage is what the server has told so far, where it tells before the end
	// (llama-server with timings_per_token, vLLM with continuous_usage_stats):
	// a generation that the caller halts has no Final.
	Usage *Usage
	// Final is set on the last chunk.
	Final *Final
}

// Progress says what the server does before the first token.
type Progress struct {
	Phase Phase
	// Done and Total are prompt tokens, both zero where unknown.
	Done, Total int
}

// A Phase is a part of a generation's time.
type Phase string

const (
	Loading    Phase = "loading"    // the server loads the model
	Reading    Phase = "reading"    // the server reads the prompt
	Generating Phase = "generating" // tokens arrive
	Retrying   Phase = "retrying"   // the request is sent again
)

// Final ends a generation.
type Final struct {
	Finish  Finish
	Usage   Usage
	Timings Timings
}

// A Finish is the server's reason for the end of a generation. It is never
// inferred: a stream that does not say why it ended yields an error.
type Finish string

const (
	FinishStop    Finish = "stop"    // the end-of-generation token, or a stop string
	FinishLength  Finish = "length"  // MaxTokens
	FinishContext Finish = "context" // the context is full
)

// Usage counts tokens, each unknown where the server does not say.
type Usage struct {
	Prompt    Count `json:"prompt"`    // the whole prompt
	Evaluated Count `json:"evaluated"` // prompt tokens that the server computed
	Reused    Count `json:"reused"`    // prompt tokens found in its cache
	Generated Count `json:"generated"`
}

// A Count is a number that may be unknown; the zero value is unknown.
type Count struct {
	N     int
	Known bool
}

// Known returns a known count.
func Known(n int) Count { return Count{N: n, Known: true} }

// String gives the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.Itoa(c.N)
}

// MarshalJSON writes the number, or null where it is unknown.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c.N), 10), nil
}

// UnmarshalJSON reads a number, or null for unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = Count{}
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &c.N); err != nil {
		return err
	}
	c.Known = true
	return nil
}

// Timings are durations as the server reports them, zero where it does not,
// except FirstToken and Total, which are measured here.
type Timings struct {
	Load       time.Duration `json:"load_ns"`   // loading the model
	Prompt     time.Duration `json:"prompt_ns"` // reading the prompt
	Generation time.Duration `json:"generation_ns"`
	FirstToken time.Duration `json:"first_token_ns"` // from the request to the first token
	Total      time.Duration `json:"total_ns"`
}

// Info describes a model and its server.
type Info struct {
	Ref      string // the reference that opens this model
	Server   string // for example "ollama 0.17.4"
	Model    string
	Context  Count // tokens that one request may use
	Trained  Count // context length the model was trained with
	Slots    Count // parallel sequences of the server
	Template string
	// Stops are the stop strings that the server's model configuration has.
	Stops []string
}

// A Listed is one model of a server.
type Listed struct {
	Name   string
	Size   int64 // bytes, zero where unknown
	Detail string
}

// A Token is one token of a text.
type Token struct {
	ID    int
	Piece string
}
