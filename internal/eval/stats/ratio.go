package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Ratio gives the ratio of two sums over the same items with its percentile
// bootstrap interval: items are drawn, with both of their values. What a right
// answer costs is such a ratio. Where the second sum of a resample is not
// positive its ratio is infinite, and so may a bound be; without a positive
// second sum all three are NaN.
func Ratio(above, below []float64, o Resampling) Interval {
	if len(above) != len(below) {
		panic("stats: a ratio of lists of different lengths")
	}
	if !(total(below) > 0) {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	draws := o.Draws
	if draws <= 0 {
		draws = defaultDraws
	}
	random := rand.New(rand.NewPCG(o.Seed, uint64(len(above))))
	ratios := make([]float64, draws)
	for i := range ratios {
		var a, b float64
		for range above {
			j := random.IntN(len(above))
			a, b = a+above[j], b+below[j]
		}
		ratios[i] = math.MaxFloat64 // infinities cannot be interpolated
		if b > 0 {
			ratios[i] = a / b
		}
	}
	slices.Sort(ratios)
	low, high := o.bounds(ratios)
	return Interval{total(above) / total(below), infinite(low), infinite(high)}
}

// infinite gives what was too large to be a ratio its name.
func infinite(f float64) float64 {
	if f > math.MaxFloat64/1e9 {
		return math.Inf(1)
	}
	return f
}
