package query

import (
	"fmt"
	"iter"

	"modernc.org/sqlite/vtab"
)

// module makes the tables of a session available to SQLite.
type module struct{ session *session }

// Create implements vtab.Module. SQLite passes the schema as the second argument and
// the table as the third.
func (m module) Create(ctx vtab.Context, args []string) (vtab.Table, error) {
	schema, name := args[1], args[2]
	if schema != schemaInformation {
		schema = schemaPublic
	}
	t := m.session.engine.catalog.find(schema, name)
	if t == nil {
		return nil, fmt.Errorf("there is no system table %s", name)
	}
	return &virtual{m.session, t}, ctx.Declare(t.declaration())
}

// Connect implements vtab.Module.
func (m module) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return m.Create(ctx, args)
}

// virtual is a system table in a session.
type virtual struct {
	session *session
	*Table
}

// BestIndex implements vtab.Table: it selects the conditions that the source evaluates. SQLite
// evaluates all of them again.
func (t *virtual) BestIndex(info *vtab.IndexInfo) error {
	var p plan
	p.used = info.ColUsed
	for i := range info.Constraints {
		c := &info.Constraints[i]
		if !c.Usable || c.Column < 0 || t.session.collated || !t.fields[c.Column].takes(c.Op) {
			continue
		}
		c.ArgIndex = len(p.conditions)
		c.Omit = c.Op == vtab.OpMATCH // redundant: there is also an IN
		p.conditions = append(p.conditions, condition{column: c.Column, op: c.Op})
	}
	info.IdxStr = p.encode() + noteMark + t.note(&p)
	sel := t.selectionFor(&p, nil)
	info.EstimatedCost, info.EstimatedRows = t.cost(sel)
	return nil
}

// Open implements vtab.Table.
func (t *virtual) Open() (vtab.Cursor, error) { return &lazyCursor{t: t}, nil }

// Disconnect implements vtab.Table.
func (t *virtual) Disconnect() error { return nil }

// Destroy implements vtab.Table.
func (t *virtual) Destroy() error { return nil }

// lazyCursor is a cursor that creates a new cursor for each selection.
type lazyCursor struct {
	t *virtual
	vtab.Cursor
}

// Filter implements vtab.Cursor.
func (o *lazyCursor) Filter(idxNum int, idxStr string, vals []vtab.Value) error {
	if err := o.Close(); err != nil {
		return err
	}
	p, err := decodePlan(idxStr)
	if err != nil {
		return o.t.session.fail(err)
	}
	sel := o.t.selectionFor(&p, vals)
	if sel.matched {
		return o.t.session.fail(errMatch)
	}
	if err := o.t.reject(&o.t.session.limits); err != nil {
		return o.t.session.fail(err)
	}
	sel.narrow(&o.t.session.limits)
	o.Cursor = o.t.open(o.t.session, sel)
	return o.Cursor.(starter).start(sel)
}

// Close implements vtab.Cursor.
func (o *lazyCursor) Close() error {
	if o.Cursor == nil {
		return nil
	}
	return o.Cursor.Close()
}

// starter is a cursor of any row type.
type starter interface{ start(*selection) error }

// cursor iterates over the pages of a source.
type cursor[R any] struct {
	session  *session
	src      *source[R]
	values   []func(*R) value
	payloads []bool // which of them are payloads
	next     func() ([]R, error, bool)
	stop     func()
	page     []R
	at       int
	passed   int  // rows of earlier pages
	counts   bool // rows may be blank: no column is used
	key      []byte
}

func (c *cursor[R]) start(sel *selection) error {
	if sel.nothing {
		return nil
	}
	c.session.stats.Scans++
	c.counts = sel.used == 0 && !sel.rows
	c.next, c.stop = iter.Pull2(c.src.pages(c.session.ctx, c.session, sel))
	return c.nextPage()
}

// nextPage advances to the next page that has rows.
func (c *cursor[R]) nextPage() error {
	for c.at, c.passed = 0, c.passed+len(c.page); ; {
		if c.session.ctx.Err() != nil {
			return c.session.fail(c.session.ctx.Err())
		}
		if err := c.session.slice.check(c.session.ctx); err != nil {
			return c.session.fail(err)
		}
		page, err, more := c.next()
		if err != nil {
			c.page = nil
			return c.session.fail(err)
		}
		if c.page = c.permitted(page); !more || len(c.page) > 0 {
			return nil
		}
	}
}

// permitted returns the rows of a page within the limits of the client.
func (c *cursor[R]) permitted(page []R) []R {
	limits := &c.session.limits
	if !limits.any() {
		return page
	}
	inside := page
	if c.src.owner != nil {
		inside = make([]R, 0, len(page)) // a copy, because the source may share its rows
		for i := range page {
			if limits.include(c.src.owner(&page[i])) {
				inside = append(inside, page[i])
			}
		}
	}
	c.session.stats.Read += len(inside)
	return inside
}

// Filter implements vtab.Cursor. It is not used: lazyCursor starts the cursor.
func (c *cursor[R]) Filter(int, string, []vtab.Value) error { return nil }

// Next implements vtab.Cursor.
func (c *cursor[R]) Next() error {
	if c.at++; c.at < len(c.page) {
		return nil
	}
	return c.nextPage()
}

// Eof implements vtab.Cursor.
func (c *cursor[R]) Eof() bool { return c.at >= len(c.page) }

// Column implements vtab.Cursor.
func (c *cursor[R]) Column(col int) (vtab.Value, error) {
	if c.payloads[col] && c.session.hidePayloads {
		return nil, nil
	}
	return c.values[col](&c.page[c.at]), nil
}

// Rowid implements vtab.Cursor.
func (c *cursor[R]) Rowid() (int64, error) {
	if c.counts {
		return int64(c.passed + c.at), nil
	}
	c.key = c.src.identity(&c.page[c.at], c.key[:0])
	return rowid(c.key), nil
}

// Close implements vtab.Cursor.
func (c *cursor[R]) Close() error {
	if c.stop != nil {
		c.stop()
	}
	return nil
}
