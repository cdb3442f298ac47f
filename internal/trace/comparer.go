package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Difference is where a run that is played does not do what was recorded.
type Difference struct {
	Seq   int    `json:"seq"`   // of the record; one more than the last where there is none
	Kind  string `json:"event"` // that was recorded, empty for none
	Field string `json:"field,omitempty"`
	// Recorded and Played are the values as JSON, or the parts of them that
	// differ; without a Field the kinds of the records.
	Recorded string `json:"recorded"`
	Played   string `json:"played"`
}

func (d Difference) String() string {
	where := fmt.Sprintf("record %d", d.Seq)
	if d.Kind != "" {
		where += " (" + d.Kind + ")"
	}
	if d.Field != "" {
		where += ", " + d.Field
	}
	return fmt.Sprintf("%s: recorded %s, played %s", where, d.Recorded, d.Played)
}

// measured are the fields that are measurements: no two runs have the same.
var measured = map[string]string{"returned": "duration_ns", "stopped": "halt_ns", "ended": "duration_ns"}

// A comparer is a sink that compares what comes with a tape.
type comparer struct {
	tape        *tape
	at          int // the next of tape.comparable
	differences []Difference
	lost        bool   // the two have parted: nothing can be compared any more
	last        func() // called before the end of a recorded run
}

// through reports whether the whole tape was seen.
func (c *comparer) through() bool { return c.at == len(c.tape.comparable) }

// compares reports whether records of a kind come in their order.
func compares(kind string) bool {
	switch kind {
	case KindRevived, kindRender, kindSpelling, kindEncodings, kindCounts, kindRunning, kindResult, kindFailed:
		return false
	}
	return true
}

func (c *comparer) append(kind string, v any) error {
	if c.lost || !compares(kind) || c.through() && c.tape.ended == nil {
		return nil
	}
	if c.through() {
		c.part(Difference{Seq: c.tape.run.Records[len(c.tape.run.Records)-1].Seq + 1, Recorded: "nothing", Played: kind})
		return nil
	}
	body, err := marshal(kind, v)
	if err != nil {
		return err
	}
	want := c.tape.comparable[c.at]
	c.at++
	if want.Kind != kind {
		c.part(Difference{Seq: want.Seq, Kind: want.Kind, Recorded: want.Kind, Played: kind})
		return nil
	}
	c.differences = append(c.differences, differences(want, body)...)
	if n := len(c.tape.comparable); c.last != nil && c.at < n && c.tape.comparable[c.at].Kind == kindLedger {
		c.last()
	}
	return nil
}

func (c *comparer) part(d Difference) { c.differences, c.lost = append(c.differences, d), true }

func (c *comparer) sync() error { return nil }

// differences compares a record with what is played in its place, field by
// field.
func differences(want Record, body []byte) []Difference {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(want.Event, &a) != nil || json.Unmarshal(body, &b) != nil {
		return []Difference{{Seq: want.Seq, Kind: want.Kind, Recorded: excerpt(string(want.Event), 0), Played: excerpt(string(body), 0)}}
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var out []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch name {
		case "event", "seq", "time", "prefilled", measured[want.Kind]:
			continue
		}
		if !same(a[name], b[name]) {
			from := commonPrefix(a[name], b[name])
			out = append(out, Difference{want.Seq, want.Kind, name, excerpt(string(a[name]), from), excerpt(string(b[name]), from)})
		}
	}
	return out
}

// same reports whether two values are the same JSON.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	decode := func(raw json.RawMessage) (v any) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if len(raw) == 0 || dec.Decode(&v) != nil {
			return nil
		}
		return v
	}
	return len(a) > 0 && len(b) > 0 && reflect.DeepEqual(decode(a), decode(b))
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// excerpt is a value, or the part of it around a byte.
func excerpt(s string, around int) string {
	const before, after = 30, 60
	if s == "" {
		return "nothing"
	}
	from, to := max(0, around-before), min(len(s), around+after)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return strings.ToValidUTF8(out, "\uFFFD")
}
