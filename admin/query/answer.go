package query

import (
	"context"
	"fmt"
	"io"
	"time"
)

// DeadlineWriter is a writer whose writes fail after a deadline. Answers are written to one so
// that a client that does not read cannot occupy the slot of a query.
type DeadlineWriter interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// writeGrace is how long an answer may be written after the query has ended.
const writeGrace = time.Second

// Options say how an answer is written.
type Options struct {
	// BigNumbersAsText writes u64 as text, for readers whose numbers end at 2^53.
	BigNumbersAsText bool
	// Strong reads the tables of partitions linearizably: everything acknowledged before
	// the query began is shown. Without it an answer may be as old as the election
	// time-out.
	Strong bool
	// Columns writes "columns":[{"name","type"},…] before the rows, in which those that are
	// NULL are missing. Computed columns have no type.
	Columns bool
}

// Written is what was written of an answer.
type Written struct {
	Rows  int
	Bytes int
	Stats Stats
}

// answerBuffer is how much of an answer is held back: a query that fails before so
// much is there can still be answered with its error alone.
const answerBuffer = 64 << 10

// WriteJSON answers a query with {"rows":[…]}, with "columns" before it if that is wanted, written to w as it comes. Without a byte
// written, the error is all there is to say. With some, the document was ended with
// "error" beside "rows", so that a reader of the whole sees why it is incomplete. If w is a
// DeadlineWriter, writing ends a second after the time that queries may take.
func (e *Engine) WriteJSON(ctx context.Context, text string, o Options, w io.Writer) (Written, error) {
	a := &answer{to: w, max: e.cfg.MaxBytes, timeout: e.cfg.Timeout + writeGrace, rows: rowWriter{bigText: o.BigNumbersAsText}, header: o.Columns}
	stats, err := e.query(ctx, text, o.Strong, a)
	a.written.Stats = stats
	if err == nil {
		a.buf = append(a.buf, "]}\n"...)
		return a.written, a.flush()
	}
	if a.written.Bytes > 0 && ctx.Err() == nil {
		a.buf = append(append(append(a.buf[:a.whole], `],"error":{"message":`...), appendString(nil, []byte(err.Error()))...), "}}\n"...)
		_ = a.flush() // the reader has gone if this fails
	}
	return a.written, err
}

// answer is the Rows of an answer as JSON.
type answer struct {
	to      io.Writer
	buf     []byte
	whole   int // end of the last whole row in buf
	max     int
	rows    rowWriter
	header  bool // tell the columns first
	timeout time.Duration
	written Written
}

// Columns implements Rows.
func (a *answer) Columns(names []string, types []Type) error {
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
	a.buf = append(a.buf, `"rows":[`...)
	a.whole = len(a.buf)
	return nil
}

// Row implements Rows.
func (a *answer) Row(r Row) error {
	if a.written.Rows > 0 {
		a.buf = append(a.buf, ',')
	}
	a.buf = a.rows.append(a.buf, r)
	if a.written.Bytes+len(a.buf) > a.max {
		return &Error{Message: fmt.Sprintf("the answer is larger than %d bytes (admin.query-engine.max-bytes)", a.max),
			Suggestion: "ask for fewer columns or rows"}
	}
	a.written.Rows++
	a.whole = len(a.buf)
	if len(a.buf) < answerBuffer {
		return nil
	}
	return a.flush()
}

// flush writes what is held back.
func (a *answer) flush() error {
	n, err := a.to.Write(a.buf)
	a.written.Bytes += n
	a.buf, a.whole = a.buf[:0], 0
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
