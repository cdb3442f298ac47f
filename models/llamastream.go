package models

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"
)

// A llamaFrame is one event.
type llamaFrame struct {
	Content   wording         `json:"content"`
	Tokens    []int           `json:"tokens"`
	Stop      bool            `json:"stop"`
	StopType  string          `json:"stop_type"`
	Truncated bool            `json:"truncated"`
	Predicted *int            `json:"tokens_predicted"`
	Evaluated *int            `json:"tokens_evaluated"`
	Timings   *llamaTimings   `json:"timings"`
	Progress  *llamaProgress  `json:"prompt_progress"`
	Probs     []llamaProb     `json:"completion_probabilities"`
	Error     json.RawMessage `json:"error"`
}

type llamaTimings struct {
	Cached      *int    `json:"cache_n"`
	Prompt      *int    `json:"prompt_n"`
	PromptMS    float64 `json:"prompt_ms"`
	PredictedMS float64 `json:"predicted_ms"`
}

type llamaProgress struct {
	Total     int `json:"total"`
	Processed int `json:"processed"`
}

// llamaReader reads the events of one stream.
type llamaReader struct {
	kind   string
	failed func(failure) error
	ids    bool // chunks carry ids: no stop string may cut what they spell
	count  int  // tokens_predicted so far
	probs  []llamaProb
}

// read yields the chunks of an answer.
func (l *llamaReader) read(r io.Reader) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		// A token without text is a hidden control token, which belongs to the
		// output, or the end of generation, which does not. What follows tells.
		var hidden *Chunk
		for data, err := range readEvents(r, l.kind) {
			if err == nil && data == "[DONE]" {
				continue
			}
			var c Chunk
			var end string
			if err == nil {
				c, end, err = l.chunk(data)
			}
			if hidden != nil && end != "eos" && !yield(*hidden, nil) {
				return
			}
			hidden = nil
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if c.Final == nil && c.Progress == nil && c.Text == "" {
				if len(c.Tokens) > 0 {
					hidden = &c
				}
				continue
			}
			if !yield(c, nil) || c.Final != nil {
				return
			}
		}
	}
}

// chunk reads one event; end is its stop_type.
func (l *llamaReader) chunk(data string) (c Chunk, end string, err error) {
	var f llamaFrame
	if err := decodeFrame(l.kind, []byte(data), &f); err != nil {
		return Chunk{}, "", err
	}
	if len(f.Error) > 0 {
		fail, ok := parseFailure([]byte(data))
		if !ok {
			fail = failure{Message: "an error of unknown shape"}
		}
		return Chunk{}, "", l.failed(fail)
	}
	l.probs = append(l.probs, f.Probs...)
	usage := f.usage()
	if f.Progress != nil {
		// Such an event has a token field too, which means nothing.
		return Chunk{
			Progress: &Progress{Phase: Reading, Done: f.Progress.Processed, Total: f.Progress.Total},
			Usage:    usage,
		}, "", nil
	}
	c = Chunk{Text: string(f.Content), Usage: usage}
	// A character of several tokens comes with the last of them only: then the
	// count jumps, and the ids do not spell the text.
	whole := f.Predicted == nil || *f.Predicted == l.count+len(f.Tokens)
	if l.ids && whole {
		c.Tokens = f.Tokens
	}
	if f.Predicted != nil {
		l.count = *f.Predicted
	}
	if !f.Stop {
		return c, "", nil
	}
	final := &Final{}
	if usage != nil {
		final.Usage = *usage
	}
	if f.Timings != nil {
		final.Timings.Prompt = milliseconds(f.Timings.PromptMS)
		final.Timings.Generation = milliseconds(f.Timings.PredictedMS)
	}
	switch {
	case f.StopType == "eos", f.StopType == "word":
		final.Finish = FinishStop
	case f.StopType == "limit" && f.Truncated:
		final.Finish = FinishContext
	case f.StopType == "limit":
		final.Finish = FinishLength
	case f.StopType == "none", f.StopType == "":
		return Chunk{}, "", &CutError{Err: errors.New("the server gives no reason for the end")}
	default:
		return Chunk{}, "", &ProtocolError{Server: l.kind, Reason: "an unknown reason for the end", Excerpt: excerpt(f.StopType, excerptLimit)}
	}
	c.Usage, c.Final = nil, final
	return c, f.StopType, nil
}

// usage is what an event says of the counts, nil where it says nothing. The
// field tokens_cached of the last event is no count of hits and is not read.
func (f *llamaFrame) usage() *Usage {
	u := Usage{Generated: counted(f.Predicted), Prompt: counted(f.Evaluated)}
	if f.Timings != nil {
		u.Reused, u.Evaluated = counted(f.Timings.Cached), counted(f.Timings.Prompt)
	}
	if u == (Usage{}) {
		return nil
	}
	return &u
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}
