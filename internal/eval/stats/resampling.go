// Package stats says how sure one can be of a score: intervals and paired tests
// over the items of a data set, and rates over the rollouts of an item.
//
// An item is what is drawn at random. Where it has several rollouts, its value
// is their mean: rollouts of one item are no independent samples. Everything is
// deterministic; the seed of a resampling is part of its options.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Resampling is how a bootstrap draws. The zero value has useful defaults.
type Resampling struct {
	Seed uint64
	// Draws is how many resamples are made; zero means 10 000.
	Draws int
	// Level is the interval's coverage; zero means 0.95.
	Level float64
}

const (
	defaultDraws = 10_000
	defaultLevel = 0.95
)

// An Interval is an estimate and the bounds of its confidence interval.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// Mean gives the mean of the items' values with its percentile bootstrap
// interval (Efron 1979), as scipy.stats.bootstrap does with method="percentile".
// Without values all three are NaN.
func Mean(values []float64, o Resampling) Interval {
	n := float64(len(values))
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	sums := o.sums(values)
	low, high := o.bounds(sums)
	return Interval{total(values) / n, low / n, high / n}
}

// Wilson gives a share with its 95 % score interval (Wilson 1927). Unlike a
// resampled one it has a width where all cases went the same way. A case may be a
// part of a hit, the mean of its rollouts: it varies less than one of 0 or 1, so
// that the interval is rather too wide.
func Wilson(hits float64, n int) Interval {
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	share, size := hits/float64(n), float64(n)
	z2 := zLevel * zLevel
	middle := (share + z2/(2*size)) / (1 + z2/size)
	half := zLevel / (1 + z2/size) * math.Sqrt(share*(1-share)/size+z2/(4*size*size))
	return Interval{share, max(0, middle-half), min(1, middle+half)}
}

// A Comparison is the difference of two configurations over the same items.
type Comparison struct {
	Interval
	// P is the two-sided probability of a difference as large as this one, or
	// larger, where there is none: the share of resampled differences that lie
	// as far from the observed one as that lies from zero. It is never zero;
	// with B draws it is at least 1/(B+1).
	P float64 `json:"p"`
}

// Paired compares two configurations by the paired bootstrap: a minus b, item
// by item. Both have one value for each item, in the same order.
func Paired(a, b []float64, o Resampling) Comparison {
	if len(a) != len(b) {
		panic("stats: a paired comparison of lists of different lengths")
	}
	if len(a) == 0 {
		return Comparison{Mean(nil, o), math.NaN()}
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	n, observed := float64(len(a)), total(differences)
	sums := o.sums(differences)
	// What would be equal in exact arithmetic is as far.
	slack := 1e-9 * (1 + math.Abs(observed))
	far := 1
	for _, s := range sums {
		if math.Abs(s-observed) >= math.Abs(observed)-slack {
			far++
		}
	}
	low, high := o.bounds(sums)
	return Comparison{Interval{observed / n, low / n, high / n}, float64(far) / float64(len(sums)+1)}
}

// sums gives the totals of resamples of the values, sorted.
func (o Resampling) sums(values []float64) []float64 {
	draws := o.Draws
	if draws <= 0 {
		draws = defaultDraws
	}
	random := rand.New(rand.NewPCG(o.Seed, uint64(len(values))))
	sums := make([]float64, draws)
	for i := range sums {
		for range values {
			sums[i] += values[random.IntN(len(values))]
		}
	}
	slices.Sort(sums)
	return sums
}

// bounds gives the percentiles that have Level between them.
func (o Resampling) bounds(sorted []float64) (low, high float64) {
	level := o.Level
	if level <= 0 {
		level = defaultLevel
	}
	tail := (1 - level) / 2
	return quantile(sorted, tail), quantile(sorted, 1-tail)
}

// quantile interpolates between the two nearest values, as numpy.percentile.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

func total(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}
