// Package suggest finds the closest known name to a misspelled one, and writes commands that messages
// suggest.
package suggest

import "strings"

// maxName bounds the work for untrusted input; it exceeds the length of any known name.
const maxName = 100

// Nearest returns the candidate closest to name, ignoring case, or "" if none is close. Up
// to a third of the letters may differ. A candidate that contains name counts as close.
func Nearest(name string, candidates []string) string {
	if len(name) > maxName {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", 1+max(1, len(name)/3)
	for _, candidate := range candidates {
		d := Distance(name, strings.ToLower(candidate))
		if strings.Contains(strings.ToLower(candidate), name) && len(name) >= 3 {
			d = min(d, 1) // for example, status in completion_status
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Distance returns the optimal string alignment distance of two words: the number of
// insertions, deletions, substitutions and transpositions of adjacent letters.
func Distance(a, b string) int {
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
