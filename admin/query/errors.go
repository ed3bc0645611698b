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
