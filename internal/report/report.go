// Package report draws what a comparison found: as a table for a terminal, as
// Markdown, CSV and JSON, and as one HTML file that needs nothing else.
//
// What it draws follows from the report alone, byte for byte. Names, questions,
// answers and runs come from outside; wherever they go, they stay text. The
// package never reads a clock, a server or the network, and never judges: every
// number is the report's.
package report

import (
	"cmp"
	"encoding/json"
	"io"

	"stopgap/internal/compare"
)

// Runs reads a run's segments from its journal.
type Runs func(run *compare.Run) ([]compare.Segment, error)

// JSON writes a report, or its times, as it is, indented.
func JSON[T compare.Report | compare.Times](w io.Writer, r *T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// key is the letter that stands for a configuration: A to Z, then AA and so on.
func key(i int) string {
	s := string(rune('A' + i%26))
	if i >= 26 {
		return key(i/26-1) + s
	}
	return s
}

// primary is the metric that the comparison is about, nil where it has none.
func primary(r *compare.Report) *compare.Metric {
	if r.Primary == "" {
		return nil
	}
	return r.Metric(r.Primary)
}

// level is the one that a difference has to be below, after Holm's correction.
const level = 0.05

// A finding is what a pair's tests by the primary metric say: that one is better
// where both the bootstrap and McNemar's test find it.
type finding struct {
	pair *compare.Pair
	test *compare.Test
	// better is the configuration that is shown to be better, -1 for none.
	better int
	// split says that the bootstrap finds a difference and McNemar's test does
	// not: of few items the bootstrap knows too little.
	split bool
}

// findings are those of all pairs that have a test by the primary metric.
func findings(r *compare.Report) []finding {
	var out []finding
	m := primary(r)
	for i := range r.Pairs {
		p := &r.Pairs[i]
		t := p.Test(r.Primary)
		if t == nil || m == nil {
			continue
		}
		f := finding{pair: p, test: t, better: -1}
		if t.Holm != nil && *t.Holm < level && t.Difference.Estimate != 0 {
			f.split = t.McNemar.Holm == nil || *t.McNemar.Holm >= level
			f.better = p.A
			if (t.Difference.Estimate > 0) == m.Lower {
				f.better = p.B
			}
			if f.split {
				f.better = -1
			}
		}
		out = append(out, f)
	}
	return out
}

// A verdict is how a run did by the ruling metric.
type verdict string

const (
	right    verdict = "right"
	part     verdict = "part" // between right and wrong
	wrong    verdict = "wrong"
	failed   verdict = "failed"   // it ended by an error
	unscored verdict = "unscored" // there is nothing to score by
	missing  verdict = "missing"  // it has not been made
)

// signs stand for the verdicts where there is no room for words.
var signs = map[verdict]string{right: "✓", part: "◐", wrong: "✗", failed: "!", unscored: "·", missing: "–"}

// ruling is the metric by which single runs are right or wrong: the primary one
// where that is a share, else exact match, else whether there is an answer. It
// is nil where nothing of that was measured.
func ruling(r *compare.Report) *compare.Metric {
	for _, k := range []string{r.Primary, "exact_match", "answered"} {
		if m := r.Metric(k); m != nil && m.Unit == compare.Share {
			return m
		}
	}
	return nil
}

// judge gives the verdict on a run by the ruling metric.
func judge(by *compare.Metric, run *compare.Run) verdict {
	if run == nil {
		return missing
	}
	if run.Error != "" {
		return failed
	}
	if by == nil {
		return unscored
	}
	score, scored := run.Scores[by.Key]
	switch {
	case !scored:
		return unscored
	case score >= 1:
		return right
	case score <= 0:
		return wrong
	}
	return part
}

// scored is what an answer is shown as: what was scored of it.
func scored(run *compare.Run) string { return cmp.Or(run.Scored, run.Answer) }
