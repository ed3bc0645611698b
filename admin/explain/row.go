package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Row is a row of a result as JSON values. NULL columns are absent.
type Row map[string]json.RawMessage

// Text returns a column as text, "" if it is NULL.
func (r Row) Text(name string) string {
	var text string
	if json.Unmarshal(r[name], &text) == nil {
		return text
	}
	return string(r[name])
}

// Number returns a column of small numbers, 0 if it is NULL.
func (r Row) Number(name string) (n int) {
	_, _ = fmt.Sscan(r.Text(name), &n)
	return n
}

// Time returns a column of type time, the zero time if it is NULL.
func (r Row) Time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, r.Text(name))
	return t
}

// quote returns text as an SQL literal.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
