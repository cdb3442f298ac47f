package research

import (
	"encoding/json"
	"testing"
	"time"

	"stopgap/internal/trace"
	"stopgap/runner"
)

// What was done is told in whole steps, the last ones; of one that is longer
// than there is room for, the end.
func TestPast(t *testing.T) {
	for _, tt := range []struct {
		name       string
		characters int
		tokens     int
		steps      []string
		want       string
	}{
		{"nothing", 100, 100, nil, ""},
		{"all", 100, 100, []string{"one", "two"}, "one\ntwo"},
		{"the last", 7, 100, []string{"one", "two", "six"}, "six"},
		{"the end of the last, by characters", 3, 100, []string{"one", "two three"}, "ree"},
		{"the end of the last, by tokens", 100, 4, []string{"one", "two three"}, "three"},
	} {
		s := &state{Research: &Research{Runner: &runner.Runner{CountTokens: func(text string) int { return max(len(text)-1, 0) }}, Limits: Limits{History: tt.characters}}}
		for _, text := range tt.steps {
			s.remember(step{full: text})
		}
		if got := s.past(tt.tokens); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The time between a kill and when a run was gone on with is not the run's.
func TestTook(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	records := func(kinds ...string) []trace.Record { // a minute apart
		var out []trace.Record
		for i, kind := range kinds {
			at := began.Add(time.Duration(i) * time.Minute)
			out = append(out, trace.Record{Seq: i + 1, Time: at, Kind: kind, Event: json.RawMessage(`{"duration_ns":7000000000}`)})
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		records []trace.Record
		want    time.Duration
	}{
		{"nothing", nil, 0},
		{"killed", records("started", "stopped", "returned", "text"), 2 * time.Minute},
		{"whole", records("started", "stopped", "returned", "ended"), 7 * time.Second},
		{"gone on with", records("started", "stopped", "text", "text", "text", trace.KindRevived, "stopped", "returned"), 3 * time.Minute},
		{"gone on with, whole", records("started", "stopped", "text", trace.KindRevived, "stopped", "ended"), time.Minute + 7*time.Second},
	} {
		if got := took(tt.records); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
