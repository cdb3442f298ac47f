package models

import (
	"testing"
	"time"
)

// report makes the turns of a measurement: of each session in turn, what was
// evaluated, what was added, and the time it took in milliseconds.
func report(known bool, turns ...[3]int) PrefixReport {
	var r PrefixReport
	for i, v := range turns {
		t := PrefixTurn{Session: string(rune('a' + i%2)), Turn: i/2 + 1, Time: time.Duration(v[2]) * time.Millisecond}
		if known {
			t.Usage.Evaluated = Known(v[0])
			t.Added = Known(v[1])
		}
		r.Turns = append(r.Turns, t)
	}
	r.judge()
	return r
}

func TestPrefixVerdicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		got   PrefixReport
		exact bool
		want  PrefixVerdict
	}{
		{"kept", report(true, [3]int{500, 0, 9}, [3]int{200, 0, 9}, [3]int{30, 30, 9}, [3]int{90, 30, 9}), true, PrefixKept},
		{"lost", report(true, [3]int{500, 0, 1}, [3]int{500, 0, 1}, [3]int{530, 30, 1}, [3]int{530, 30, 1}), true, PrefixLost},
		{"one session of two loses", report(true, [3]int{500, 0, 1}, [3]int{500, 0, 1}, [3]int{30, 30, 1}, [3]int{250, 30, 1}), true, PrefixLost},
		{"by time, kept", report(false, [3]int{0, 0, 900}, [3]int{0, 0, 400}, [3]int{0, 0, 90}, [3]int{0, 0, 80}), false, PrefixKept},
		{"by time, lost", report(false, [3]int{0, 0, 900}, [3]int{0, 0, 400}, [3]int{0, 0, 500}, [3]int{0, 0, 80}), false, PrefixLost},
		{"no time", report(false, [3]int{}, [3]int{}, [3]int{}, [3]int{}), false, PrefixUnknown},
	} {
		check(t, c.name+": verdict", c.got.Verdict, c.want)
		check(t, c.name+": exact", c.got.Exact, c.exact)
	}
}

func TestMeasurementsDiffer(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{})
	prompts := map[any]bool{}
	for range 2 {
		if _, err := MeasurePrefix(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range f.requests {
		prompts[r["prompt"]] = true
	}
	check(t, "different prompts", len(prompts), 12)
}

func TestMeasurementStopsAtAnError(t *testing.T) {
	m := script(t, "turns: [{text: a, error: server}]", Options{})
	if r, err := MeasurePrefix(t.Context(), m); err == nil {
		t.Errorf("report is %+v", r)
	}
}
