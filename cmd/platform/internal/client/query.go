package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// queryTimeout is longer than the server's own limit.
const queryTimeout = 40 * time.Second

// Rows is the result of a query.
type Rows struct {
	Columns []string // in the order of the query; all only with QueryTable, otherwise those with values
	Rows    []Row
	Notices []string // remarks about conditions that no row can meet
}

// Row is a row of a result, without the columns that are NULL.
type Row []Cell

// Cell is a column of a row.
type Cell struct {
	Name  string
	Value json.RawMessage
}

// Text returns a column for display: text without quotes, other values as JSON, NULL as \"\".
func (r Row) Text(name string) string {
	for _, c := range r {
		if c.Name == name {
			return c.Text()
		}
	}
	return ""
}

// Text returns the value for display.
func (c Cell) Text() string {
	var text string
	if json.Unmarshal(c.Value, &text) == nil {
		return text
	}
	return string(c.Value)
}

// MarshalJSON writes the row as an object.
func (r Row) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, c := range r {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), c.Value...)
	}
	return append(b, '}'), nil
}

// Quote returns text as an SQL literal.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// where returns a WHERE clause that requires all conditions, with a space before; empty without any.
func where(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// Query runs an SQL query.
func (c *Client) Query(ctx context.Context, sql string) (*Rows, error) {
	return c.query(ctx, map[string]any{"query": sql})
}

// selectRows runs a query and decodes its rows, in which columns without a value are
// missing.
func (c *Client) selectRows(ctx context.Context, query string, rows any) error {
	response, err := c.Query(ctx, query)
	if err != nil {
		return err
	}
	all, err := json.Marshal(response.Rows)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(all, rows); err != nil {
		return fmt.Errorf("unexpected response (is this the address of the admin API?): %w", err)
	}
	return nil
}

// QueryTable is Query for results that are shown with all columns, including those that are
// NULL in every row.
// consistency is \"bounded\" or \"strong\"; empty is the server's default.
func (c *Client) QueryTable(ctx context.Context, sql, consistency string) (*Rows, error) {
	question := map[string]any{"query": sql, "with_columns": true}
	if consistency != "" { // older servers reject the field
		question["consistency"] = consistency
	}
	return c.query(ctx, question)
}

func (c *Client) query(ctx context.Context, question map[string]any) (*Rows, error) {
	ctx, cancel := context.WithTimeout(ctx, max(queryTimeout, c.opts.RequestTimeout))
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	response, err := c.send(ctx, c.admin, request{
		method: http.MethodPost, path: "/query", body: body, reads: true,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	})
	if broken, ok := errors.AsType[*UnreachableError](err); ok && len(broken.Partial) > 0 {
		if _, reason := readRows(broken.Partial); reason != nil {
			return nil, reason
		}
	}
	if err != nil {
		return nil, err
	}
	return readRows(response.Body)
}

// readRows decodes a response and keeps the order of columns.
func readRows(body []byte) (*Rows, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	rows := &Rows{}
	if err := rows.readStart(dec); err != nil {
		return nil, err
	}
	for dec.More() {
		row, err := readRow(dec)
		if err != nil {
			return nil, err
		}
		rows.note(row)
	}
	if err := expect(dec, "]"); err != nil {
		return nil, err
	}
	if !dec.More() {
		return rows, nil
	}
	var failed struct{ Message string }
	if err := expect(dec, "error"); err != nil {
		return nil, err
	}
	if err := dec.Decode(&failed); err != nil {
		return nil, fmt.Errorf("the response is incomplete: %w", err)
	}
	return nil, fmt.Errorf("the query failed after %d rows: %s", len(rows.Rows), failed.Message)
}

// readStart reads everything before the first row.
func (r *Rows) readStart(dec *json.Decoder) error {
	if err := expect(dec, "{"); err != nil {
		return err
	}
	for {
		name, err := dec.Token()
		switch {
		case err == nil && name == "rows":
			return expect(dec, "[")
		case err == nil && name == "columns":
			err = r.readColumns(dec)
		case err == nil && name == "notices":
			err = r.readNotices(dec)
		default:
			return fmt.Errorf("the response has %v instead of rows; is this the address of the admin API?", name)
		}
		if err != nil {
			return fmt.Errorf("the response is not JSON: %w", err)
		}
	}
}

func (r *Rows) readColumns(dec *json.Decoder) error {
	var columns []struct{ Name string }
	err := dec.Decode(&columns)
	for _, c := range columns {
		r.Columns = append(r.Columns, c.Name)
	}
	return err
}

func (r *Rows) readNotices(dec *json.Decoder) error {
	var notices []struct{ Message string }
	err := dec.Decode(&notices)
	for _, n := range notices {
		r.Notices = append(r.Notices, n.Message)
	}
	return err
}

func readRow(dec *json.Decoder) (row Row, err error) {
	if err := expect(dec, "{"); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the response is not JSON: %w", err)
		}
		cell := Cell{Name: fmt.Sprint(name)}
		if err := dec.Decode(&cell.Value); err != nil {
			return nil, fmt.Errorf("the response is not JSON: %w", err)
		}
		row = append(row, cell)
	}
	return row, expect(dec, "}")
}

// expect reads the given tokens.
func expect(dec *json.Decoder, tokens ...string) error {
	for _, want := range tokens {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("the response is incomplete: %w", err)
		}
		if fmt.Sprint(token) != want {
			return fmt.Errorf("the response has %v instead of %s; is this the address of the admin API?", token, want)
		}
	}
	return nil
}

// note adds a row. A column that earlier rows lack is inserted behind its predecessor in this
// row.
func (r *Rows) note(row Row) {
	r.Rows = append(r.Rows, row)
	at := 0
	for _, c := range row {
		if i := slices.Index(r.Columns, c.Name); i >= 0 {
			at = i + 1
			continue
		}
		r.Columns = slices.Insert(r.Columns, at, c.Name)
		at++
	}
}
