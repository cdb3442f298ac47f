// Package export makes training data of journals.
//
// Each run is made again through the real loop, so that the ledger tells who
// wrote what, and is compared with the journal: every prompt has to be, byte for
// byte and id for id, how the exported text begins, and what counts as the
// model's has to be what it streamed at that place. What does not agree is an
// error and never a line.
//
// The package never asks a model or a tool, and never counts anything as
// generated that was not streamed.
package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"stopgap/internal/trace"
	"stopgap/runner"
)

// A Shape is what one line of the output is.
type Shape string

const (
	// Messages is OpenAI's shape for fine-tuning: messages, and the tools.
	Messages Shape = "messages"
	// Text is the exact text that the model read and wrote, with the spans that
	// it wrote.
	Text Shape = "text"
	// IDs is the same as token ids, with a mask.
	IDs Shape = "ids"
)

// Shapes are all there are.
func Shapes() []Shape { return []Shape{Messages, Text, IDs} }

// Options say what is exported, and how.
type Options struct {
	To Shape
	// Answered takes only runs that ended with an answer.
	Answered bool
	// MinCalls is how many calls a run has at least.
	MinCalls int
	// Dedupe leaves out a line that is like one before, but for its metadata.
	Dedupe bool
	// EOS counts the token that ends a turn also where the server hid it, and the
	// model ended the turn by itself: the one that the format writes there.
	EOS bool
	// LossMask writes ids with "loss_mask" (0 and 1) in place of "labels".
	LossMask bool
	// Bare leaves the metadata out.
	Bare bool
	// Tokenizer makes the ids of runs whose prompts were sent as text, and checks
	// that the ids of the others spell their text; nil for none.
	Tokenizer Tokenizer
}

// A Tokenizer turns text into ids and back. *tokenizer.Tokenizer is one.
type Tokenizer interface {
	Encode(text string, special bool) []int
	Bytes(id int) []byte
}

// Counts tell what became of the runs.
type Counts struct {
	Runs       int `json:"runs"`
	Lines      int `json:"lines"`
	Earlier    int `json:"earlier,omitempty"`    // part of the line of a later question
	Killed     int `json:"killed,omitempty"`     // without an end
	Refused    int `json:"refused,omitempty"`    // never begun
	Failed     int `json:"failed,omitempty"`     // ended by the server, a clock or Ctrl-C
	Filtered   int `json:"filtered,omitempty"`   // by Answered and MinCalls
	Duplicates int `json:"duplicates,omitempty"` // by Dedupe
	// Unplayable cannot be made again: another version wrote them, or what they
	// continue is not in the journal.
	Unplayable int `json:"unplayable,omitempty"`
	Chats      int `json:"chats,omitempty"`    // of a chat endpoint, whose prompt nobody knows
	NoIDs      int `json:"no_ids,omitempty"`   // sent as text, without a tokenizer
	NotText    int `json:"not_text,omitempty"` // with bytes that are not UTF-8, which JSON does not carry
	Nothing    int `json:"nothing,omitempty"`  // in which nothing counts
	Loss       int `json:"loss,omitempty"`     // characters or ids that count
}

// An Error says that a run does not agree with its journal.
type Error struct {
	Run    int    // of the journal, from 1
	Seq    int    // of the record; zero where no record is at fault
	Offset int    // in the exported text or ids, see Unit; -1 where the record itself differs
	Unit   string // byte or id
	Reason string
}

func (e *Error) Error() string {
	where := fmt.Sprintf("run %d", e.Run)
	if e.Seq > 0 {
		where += fmt.Sprintf(", record %d", e.Seq)
	}
	if e.Offset >= 0 {
		where += fmt.Sprintf(", %s %d", e.Unit, e.Offset)
	}
	return where + ": " + e.Reason
}

// An Exporter makes lines of journals, one after the other.
type Exporter struct {
	Options
	Counts Counts
	// Progress, where it is set, is told of each run that has been read.
	Progress func(done, of int)

	seen map[[sha256.Size]byte]bool
}

// Journal gives the lines of one journal to write, in the order of its runs.
// A question that continues another one is one line with it. name stands in the
// metadata. The errors are *Error, that of the context, and what write gives.
func (e *Exporter) Journal(ctx context.Context, name string, runs []trace.Run, write func(line []byte) error) error {
	list, err := e.rollouts(ctx, runs)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r == nil || !r.wanted {
			continue
		}
		if r.earlier {
			e.Counts.Earlier++
			continue
		}
		line, err := e.line(r, name)
		if err == nil && line != nil {
			err = write(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rollouts makes the runs again and decides which of them become lines.
func (e *Exporter) rollouts(ctx context.Context, runs []trace.Run) ([]*rollout, error) {
	deck, list := trace.NewDeck(runs), make([]*rollout, len(runs))
	for i := range runs {
		e.Counts.Runs++
		r, err := e.rollout(ctx, deck, i, list)
		if err != nil {
			return nil, err
		}
		list[i] = r
		for b := r; b != nil && r.wanted && b.before != nil && b.extends(b.before); b = b.before {
			b.before.earlier = true
		}
		if e.Progress != nil {
			e.Progress(i+1, len(runs))
		}
	}
	return list, nil
}

// rollout makes one run again; nil where that cannot be.
func (e *Exporter) rollout(ctx context.Context, deck *trace.Deck, i int, earlier []*rollout) (*rollout, error) {
	played, err := deck.Rollout(ctx, i)
	if err != nil {
		return nil, e.unplayed(ctx, i, err)
	}
	r := &rollout{Rollout: played, number: i + 1}
	if played.Before >= 0 {
		r.before = earlier[played.Before] // it was played, or this one could not have been
	}
	r.wanted = e.wants(r)
	return r, r.measure()
}

// unplayed counts a run that is not made again, or gives the error.
func (e *Exporter) unplayed(ctx context.Context, i int, err error) error {
	var diverged *trace.DivergedError
	var refused *trace.RefusedError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &diverged):
		return &Error{Run: i + 1, Seq: diverged.Difference.Seq, Offset: -1, Reason: "it does not play as it was recorded: " + diverged.Difference.String()}
	case errors.Is(err, trace.ErrKilled):
		e.Counts.Killed++
	case errors.As(err, &refused):
		e.Counts.Refused++
	default:
		e.Counts.Unplayable++
	}
	return nil
}

// wants applies the filters to a run.
func (e *Exporter) wants(r *rollout) bool {
	switch o := r.Outcome; {
	case o.Termination == runner.TermServerError, o.Termination == runner.TermCancelled, o.Termination == runner.TermDeadline:
		e.Counts.Failed++
	case e.Answered && o.Termination != runner.TermAnswered && o.Termination != runner.TermAnsweredForced, r.calls() < e.MinCalls:
		e.Counts.Filtered++
	default:
		return true
	}
	return false
}

// line spells a conversation; nil where it is left out.
func (e *Exporter) line(r *rollout, journal string) ([]byte, error) {
	spell := map[Shape]func(*rollout) ([]field, error){Messages: e.messages, Text: e.text, IDs: e.ids}[e.To]
	fields, err := spell(r)
	if err != nil || fields == nil {
		return nil, err
	}
	if e.Dedupe {
		content, err := encode(fields)
		if err != nil {
			return nil, err
		}
		if e.seen == nil {
			e.seen = map[[sha256.Size]byte]bool{}
		}
		sum := sha256.Sum256(content)
		if e.seen[sum] {
			e.Counts.Duplicates++
			return nil, nil
		}
		e.seen[sum] = true
	}
	if !e.Bare {
		fields = append(fields, field{"metadata", newMetadata(r, journal)})
	}
	e.Counts.Lines++
	return encode(fields)
}

// Metadata tells where a line comes from.
type Metadata struct {
	Journal string `json:"journal,omitempty"` // its name
	Run     string `json:"run"`               // its id
	Number  int    `json:"number"`            // in the journal, from 1
	// Continues are the runs before it in the conversation, the first one first.
	Continues   []string           `json:"continues,omitempty"`
	Key         string             `json:"key"` // of the configuration and the seed
	Version     string             `json:"version,omitempty"`
	Model       string             `json:"model,omitempty"`
	Server      string             `json:"server,omitempty"`
	Format      string             `json:"format"`
	Termination runner.Termination `json:"termination"`
	Seed        *int               `json:"seed,omitempty"`
	Turns       int                `json:"turns"`
	Calls       int                `json:"calls"`
	Question    string             `json:"question"`
	Answer      string             `json:"answer,omitempty"`
}

func newMetadata(r *rollout, journal string) Metadata {
	h, o := r.Header, r.Outcome
	m := Metadata{
		Journal: journal, Run: h.ID, Number: r.number, Key: h.Key, Version: h.Version, Model: h.Model, Server: h.Server, Format: h.Format.Name,
		Termination: o.Termination, Seed: r.Runner.Sampling.Seed, Turns: o.Turns, Calls: o.Calls, Question: h.Task.Question, Answer: o.Answer,
	}
	for _, b := range r.chain() {
		if b != r {
			m.Continues = append(m.Continues, b.Header.ID)
		}
	}
	return m
}

// A field is one key of a line. Lines are objects whose keys have an order, for
// those who read them.
type field struct {
	name  string
	value any
}

func encode(fields []field) ([]byte, error) {
	out := []byte("{")
	for i, f := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := marshal(f.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out = append(append(out, `"`+f.name+`":`...), value...)
	}
	return append(out, "}\n"...), nil
}

// chain are the runs of the conversation up to r, the first one first.
func (r *rollout) chain() []*rollout {
	var out []*rollout
	for b := r; b != nil; b = b.before {
		out = append(out, b)
	}
	slices.Reverse(out)
	return out
}

// calls are those of the whole conversation.
func (r *rollout) calls() int {
	n := 0
	for b := r; b != nil; b = b.before {
		n += b.Outcome.Calls
	}
	return n
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
