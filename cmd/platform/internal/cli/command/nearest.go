package command

import (
	"platform/cmd/platform/internal/term"
	"platform/internal/suggest"
)

// maxCandidates bounds the names that a misspelled one is compared with.
const maxCandidates = 1000

// Nearest precedes a hint with the closest of the names that would have been found.
func Nearest(name string, candidates []string, hint string) string {
	near := Similar(name, candidates)
	if near == "" || near == name {
		return hint
	}
	return "Did you mean " + term.Clean(near) + "? " + hint
}

// Similar returns the candidate that a misspelled name probably means, "" if there is none.
func Similar(name string, candidates []string) string {
	return suggest.Nearest(name, candidates[:min(len(candidates), maxCandidates)])
}
