package query

import (
	"context"
	"iter"
	"strings"

	"github.com/zeebo/xxh3"
	"modernc.org/sqlite/vtab"
)

// Column is a column of a system table.
type Column struct {
	Name        string `json:"name"`
	Type        Type   `json:"type"`
	Description string `json:"description"`
}

// Table is a system table.
type Table struct {
	Schema      string   `json:"schema"` // public or information_schema
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Columns     []Column `json:"columns"`

	// fields say which columns conditions can be carried out on at the source, by
	// column.
	fields []field
	// cost is what reading the table costs with the conditions of a selection.
	cost func(*selection) (cost float64, rows int64)
	// open starts reading.
	open func(*session, *selection) vtab.Cursor
}

// The schemas of tables.
const (
	schemaPublic      = "public"
	schemaInformation = "information_schema"
)

// declaration is the table as SQLite is told it.
func (t *Table) declaration() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE x(")
	for i, c := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(c.Name) + " " + declared[c.Type])
	}
	b.WriteString(")")
	return b.String()
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// column is a column of a table whose rows are R.
type column[R any] struct {
	name  string
	typ   Type
	about string
	value func(*R) value
	field field // what conditions on it select, if anything; or tellsAhead
	heavy bool  // needs more of a row than its head
}

// source is where the rows of a table come from.
type source[R any] struct {
	// pages yields rows, in slices that are valid until the next one. whole says that
	// heavy columns are used.
	pages func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]R, error]
	// identity are the bytes that tell a row from all others of the table.
	identity func(*R, []byte) []byte
	cost     func(*selection) (float64, int64)
}

// define makes a table of its columns and its source.
func define[R any](name, about string, src source[R], columns []column[R]) *Table {
	t := &Table{Schema: schemaPublic, Name: name, Description: about, cost: src.cost}
	values := make([]func(*R) value, len(columns))
	var heavy, ahead uint64
	for i, c := range columns {
		t.Columns = append(t.Columns, Column{c.name, c.typ, c.about})
		t.fields = append(t.fields, c.field)
		values[i] = c.value
		if c.heavy {
			heavy |= columnBit(i)
		}
		if c.field == tellsAhead {
			ahead |= columnBit(i)
		}
	}
	if t.cost == nil {
		t.cost = func(*selection) (float64, int64) { return 1000, 100 }
	}
	t.open = func(s *session, sel *selection) vtab.Cursor {
		sel.whole, sel.ahead = sel.used&heavy != 0, sel.used&ahead != 0
		return &cursor[R]{session: s, src: &src, values: values}
	}
	return t
}

// columnBit is a column's bit in the set of used ones; the last bit stands for all
// columns from 63 on.
func columnBit(i int) uint64 { return 1 << min(i, 63) }

// fixed is the source of a table that is read at once.
func fixed[R any](rows func(context.Context, *session) ([]R, error), identity func(*R, []byte) []byte) source[R] {
	return source[R]{
		pages: func(ctx context.Context, s *session, _ *selection) iter.Seq2[[]R, error] {
			return func(yield func([]R, error) bool) {
				all, err := rows(ctx, s)
				s.stats.Read += len(all)
				yield(all, err)
			}
		},
		identity: identity,
	}
}

// rowid is a number that stays with a row while a query runs.
func rowid(identity []byte) int64 { return int64(xxh3.Hash(identity)) }
