package stats

import "math"

// The usual bounds of a comparison: a false alarm in one of twenty, and four of
// five true differences found. The numbers are quantiles of the normal
// distribution.
const (
	zLevel = 1.9599639845400545 // 1 - 0.05/2
	zPower = 0.8416212335729143 // 0.80
)

// ItemsNeeded is how many items McNemar's test needs to find a difference in
// accuracy at the level 0.05 with a power of 0.80, by the normal approximation
// (Connor 1987, "Sample size for testing differences in proportions for the
// paired-sample design"). differing is the share of items on which the two
// configurations differ, difference that of their accuracies; it cannot be
// larger. Where there is no difference, no number is enough: math.MaxInt.
func ItemsNeeded(differing, difference float64) int {
	difference = math.Abs(difference)
	differing = max(differing, difference)
	if difference == 0 {
		return math.MaxInt
	}
	root := zLevel*math.Sqrt(differing) + zPower*math.Sqrt(differing-difference*difference)
	return int(math.Ceil(root * root / (difference * difference)))
}

// Detectable is the smallest difference in accuracy that n items show with a
// power of 0.80 where the configurations differ on a share of them, or on as
// many as that difference takes; 1 where no smaller one would be shown. It is the
// inverse of ItemsNeeded.
func Detectable(n int, differing float64) float64 {
	low, high := 0.0, 1.0
	if ItemsNeeded(differing, 1) > n {
		return 1
	}
	for range 60 { // halving is exact to the last bit
		middle := (low + high) / 2
		if middle == low || middle == high {
			break
		}
		if ItemsNeeded(differing, middle) > n {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// TooFew reports whether a comparison that found nothing could hardly have found
// anything: the items are fewer than a difference as large as the observed one
// needs. A difference that the test did find needs no more items.
func TooFew(onlyA, onlyB, items int) (needed int, few bool) {
	if items == 0 {
		return math.MaxInt, true
	}
	if McNemar(onlyA, onlyB).P < 0.05 {
		return items, false
	}
	n := float64(items)
	needed = ItemsNeeded(float64(onlyA+onlyB)/n, float64(onlyA-onlyB)/n)
	return needed, needed > items
}
