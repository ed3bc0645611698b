package query

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// DeadlineWriter is a writer whose writes fail after a deadline. Results are written to one so
// that a client that does not read cannot occupy the slot of a query.
type DeadlineWriter interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// writeGrace is how long writing may continue after the query has ended.
const writeGrace = time.Second

// Options controls how a result is written.
type Options struct {
	// BigNumbersAsText writes u64 as text, for clients whose numbers are exact only up to 2^53.
	BigNumbersAsText bool
	// Strong reads the tables of partitions linearizably: everything acknowledged before the
	// query began is visible. Without it the result may be stale by up to the election timeout.
	Strong bool
	// Columns writes "columns":[{"name","type"},…] before the rows, whose NULL values are
	// omitted. Computed columns have no type.
	Columns bool
	// Stats writes "stats":{…} after the rows. Arrow streams have none.
	Stats bool
	// HidePayloads makes the columns with payloads NULL, HideAudit rejects queries of the audit
	// log.
	HidePayloads, HideAudit bool
	// Limits restricts the rows that are read.
	Limits Limits
}

// Written describes how much of a result was written.
type Written struct {
	Rows  int
	Bytes int
	Stats Stats
}

// resultBuffer is the size of the buffer of a result, in bytes. A query that fails before the
// buffer is full responds with the error only.
const resultBuffer = 64 << 10

// WriteJSON runs a query and streams {"rows":[…]} to w, preceded by "columns" if requested and by
// "notices" if there are any. If it fails before anything was written, it writes nothing and returns
// the error. Otherwise it ends the document with "error" beside "rows", so that clients can see that
// it is incomplete. If w is a DeadlineWriter, writing ends a second after the query timeout.
func (e *Engine) WriteJSON(ctx context.Context, text string, o Options, w io.Writer) (Written, error) {
	a := &jsonResult{to: w, max: e.cfg.MaxBytes, timeout: e.cfg.Timeout + writeGrace, rows: rowWriter{bigText: o.BigNumbersAsText}, header: o.Columns}
	stats, err := e.query(ctx, text, o, a)
	a.written.Stats = stats
	if err == nil {
		a.buf = append(a.buf, ']')
		if o.Stats {
			a.buf = fmt.Appendf(a.buf, `,"stats":{"scans":%d,"partitions":%d,"pages":%d,"rows_read":%d}`, stats.Scans, stats.Partitions, stats.Pages, stats.Read)
		}
		a.buf = append(a.buf, "}\n"...)
		return a.written, a.flush()
	}
	if a.written.Bytes > 0 && ctx.Err() == nil {
		a.buf = append(append(append(a.buf[:a.whole], `],"error":{"message":`...), appendString(nil, []byte(err.Error()))...), "}}\n"...)
		_ = a.flush() // fails if the client has disconnected
	}
	return a.written, err
}

// jsonResult implements Rows and writes JSON.
type jsonResult struct {
	to      io.Writer
	buf     []byte
	whole   int // end of the last complete row in buf
	max     int
	rows    rowWriter
	header  bool // write the columns first
	timeout time.Duration
	written Written
}

// Columns implements Rows.
func (a *jsonResult) Columns(names []string, types []Type, notices []Notice) error {
	if w, ok := a.to.(DeadlineWriter); ok {
		if err := w.SetWriteDeadline(time.Now().Add(a.timeout)); err != nil {
			return fmt.Errorf("bound the time of writing: %w", err)
		}
	}
	a.rows.columns(names, types)
	a.buf = append(a.buf, '{')
	if a.header {
		a.buf = append(a.buf, `"columns":[`...)
		for i, name := range names {
			if i > 0 {
				a.buf = append(a.buf, ',')
			}
			a.buf = appendString(append(a.buf, `{"name":`...), []byte(name))
			if types[i] != "" {
				a.buf = appendString(append(a.buf, `,"type":`...), []byte(types[i]))
			}
			a.buf = append(a.buf, '}')
		}
		a.buf = append(a.buf, "],"...)
	}
	if len(notices) > 0 {
		encoded, err := json.Marshal(notices)
		if err != nil {
			return fmt.Errorf("encode notices: %w", err)
		}
		a.buf = append(append(append(a.buf, `"notices":`...), encoded...), ',')
	}
	a.buf = append(a.buf, `"rows":[`...)
	a.whole = len(a.buf)
	return nil
}

// Row implements Rows.
func (a *jsonResult) Row(r Row) error {
	if a.written.Rows > 0 {
		a.buf = append(a.buf, ',')
	}
	a.buf = a.rows.append(a.buf, r)
	if a.written.Bytes+len(a.buf) > a.max {
		return tooLarge(a.max)
	}
	a.written.Rows++
	a.whole = len(a.buf)
	if len(a.buf) < resultBuffer {
		return nil
	}
	return a.flush()
}

func tooLarge(limit int) error {
	return &Error{Message: fmt.Sprintf("the result is larger than %d bytes (admin.query-engine.max-bytes)", limit),
		Suggestion: "select fewer columns or rows"}
}

// flush writes the buffer.
func (a *jsonResult) flush() error {
	n, err := a.to.Write(a.buf)
	a.written.Bytes += n
	a.buf, a.whole = a.buf[:0], 0
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
