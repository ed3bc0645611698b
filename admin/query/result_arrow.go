package query

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
	"unicode/utf8"

	sqlite3 "modernc.org/sqlite/lib"

	"platform/admin/query/arrow"
)

// WriteArrow runs a query and streams the result to w in the Apache Arrow IPC format. The type of a
// computed column is that of its values in the first rows; the query fails if a later one does not fit.
// If it fails before anything was written, it writes nothing and returns the error; otherwise the stream
// has no end mark, so that clients can see that it is incomplete. If w is a DeadlineWriter, writing ends a
// second after the query timeout.
func (e *Engine) WriteArrow(ctx context.Context, text string, o Options, w io.Writer) (Written, error) {
	a := &arrowResult{to: w, max: e.cfg.MaxBytes, timeout: e.cfg.Timeout + writeGrace}
	stats, err := e.query(ctx, text, o, a)
	a.written.Stats = stats
	if err == nil {
		err = a.end()
	}
	return a.written, err
}

// arrowResult implements Rows and writes Arrow. It keeps rows until the types of all columns are
// known, or a batch is full.
type arrowResult struct {
	to      io.Writer
	max     int
	timeout time.Duration
	names   []string
	types   []Type
	pending [][]any // rows before the batch was made
	size    int     // of pending
	columns []arrow.Column
	batch   *arrow.Batch
	written Written
}

// Columns implements Rows.
func (a *arrowResult) Columns(names []string, types []Type, _ []Notice) error {
	a.names, a.types = names, types
	if w, ok := a.to.(DeadlineWriter); ok {
		if err := w.SetWriteDeadline(time.Now().Add(a.timeout)); err != nil {
			return fmt.Errorf("bound the time of writing: %w", err)
		}
	}
	return nil
}

// arrowTypes are the types of columns that come directly from a table.
var arrowTypes = map[Type]arrow.Type{
	Text: arrow.Text, U32: arrow.Uint32, U64: arrow.Uint64, Bool: arrow.Bool, Timestamp: arrow.Timestamp,
	Duration: arrow.Duration, Binary: arrow.Binary, U32List: arrow.Uint32List, TextList: arrow.TextList,
}

// begin determines the column types and creates the batch.
func (a *arrowResult) begin() {
	for i, name := range a.names {
		t, ok := arrowTypes[a.types[i]]
		if !ok {
			t = a.inferred(i)
		}
		a.columns = append(a.columns, arrow.Column{Name: name, Type: t})
	}
	a.batch = arrow.NewBatch(a.columns)
	for _, row := range a.pending {
		for i, v := range row {
			a.add(i, v)
		}
	}
	a.pending = nil
}

// inferred returns the type of a computed column: that of its first values, text if they differ.
func (a *arrowResult) inferred(column int) arrow.Type {
	kind := arrow.Text
	found := false
	for _, row := range a.pending {
		var t arrow.Type
		switch row[column].(type) {
		case nil:
			continue
		case int64:
			t = arrow.Int64
		case float64:
			t = arrow.Float64
		default:
			return arrow.Text
		}
		if found && t != kind {
			t = arrow.Float64
		}
		kind, found = t, true
	}
	return kind
}

// Row implements Rows.
func (a *arrowResult) Row(r Row) error {
	row := make([]any, len(a.names))
	for i := range row {
		switch r.s.kind(i) {
		case sqlite3.SQLITE_NULL:
		case sqlite3.SQLITE_INTEGER:
			row[i] = r.s.int(i)
		case sqlite3.SQLITE_FLOAT:
			row[i] = r.s.float(i)
		default:
			row[i] = append([]byte(nil), r.s.bytes(i)...)
			a.size += len(row[i].([]byte))
		}
		a.size += 8
	}
	a.written.Rows++
	if a.written.Bytes+a.size > a.max {
		return tooLarge(a.max)
	}
	if a.batch == nil {
		a.pending = append(a.pending, row)
		if a.size < resultBuffer {
			return nil
		}
		a.begin()
		return a.flush(arrow.AppendSchema(nil, a.columns))
	}
	for i, v := range row {
		if !a.fits(i, v) {
			return &Error{
				Message:    fmt.Sprintf("the column %s has values of different types, and rows with its first type have already been sent", a.names[i]),
				Suggestion: "convert it to one type, such as cast(… as text)",
			}
		}
		a.add(i, v)
	}
	if a.size < resultBuffer {
		return nil
	}
	return a.flush(nil)
}

// fits reports whether a computed column, whose type is inferred from the first rows, can contain a value
// unchanged.
func (a *arrowResult) fits(i int, v any) bool {
	if _, declared := arrowTypes[a.types[i]]; declared {
		return true
	}
	t := a.columns[i].Type
	switch v := v.(type) {
	case float64:
		return t != arrow.Int64 || v == math.Trunc(v) && math.Abs(v) < 1<<63
	case []byte:
		return t != arrow.Int64 && t != arrow.Float64
	}
	return true
}

// add appends a value to a column of the batch. A value of another type than that of the table's column
// becomes NULL.
func (a *arrowResult) add(i int, v any) {
	switch v := v.(type) {
	case int64:
		a.integer(i, v)
	case float64:
		a.float(i, v)
	case []byte:
		a.bytes(i, v)
	default:
		a.batch.Null(i)
	}
}

func (a *arrowResult) integer(i int, n int64) {
	switch a.columns[i].Type {
	case arrow.Float64:
		a.batch.Float(i, math.Float64bits(float64(n)))
	case arrow.Text, arrow.Binary:
		a.batch.Text(i, fmt.Append(nil, n))
	case arrow.TextList, arrow.Uint32List:
		a.batch.Null(i)
	default:
		a.batch.Int(i, n)
	}
}

func (a *arrowResult) float(i int, f float64) {
	switch a.columns[i].Type {
	case arrow.Float64:
		a.batch.Float(i, math.Float64bits(f))
	case arrow.Text, arrow.Binary:
		a.batch.Text(i, appendFloat(nil, f))
	case arrow.TextList, arrow.Uint32List:
		a.batch.Null(i)
	default:
		a.batch.Int(i, int64(f))
	}
}

func (a *arrowResult) bytes(i int, b []byte) {
	switch a.columns[i].Type {
	case arrow.Binary:
		a.batch.Text(i, b)
	case arrow.Text:
		if !utf8.Valid(b) {
			b = []byte(string([]rune(string(b))))
		}
		a.batch.Text(i, b)
	case arrow.Timestamp:
		t, err := parseTime(string(b))
		if err != nil {
			a.batch.Null(i)
			return
		}
		a.batch.Int(i, t.UnixMilli())
	case arrow.TextList:
		var list []string
		if json.Unmarshal(b, &list) != nil {
			a.batch.Null(i)
			return
		}
		a.batch.Texts(i, list)
	case arrow.Uint32List:
		var list []uint32
		if json.Unmarshal(b, &list) != nil {
			a.batch.Null(i)
			return
		}
		a.batch.Numbers(i, list)
	default:
		a.batch.Null(i)
	}
}

// flush appends the batch to b and writes b.
func (a *arrowResult) flush(b []byte) error {
	if a.batch.Rows() > 0 {
		b = a.batch.Append(b)
	}
	a.size = 0
	return a.write(b)
}

func (a *arrowResult) write(b []byte) error {
	n, err := a.to.Write(b)
	a.written.Bytes += n
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// end writes the remaining rows and the end mark.
func (a *arrowResult) end() error {
	var b []byte
	if a.batch == nil {
		a.begin()
		b = arrow.AppendSchema(b, a.columns)
	}
	if err := a.flush(b); err != nil {
		return err
	}
	return a.write(arrow.AppendEnd(nil))
}
