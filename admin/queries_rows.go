package admin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"platform/admin/query"
	"platform/admin/rest"
)

// rowsOf runs an SQL query and decodes its rows; the names of the columns are the JSON names of
// the fields.
func rowsOf[T any](ctx context.Context, engine *query.Engine, sql string, o query.Options) ([]T, error) {
	var result bytes.Buffer
	if _, err := engine.WriteJSON(ctx, sql, o, &result); err != nil {
		return nil, err
	}
	decoded := struct{ Rows []T }{Rows: []T{}}
	if err := json.Unmarshal(result.Bytes(), &decoded); err != nil {
		return nil, fmt.Errorf("decode rows: %w", err)
	}
	return decoded.Rows, nil
}

// sqlText returns a text as an SQL expression. It is not always a literal, because queries must
// not contain NUL.
func sqlText(s string) string {
	literal := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if !strings.Contains(s, "\x00") {
		return literal
	}
	return "(" + strings.ReplaceAll(literal, "\x00", "' || char(0) || '") + ")"
}

// conditions returns a WHERE clause that requires all conditions.
func conditions(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(list, " AND ")
}

// embeddedJSON is a JSON value that a column of a table contains as text.
type embeddedJSON json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (e *embeddedJSON) UnmarshalJSON(b []byte) error {
	var text string
	err := json.Unmarshal(b, &text)
	*e = embeddedJSON(text)
	return err
}

// MarshalJSON implements json.Marshaler.
func (e embeddedJSON) MarshalJSON() ([]byte, error) { return e, nil }

// encodeCursor encodes the sort key of the last row of a page.
func encodeCursor(key any) string {
	b, err := json.Marshal(key)
	if err != nil {
		panic(err) // numbers and texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor decodes what encodeCursor returned.
func decodeCursor(text string, key any) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, key)
	}
	if err != nil {
		return rest.BadRequest("The query parameter 'cursor' is invalid: %v", ErrCursor)
	}
	return nil
}
