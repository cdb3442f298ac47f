package trace

import (
	"encoding/json"
	"fmt"
	"slices"

	"stopgap/runner"
)

// A tape is a run that can be played: its records, understood.
type tape struct {
	run       *Run
	requests  []exchange
	results   map[place]result
	running   map[place]string // the tool's name
	renders   []rendering
	spellings []spelling
	encodings map[textKey][]encoding
	counts    map[string]int // by the text's hash
	turns     int            // that ended with a Stopped
	// comparable are the records that a playing gives again, in their order.
	// What tools give comes in any order, and is not among them.
	comparable []Record
	ended      *runner.Outcome // nil where the run was cut off
}

// An exchange is a request and what it gave, which is nil where the run was cut
// off before that.
type exchange struct {
	request
	seq    int
	stream *stream
}

// A RecordError says that a record is not what its place in the run asks for.
type RecordError struct {
	Seq    int
	Kind   string
	Reason string
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("record %d (%s): %s", e.Seq, e.Kind, e.Reason)
}

// newTape reads the records of a run. The error is a *RecordError.
func newTape(run *Run) (*tape, error) {
	t := &tape{run: run, results: map[place]result{}, running: map[place]string{}, encodings: map[textKey][]encoding{}, counts: map[string]int{}}
	for _, rec := range run.Records {
		if err := t.take(rec); err != nil {
			return nil, &RecordError{rec.Seq, rec.Kind, err.Error()}
		}
	}
	return t, nil
}

func (t *tape) take(rec Record) error {
	if compares(rec.Kind) {
		t.comparable = append(t.comparable, rec)
	}
	switch rec.Kind {
	case kindRequest:
		x := exchange{seq: rec.Seq}
		if err := json.Unmarshal(rec.Event, &x.request); err != nil {
			return err
		}
		if x.Request != len(t.requests)+1 {
			return fmt.Errorf("request %d where %d is due", x.Request, len(t.requests)+1)
		}
		t.requests = append(t.requests, x)
	case kindStream:
		s, err := as[stream](rec)
		if err != nil {
			return err
		}
		if s.Request < 1 || s.Request > len(t.requests) || t.requests[s.Request-1].stream != nil {
			return fmt.Errorf("there is no request %d that waits for it", s.Request)
		}
		t.requests[s.Request-1].stream = &s
	case kindEncodings:
		e, err := as[encodings](rec)
		for _, text := range e.Texts {
			key := textKey{text.SHA256, text.Special}
			t.encodings[key] = append(t.encodings[key], text)
		}
		return err
	case kindCounts:
		c, err := as[counts](rec)
		for _, text := range c.Texts {
			t.counts[text.SHA256] = text.Tokens
		}
		return err
	case kindRunning:
		r, err := as[running](rec)
		t.running[r.place] = r.Name
		return err
	case kindResult:
		r, err := as[result](rec)
		t.results[r.place] = r
		return err
	case kindRender:
		return appendAs(&t.renders, rec)
	case kindSpelling:
		return appendAs(&t.spellings, rec)
	case kindStopped:
		t.turns++
	case kindEnded:
		o, err := as[runner.Outcome](rec)
		t.ended = &o
		return err
	}
	return nil
}

// as reads a record.
func as[T any](rec Record) (v T, err error) {
	err = json.Unmarshal(rec.Event, &v)
	return v, err
}

func appendAs[T any](list *[]T, rec Record) error {
	v, err := as[T](rec)
	*list = append(*list, v)
	return err
}

// whole cuts off what was under way when the process was killed: a request
// whose stream has no end, and what came of it. It gives the last record that
// stays.
func (t *tape) whole() int {
	last := 0
	if n := len(t.run.Records); n > 0 {
		last = t.run.Records[n-1].Seq
	}
	if n := len(t.requests); n > 0 && t.requests[n-1].stream == nil {
		last = t.requests[n-1].seq - 1
		t.requests = t.requests[:n-1]
		t.comparable = t.comparable[:slices.IndexFunc(t.comparable, func(r Record) bool { return r.Seq > last })]
	}
	return last
}

// abilities are what the run asked of its model.
func (t *tape) abilities(chat bool) abilities {
	return abilities{chat: chat, render: len(t.renders) > 0, spell: len(t.spellings) > 0}
}

// has reports whether the tape says already how the run begins.
func (t *tape) has(kind string) bool {
	return kind == kindSpelling && len(t.spellings) > 0 || kind == kindRender && len(t.renders) > 0
}

// endsWith reports whether the run ended with the ledger of a hash.
func (t *tape) endsWith(hash string) bool {
	for _, rec := range t.comparable {
		var l ledger
		if rec.Kind == kindLedger && json.Unmarshal(rec.Event, &l) == nil && l.SHA256 == hash {
			return true
		}
	}
	return false
}
