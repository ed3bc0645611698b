package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrNoEngine means that there is no engine.
var ErrNoEngine = errors.New("this node has no query engine")

// Select runs a query and decodes its rows; the names of the columns are the JSON names of the fields.
// Without an engine it returns ErrNoEngine.
func Select[T any](ctx context.Context, e *Engine, sql string, o Options) ([]T, error) {
	if e == nil {
		return nil, ErrNoEngine
	}
	var result bytes.Buffer
	if _, err := e.WriteJSON(ctx, sql, o, &result); err != nil {
		return nil, err
	}
	decoded := struct{ Rows []T }{Rows: []T{}}
	if err := json.Unmarshal(result.Bytes(), &decoded); err != nil {
		return nil, fmt.Errorf("decode rows: %w", err)
	}
	return decoded.Rows, nil
}

// Quote returns a text as an SQL expression. It is not always a literal, because queries must not
// contain NUL.
func Quote(s string) string {
	literal := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if !strings.Contains(s, "\x00") {
		return literal
	}
	return "(" + strings.ReplaceAll(literal, "\x00", "' || char(0) || '") + ")"
}

// Where returns a WHERE clause that requires all conditions; empty without any.
func Where(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}
