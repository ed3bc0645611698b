package query

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is an error caused by the query.
type Error struct {
	Message string
	// Position is the position in the query, the zero Position if unknown.
	Position Position
	// Suggestion is the likely intended name, or advice; it may be empty.
	Suggestion string
	// Forbidden means that the client must not read what the query names.
	Forbidden bool
}

// Position is a position in a query. Lines and columns start at 1; columns count characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Error implements error.
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

// positionAt returns the position of a byte of a query.
func positionAt(text string, at int) Position {
	before := text[:min(at, len(text))]
	line := strings.LastIndexByte(before, '\n') + 1
	return Position{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[line:]) + 1}
}

const notReading = "queries can only read: SELECT, WITH, VALUES, EXPLAIN, SHOW TABLES, DESCRIBE"
