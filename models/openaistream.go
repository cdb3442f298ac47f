package models

import (
	"encoding/json"
	"io"
	"iter"
	"strings"
)

// An openaiFrame is one event.
type openaiFrame struct {
	Choices []struct {
		Index  int             `json:"index"`
		Text   wording         `json:"text"`
		Tokens []int           `json:"token_ids"` // vLLM and SGLang
		Finish *string         `json:"finish_reason"`
		Stop   json.RawMessage `json:"stop_reason"`  // vLLM: the string or the id
		Match  json.RawMessage `json:"matched_stop"` // SGLang
	} `json:"choices"`
	Usage *struct {
		Prompt    *int `json:"prompt_tokens"`
		Generated *int `json:"completion_tokens"`
		Details   *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// openaiReader reads the events of one stream.
type openaiReader struct {
	*server
	req     Request
	context int

	finish string // the finish_reason, once it has come
	late   int    // events after it
	usage  Usage
}

// read yields the chunks of an answer. The counts may follow the finish
// reason, and [DONE] comes also after an error: only the finish reason says
// that a generation is complete.
func (o *openaiReader) read(r io.Reader) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for data, err := range readEvents(r, o.kind) {
			if o.over(err) {
				break
			}
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if strings.TrimSpace(data) == "[DONE]" {
				break
			}
			c, err := o.chunk(data)
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if (c.Text != "" || len(c.Tokens) > 0) && !yield(c, nil) {
				return
			}
		}
		if o.finish == "" {
			return
		}
		final, err := o.final()
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		yield(Chunk{Final: final}, nil)
	}
}

// lateEvents may follow the finish reason; with the counts they are one or two.
const lateEvents = 100

// over reports whether the next event, or error, is not waited for any more:
// after the finish reason only the counts are missing.
func (o *openaiReader) over(err error) bool {
	if o.finish == "" {
		return false
	}
	o.late++
	return err != nil || o.late > lateEvents
}

// chunk reads one event.
func (o *openaiReader) chunk(data string) (Chunk, error) {
	var f openaiFrame
	if err := decodeFrame(o.kind, []byte(data), &f); err != nil {
		return Chunk{}, err
	}
	if len(f.Error) > 0 && string(f.Error) != "null" || f.Choices == nil && f.Usage == nil {
		if fail, ok := parseFailure([]byte(data)); ok {
			return Chunk{}, o.failed(fail)
		}
		return Chunk{}, &ProtocolError{Server: o.kind, Reason: "an event without choices", Excerpt: excerpt(data, excerptLimit)}
	}
	var c Chunk
	if o.count(f) {
		u := o.usage
		c.Usage = &u
	}
	for _, choice := range f.Choices {
		if choice.Index != 0 || o.finish != "" {
			continue
		}
		c.Text, c.Tokens = string(choice.Text), choice.Tokens
		if choice.Finish != nil && *choice.Finish != "" {
			o.finish = *choice.Finish
		}
		stop := choice.Stop
		if stop == nil {
			stop = choice.Match
		}
		if o.finish == "stop" && len(c.Tokens) > 0 && !isJSONString(stop) {
			// The last id ends the generation; its text is not in the output.
			c.Tokens = c.Tokens[:len(c.Tokens)-1]
		}
		if len(o.req.Stop) > 0 || len(c.Tokens) == 0 {
			c.Tokens = nil // a stop string cuts the text but not the ids
		}
	}
	return c, nil
}

func isJSONString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// count keeps the counts of an event and reports whether it had any.
func (o *openaiReader) count(f openaiFrame) bool {
	if f.Usage == nil {
		return false
	}
	if n := counted(f.Usage.Prompt); n.Known {
		o.usage.Prompt = n
	}
	if n := counted(f.Usage.Generated); n.Known {
		o.usage.Generated = n
	}
	if d := f.Usage.Details; d != nil && counted(d.Cached).Known {
		o.usage.Reused = Known(*d.Cached)
		if o.usage.Prompt.Known {
			o.usage.Evaluated = Known(max(0, o.usage.Prompt.N-*d.Cached))
		}
	}
	return true
}

// final makes the end of a complete stream.
func (o *openaiReader) final() (*Final, error) {
	f := &Final{Usage: o.usage}
	switch o.finish {
	case "stop":
		f.Finish = FinishStop
	case "length":
		f.Finish = FinishLength
		full := o.context > 0 && o.usage.Prompt.Known && o.usage.Generated.Known &&
			o.usage.Prompt.N+o.usage.Generated.N >= o.context-1
		if full && (o.req.MaxTokens == 0 || o.usage.Generated.N < o.req.MaxTokens) {
			f.Finish = FinishContext
		}
	case "abort", "error":
		return nil, &ServerError{Server: o.kind, Message: "the generation was aborted"}
	default:
		return nil, &ProtocolError{Server: o.kind, Reason: "an unknown finish reason", Excerpt: excerpt(o.finish, excerptLimit)}
	}
	return f, nil
}
