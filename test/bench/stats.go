package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// quantile returns the q-quantile of sorted by the nearest-rank method, 0 if it is empty.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the median, NaN if values is empty.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios divides pairwise and skips pairs with divisor 0.
func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// minMax returns the smallest and the largest value; values must not be empty.
func minMax[T cmp.Ordered](values []T) (low, high T) { return slices.Min(values), slices.Max(values) }
