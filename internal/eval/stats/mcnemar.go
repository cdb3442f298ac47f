package stats

import (
	"math"
	"slices"
)

// A Test is a statistic and the two-sided probability of one as extreme.
type Test struct {
	Statistic float64 `json:"statistic"`
	P         float64 `json:"p"`
}

// McNemar tests whether two configurations are right equally often on the same
// items (McNemar 1947), by the items on which they differ: the exact binomial
// test. onlyA and onlyB count the items that one got right and the other not;
// the statistic is the smaller of the two.
func McNemar(onlyA, onlyB int) Test {
	n, k := onlyA+onlyB, min(onlyA, onlyB)
	return Test{float64(k), min(1, 2*binomialCDF(k, n))}
}

// McNemarChi2 is McNemar's test by the chi-squared distribution with one degree
// of freedom, with Edwards' continuity correction or without. It needs some 25
// items that differ; without any, nothing speaks for a difference and P is 1.
func McNemarChi2(onlyA, onlyB int, correction bool) Test {
	n, d := float64(onlyA+onlyB), math.Abs(float64(onlyA-onlyB))
	if n == 0 {
		return Test{0, 1}
	}
	if correction {
		d-- // below zero too, as in the reference
	}
	statistic := d * d / n
	return Test{statistic, math.Erfc(math.Sqrt(statistic / 2))}
}

// binomialCDF is the probability of at most k heads in n throws of a coin.
func binomialCDF(k, n int) float64 {
	sum := 0.0
	for i := 0; i <= k; i++ { // the smallest first
		sum += math.Exp(lchoose(n, i) - float64(n)*math.Ln2)
	}
	return min(sum, 1)
}

// lchoose is the natural logarithm of n over k.
func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Holm adjusts the probabilities of several tests, so that the chance of one
// false alarm among all of them stays below the level that the adjusted ones are
// compared with (Holm 1979). The order is kept.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	out, highest := make([]float64, len(ps)), 0.0
	for rank, i := range order {
		highest = max(highest, min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = highest
	}
	return out
}
