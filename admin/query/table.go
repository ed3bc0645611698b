package query

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"modernc.org/sqlite/vtab"
)

// Column is a column of a system table.
type Column struct {
	Name        string `json:"name"`
	Type        Type   `json:"type"`
	Description string `json:"description"`
	// Values lists all values of the column, if they are few; nil otherwise.
	Values []string `json:"values,omitempty"`
}

// Table is a system table.
type Table struct {
	Schema      string   `json:"schema"` // public or information_schema
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Columns     []Column `json:"columns"`

	// hidden has other names of columns, which follow the columns and are not part of *.
	hidden []Column
	// fields has the columns whose conditions the source can evaluate, by column.
	fields []field
	// payloads has the columns with payloads.
	payloads []bool
	// ownership determines which limits apply to the rows.
	ownership ownership
	// cost estimates the cost of reading the table with a selection.
	cost func(*selection) (cost float64, rows int64)
	// open starts reading.
	open func(*session, *selection) vtab.Cursor
}

// The schemas of tables.
const (
	schemaPublic      = "public"
	schemaInformation = "information_schema"
)

// declaration returns the CREATE TABLE statement for SQLite.
func (t *Table) declaration() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE x(")
	for i, c := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(c.Name) + " " + declared[c.Type])
	}
	for _, c := range t.hidden {
		b.WriteString(", " + quoteName(c.Name) + " " + declared[c.Type] + " HIDDEN")
	}
	b.WriteString(")")
	return b.String()
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// payloadColumns lists the columns with inputs, results and state, by table. It includes headers of
// inputs, which can contain credentials of the caller, and reasons of rejected promises, which are
// results of them. Messages of failed invocations and attempts are not payloads: operators need them.
var payloadColumns = map[string][]string{
	"state":       {"value", "value_utf8"},
	"sys_journal": {"raw", "entry_json", "entry_lite_json"},
	"sys_promise": {"completion_success_value", "completion_success_value_utf8", "completion_failure"},
}

// otherNames has columns that statements written for other servers know by another name.
var otherNames = map[string]string{"created_using_platform_version": "created_using_restate_version"}

// column is a column of a table with rows of type R.
type column[R any] struct {
	name  string
	typ   Type
	about string
	value func(*R) value
	field field // what conditions on it select by, if anything; or tellsAhead
	heavy bool  // needs a complete row
}

// source provides the rows of a table.
type source[R any] struct {
	// pages yields rows, in slices that are valid until the next one. whole is true if heavy
	// columns are used.
	pages func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]R, error]
	// identity returns the bytes that identify a row in the table.
	identity func(*R, []byte) []byte
	cost     func(*selection) (float64, int64)
	// owner returns what a row belongs to; see Table.ownership.
	owner     func(*R) owner
	ownership ownership
}

// define returns a table with columns and a source.
func define[R any](name, about string, src source[R], columns []column[R]) *Table {
	t := &Table{Schema: schemaPublic, Name: name, Description: about, cost: src.cost, ownership: src.ownership}
	all := slices.Clone(columns)
	for _, c := range columns {
		if other, has := otherNames[c.name]; has {
			c.name = other
			all = append(all, c)
		}
	}
	values := make([]func(*R) value, len(all))
	var heavy, ahead uint64
	for i, c := range all {
		described := Column{c.name, c.typ, c.about, knownValues[name][c.name]}
		if i < len(columns) {
			t.Columns = append(t.Columns, described)
		} else {
			t.hidden = append(t.hidden, described)
		}
		t.fields = append(t.fields, c.field)
		t.payloads = append(t.payloads, slices.Contains(payloadColumns[name], c.name))
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
		return &cursor[R]{session: s, src: &src, values: values, payloads: t.payloads}
	}
	return t
}

// columnBit returns the bit of a column in the set of used ones; the last bit represents all
// columns from 63 on.
func columnBit(i int) uint64 { return 1 << min(i, 63) }

// fixed returns the source of a table that is read in one step.
func fixed[R any](rows func(context.Context, *session) ([]R, error), identity func(*R, []byte) []byte) source[R] {
	return source[R]{
		pages: func(ctx context.Context, s *session, _ *selection) iter.Seq2[[]R, error] {
			return func(yield func([]R, error) bool) {
				all, err := rows(ctx, s)
				s.countRead(0, len(all))
				yield(all, err)
			}
		},
		identity: identity,
	}
}

// rowid returns a number that identifies a row during a query.
func rowid(identity []byte) int64 { return int64(xxh3.Hash(identity)) }
