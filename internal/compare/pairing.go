package compare

import (
	"math"

	"stopgap/internal/eval/stats"
)

// slack is how far two means of rollouts may be apart and still be the same.
const slack = 1e-9

// pair compares all pairs of configurations.
func (r *Report) pair() {
	for a := range r.Configurations {
		for b := a + 1; b < len(r.Configurations); b++ {
			r.Pairs = append(r.Pairs, Pair{A: a, B: b, Tests: []Test{}})
		}
	}
	atOnce(len(r.Pairs), func(i int) {
		p := &r.Pairs[i]
		for _, m := range r.Metrics {
			if t := r.test(m, p.A, p.B); t != nil {
				p.Tests = append(p.Tests, *t)
			}
		}
		p.AheadA, p.AheadB = r.ahead(p.A, p.B)
	})
	r.correct()
	r.doubt()
	for _, p := range r.Pairs {
		for _, list := range [][]int{p.AheadA, p.AheadB} {
			for _, i := range list {
				r.Items[i].Differs = true
			}
		}
	}
}

// test compares two configurations by a metric, nil where no item has both.
func (r *Report) test(m Metric, a, b int) *Test {
	sa, sb := r.Configurations[a].Score(m.Key), r.Configurations[b].Score(m.Key)
	if !m.Paired || sa == nil || sb == nil {
		return nil
	}
	var as, bs []float64
	t := &Test{Metric: m.Key}
	mc := &t.McNemar
	for i := range sa.Values {
		if sa.Values[i] == nil || sb.Values[i] == nil {
			continue
		}
		as, bs = append(as, *sa.Values[i]), append(bs, *sb.Values[i])
		switch d := *sa.Values[i] - *sb.Values[i]; {
		case math.Abs(d) <= slack:
		case (d > 0) != m.Lower:
			mc.B++
		default:
			mc.C++
		}
	}
	if t.Items = len(as); t.Items == 0 {
		return nil
	}
	c := stats.Paired(as, bs, resampling)
	t.Difference, t.P = Interval{Interval: c.Interval}, c.P
	exact, chi2 := stats.McNemar(mc.B, mc.C), stats.McNemarChi2(mc.B, mc.C, true)
	mc.P, mc.Chi2, mc.Chi2P = exact.P, chi2.Statistic, chi2.P
	return t
}

// ahead gives the items on which the one or the other is better by the primary
// metric.
func (r *Report) ahead(a, b int) (as, bs []int) {
	m := r.Metric(r.Primary)
	if m == nil {
		return nil, nil
	}
	va, vb := r.values(a, m.Key), r.values(b, m.Key)
	for i := range va {
		if va[i] == nil || vb[i] == nil || math.Abs(*va[i]-*vb[i]) <= slack {
			continue
		}
		if (*va[i] > *vb[i]) != m.Lower {
			as = append(as, i)
		} else {
			bs = append(bs, i)
		}
	}
	return as, bs
}

// correct adjusts the probabilities of the primary metric for the number of
// pairs.
func (r *Report) correct() {
	var tests []*Test
	for i := range r.Pairs {
		if t := r.Pairs[i].Test(r.Primary); t != nil {
			tests = append(tests, t)
		}
	}
	var ps, exact []float64
	for _, t := range tests {
		ps, exact = append(ps, t.P), append(exact, t.McNemar.P)
	}
	ps, exact = stats.Holm(ps), stats.Holm(exact)
	for i, t := range tests {
		t.Holm, t.McNemar.Holm = &ps[i], &exact[i]
	}
}

// doubt marks tests of the primary metric that had too few items to find
// anything.
func (r *Report) doubt() {
	for i := range r.Pairs {
		t := r.Pairs[i].Test(r.Primary)
		if t == nil {
			continue
		}
		needed, few := stats.TooFew(t.McNemar.B, t.McNemar.C, t.Items)
		if !few {
			continue
		}
		if needed == math.MaxInt {
			needed = 0
		}
		differing := float64(t.McNemar.B+t.McNemar.C) / float64(t.Items)
		detectable := stats.Detectable(t.Items, differing)
		if needed == 0 && detectable < 1 && !r.Metric(r.Primary).Pass {
			continue // a difference in accuracy says nothing of one in tokens
		}
		t.TooFew = &TooFew{Needed: needed, Detectable: detectable}
	}
}
