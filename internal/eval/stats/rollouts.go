package stats

import (
	"math"
	"slices"
)

// PassAtK is the unbiased estimate of the chance that one of k rollouts is right,
// from n rollouts of which c were (Chen et al. 2021, "Evaluating Large Language
// Models Trained on Code"). It is NaN where there are fewer than k.
func PassAtK(n, c, k int) float64 {
	if k < 1 || n < k {
		return math.NaN()
	}
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

// AvgAtK is the mean score of k rollouts: that of all there are, which estimates
// it best. It is NaN where there are fewer than k.
func AvgAtK(scores []float64, k int) float64 {
	if k < 1 || len(scores) < k {
		return math.NaN()
	}
	return total(scores) / float64(len(scores))
}

// BestAtK is the unbiased estimate of the best score among k rollouts: the mean
// of the best over all choices of k of them. With scores of 0 and 1 it is
// PassAtK. It is NaN where there are fewer than k.
func BestAtK(scores []float64, k int) float64 {
	n := len(scores)
	if k < 1 || n < k {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(scores))
	// The i-th smallest is the best of C(i-1, k-1) choices; weight is that share.
	best, weight := 0.0, float64(k)/float64(n)
	for i := n; i >= k; i-- {
		best += weight * sorted[i-1]
		if i > k {
			weight *= float64(i-k) / float64(i-1)
		}
	}
	return best
}
