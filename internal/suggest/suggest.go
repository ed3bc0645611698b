// Package suggest finds the known name that a misspelt one was probably meant to be.
package suggest

import "strings"

// maxName bounds the work spent on what a client sent; no name is that long.
const maxName = 100

// Nearest returns the candidate that is most like name, ignoring case, or "" if none is
// like it. Up to a third of the letters may differ. A candidate that contains name as a
// whole counts as near.
func Nearest(name string, candidates []string) string {
	if len(name) > maxName {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", 1+max(1, len(name)/3)
	for _, candidate := range candidates {
		d := distance(name, strings.ToLower(candidate))
		if strings.Contains(candidate, name) && len(name) >= 3 {
			d = min(d, 1) // such as status of completion_status
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of two words: the number of letters
// to insert, remove, replace or swap with their neighbour to turn one into the other.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
