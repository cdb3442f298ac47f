package probe

import (
	"cmp"
	"math"
	"slices"

	"stopgap/internal/eval/stats"
)

// A Summary counts results.
type Summary struct {
	Cases  int            `json:"cases"`
	Strict stats.Interval `json:"strict"` // with 95 % score intervals
	Right  stats.Interval `json:"right"`
	Groups []Group        `json:"groups"` // in the order of their first case
	// Faults, Problems and Repairs count the cases that have each, the most
	// frequent first.
	Faults   []Count `json:"faults"`
	Problems []Count `json:"problems"`
	Repairs  []Count `json:"repairs"`
	// Propensity is nil where the server does not tell.
	Propensity *Propensity `json:"propensity,omitempty"`
	// Detectable is the difference to another configuration, asked the same, that
	// so many cases show with a power of 80 % where the two differ on a quarter of
	// them.
	Detectable float64 `json:"detectable"`
}

// A Group is the score of one group of cases.
type Group struct {
	Name   string `json:"name"`
	Cases  int    `json:"cases"`
	Strict int    `json:"strict"`
	Right  int    `json:"right"`
}

// A Count is how many cases have something.
type Count struct {
	Name  string `json:"name"`
	Cases int    `json:"cases"`
}

// A Propensity sums up how likely the model is to open a call.
type Propensity struct {
	// Wanted and Unwanted are the medians of the logarithms where a call is right
	// and where none is; nil without such a case.
	Wanted   *float64 `json:"wanted"`
	Unwanted *float64 `json:"unwanted"`
	// AUC is the chance that a case where a call is right has a higher one than a
	// case where none is: 0.5 tells nothing apart, 1 everything.
	AUC *float64 `json:"auc"`
}

// differing is the share of cases on which two configurations are taken to
// differ where only one is known.
const differing = 0.25

// Summarise counts results.
func Summarise(results []Result) Summary {
	s := Summary{Cases: len(results)}
	strict, right := 0, 0
	faults, problems, repairs := map[string]int{}, map[string]int{}, map[string]int{}
	for _, r := range results {
		i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == r.Group })
		if i < 0 {
			i, s.Groups = len(s.Groups), append(s.Groups, Group{Name: r.Group})
		}
		g := &s.Groups[i]
		g.Cases++
		g.Strict, g.Right = g.Strict+one(r.Strict), g.Right+one(r.Right)
		strict, right = strict+one(r.Strict), right+one(r.Right)
		if r.Fault != "" {
			faults[r.Fault]++
		}
		for kind := range kindsOf(r) {
			problems[kind]++
		}
		for kind := range repairsOf(r) {
			repairs[kind]++
		}
	}
	if len(results) > 0 {
		s.Strict, s.Right = stats.Wilson(float64(strict), len(results)), stats.Wilson(float64(right), len(results))
	}
	s.Faults, s.Problems, s.Repairs = counts(faults), counts(problems), counts(repairs)
	s.Propensity = propensityOf(results)
	s.Detectable = stats.Detectable(len(results), differing)
	return s
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// kindsOf are the kinds of a result's problems. A turn without a call has its
// fault for that.
func kindsOf(r Result) map[string]bool {
	out := map[string]bool{}
	for _, p := range r.Problems {
		out[string(p.Kind)] = true
	}
	return out
}

func repairsOf(r Result) map[string]bool {
	out := map[string]bool{}
	for _, c := range r.Calls {
		for _, repair := range c.Repairs {
			out[string(repair)] = true
		}
	}
	return out
}

func counts(m map[string]int) []Count {
	out := []Count{}
	for name, n := range m {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(b.Cases-a.Cases, cmp.Compare(a.Name, b.Name)) })
	return out
}

func propensityOf(results []Result) *Propensity {
	var wanted, unwanted []float64
	for _, r := range results {
		switch {
		case r.Propensity == nil:
		case r.Wanted:
			wanted = append(wanted, *r.Propensity)
		default:
			unwanted = append(unwanted, *r.Propensity)
		}
	}
	if len(wanted)+len(unwanted) == 0 {
		return nil
	}
	p := &Propensity{Wanted: median(wanted), Unwanted: median(unwanted)}
	if len(wanted) > 0 && len(unwanted) > 0 {
		sum := 0.0
		for _, a := range wanted {
			for _, b := range unwanted {
				switch {
				case a > b:
					sum++
				case a == b:
					sum += 0.5
				}
			}
		}
		auc := sum / float64(len(wanted)*len(unwanted))
		p.AUC = &auc
	}
	return p
}

func median(values []float64) *float64 {
	n := len(values)
	if n == 0 {
		return nil
	}
	slices.Sort(values)
	m := (values[n/2] + values[(n-1)/2]) / 2
	if math.IsNaN(m) {
		return nil
	}
	return &m
}
