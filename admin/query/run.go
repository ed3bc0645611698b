package query

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// Row is the current row of a result.
type Row struct{ s *statement }

// run runs a query.
func (s *session) run(q *rewritten, rows Rows) error {
	defer s.db.interruptWhen(s.ctx)()
	st, err := s.db.prepare(q.text)
	if err != nil {
		return s.explain(q, err)
	}
	defer st.close()
	if !st.readOnly() {
		return &Error{Message: notReading}
	}
	names, types := make([]string, len(st.columns)), make([]Type, len(st.columns))
	for i, c := range st.columns {
		names[i], types[i] = c.name, c.typ
		if c.typ == "" {
			types[i] = q.types.of(i, len(types))
		}
	}
	q.rename(names)
	if q.explains {
		return s.runExplain(q, st, rows)
	}
	if err := rows.Columns(names, types, q.notices); err != nil {
		return err
	}
	return s.pass(q, st, rows)
}

// runText runs another query in place of q.
func (s *session) runText(q *rewritten, text string, rows Rows) error {
	st, err := s.db.prepare(text)
	if err != nil {
		return s.explain(q, err)
	}
	defer st.close()
	names, types := make([]string, len(st.columns)), make([]Type, len(st.columns))
	for i, c := range st.columns {
		names[i], types[i] = c.name, c.typ
	}
	if err := rows.Columns(names, types, nil); err != nil {
		return err
	}
	return s.pass(q, st, rows)
}

// pass passes on the rows of a statement.
func (s *session) pass(q *rewritten, st *statement, rows Rows) error {
	for n := 0; ; n++ {
		more, err := st.step()
		if err != nil {
			return s.explain(q, err)
		}
		if s.ctx.Err() != nil {
			return s.engine.ended(s.ctx)
		}
		if !more {
			return nil
		}
		if n == s.engine.cfg.MaxRows {
			return &Error{Message: fmt.Sprintf(
				"the result has more than %d rows (admin.query-engine.max-rows): add conditions, or LIMIT and OFFSET", s.engine.cfg.MaxRows)}
		}
		if err := rows.Row(Row{st}); err != nil {
			return err
		}
	}
}

// ended returns why the context of a query has ended.
func (e *Engine) ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrTimeout) {
		return cause
	}
	return fmt.Errorf("%w: the limit is %s (admin.query-engine.timeout); conditions on id, service and key or status make it faster", ErrTimeout, e.cfg.Timeout)
}

// explain converts an error of SQLite to an error for users.
func (s *session) explain(q *rewritten, err error) error {
	if s.ctx.Err() != nil {
		return s.engine.ended(s.ctx)
	}
	if s.failure != nil {
		return s.failure
	}
	sql, ok := errors.AsType[*sqlError](err)
	if !ok {
		return err
	}
	switch sql.code {
	case sqlite3.SQLITE_NOMEM:
		return &Error{Message: fmt.Sprintf(
			"the query needs more than the memory limit of queries, %d MiB (admin.query-engine.memory-size): sort and group fewer or shorter rows", s.engine.cfg.MemoryLimit>>20)}
	case sqlite3.SQLITE_AUTH:
		return s.engine.denied(q, sql)
	case sqlite3.SQLITE_TOOBIG:
		return &Error{Message: fmt.Sprintf("a value, a row or the query itself is larger than the limit of %d MiB", maxValue>>20),
			Suggestion: "leave out columns with payloads or state; the admin API returns them whole"}
	}
	return s.engine.locate(q, sql)
}
