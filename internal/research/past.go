package research

import (
	"time"

	"stopgap/internal/trace"
	"stopgap/runner"
)

// The events that a research learns from, and the last one.
var stopped, returned, nudged, ended = runner.Stopped{}.Kind(), runner.Returned{}.Kind(), runner.Nudged{}.Kind(), runner.Ended{}.Kind()

func happens(kind string) bool { return kind == stopped || kind == returned || kind == nudged }

// happened counts what a research learns from records.
func happened(records []trace.Record) int {
	n := 0
	for _, rec := range records {
		if happens(rec.Kind) {
			n++
		}
	}
	return n
}

// took is how long a run took: the same when it is made and whenever its records
// are read. Between a kill and when the run was gone on with nothing is done; of
// what a kill cut off, what came after the last happening is not counted.
func took(records []trace.Record) time.Duration {
	var before, now time.Duration // until the last kill, and since then
	var began time.Time
	for i, rec := range records {
		switch {
		case i == 0:
			began = rec.Time
		case rec.Kind == trace.KindRevived:
			before, now, began = before+now, 0, rec.Time
		case happens(rec.Kind):
			now = rec.Time.Sub(began)
		}
		if ev, err := rec.RunnerEvent(); rec.Kind == ended && err == nil {
			now = ev.(runner.Ended).Duration
		}
	}
	return before + now
}
