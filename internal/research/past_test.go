package research

import (
	"encoding/json"
	"testing"
	"time"

	"stopgap/internal/trace"
)

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
