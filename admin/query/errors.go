package query

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is a refusal that the text of a query is the reason for.
type Error struct {
	Message string
	// Position is where in the query, the zero Position if that is not known.
	Position Position
	// Suggestion is what may have been meant, or what helps; it may be empty.
	Suggestion string
}

// Position is a place in a query. Lines and columns count from 1, columns in
// characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Error puts everything into one text.
func (e *Error) Error() string {
	text := e.Message
	if e.Position != (Position{}) {
		text = fmt.Sprintf("line %d, column %d: %s", e.Position.Line, e.Position.Column, text)
	}
	if e.Suggestion != "" {
		text += "; " + e.Suggestion
	}
	return text
}

// positionAt is the position of a byte of a query.
func positionAt(text string, at int) Position {
	before := text[:min(at, len(text))]
	line := strings.LastIndexByte(before, '\n') + 1
	return Position{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[line:]) + 1}
}

const notReading = "only reading is possible here: SELECT, WITH, VALUES, EXPLAIN, SHOW TABLES, DESCRIBE"

// nearest finds the name most like another one; empty if none is like it.
func nearest(name string, names []string) string {
	name = strings.ToLower(name)
	best, least := "", 1+max(1, len(name)/3)
	for _, candidate := range names {
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

// distance is how many letters must be inserted, removed, replaced or swapped with
// their neighbour to make one word of another.
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
