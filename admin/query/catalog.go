package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// catalog contains all system tables.
type catalog struct {
	tables []*Table // sorted
}

func newCatalog() *catalog {
	c := &catalog{tables: slices.Concat(
		[]*Table{
			sysInvocation(), sysInvocationStatus(), sysInvocationState(), sysJournal(), sysJournalEvents(),
			sysAwakeable(), stateTable(), sysInbox(), sysKeyedServiceStatus(), sysLocks(), sysPromise(), sysService(), sysDeployment(), sysJob(), sysAudit(), sysFailureGroup(),
		},
		flowTables(), clusterTables(), subscriptionTables(),
	)}
	c.tables = append(c.tables, informationTables(c)...)
	slices.SortFunc(c.tables, func(a, b *Table) int {
		return -cmp.Or(cmp.Compare(a.Schema, b.Schema), -cmp.Compare(a.Name, b.Name))
	})
	return c
}

func (c *catalog) find(schema, name string) *Table {
	for _, t := range c.tables {
		if t.Schema == schema && strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return nil
}

// known reports whether any schema has a table of that name.
func (c *catalog) known(name string) bool {
	return c.find(schemaPublic, name) != nil || c.find(schemaInformation, name) != nil
}

// informationTables describe all tables, including themselves.
func informationTables(c *catalog) []*Table {
	type entry struct {
		*Table
		at int
	}
	tables := define("tables", "All tables.", fixed(func(context.Context, *session) ([]*Table, error) { return c.tables, nil },
		func(t **Table, b []byte) []byte { return append(b, (*t).Schema+"."+(*t).Name...) }),
		[]column[*Table]{
			{"table_catalog", Text, "always platform", func(**Table) value { return catalogName }, noField, false},
			{"table_schema", Text, "public or information_schema", func(t **Table) value { return (*t).Schema }, noField, false},
			{"table_name", Text, "name", func(t **Table) value { return (*t).Name }, noField, false},
			{"table_type", Text, "always BASE TABLE", func(**Table) value { return "BASE TABLE" }, noField, false},
			{"description", Text, "description", func(t **Table) value { return (*t).Description }, noField, false},
		})
	columns := define("columns", "The columns of all tables.", fixed(func(context.Context, *session) ([]entry, error) {
		var all []entry
		for _, t := range c.tables {
			for i := range t.Columns {
				all = append(all, entry{t, i})
			}
		}
		return all, nil
	}, func(e *entry, b []byte) []byte { return append(b, e.Schema+"."+e.Name+"."+e.Columns[e.at].Name...) }),
		[]column[entry]{
			{"table_catalog", Text, "always platform", func(*entry) value { return catalogName }, noField, false},
			{"table_schema", Text, "public or information_schema", func(e *entry) value { return e.Schema }, noField, false},
			{"table_name", Text, "table", func(e *entry) value { return e.Name }, noField, false},
			{"column_name", Text, "name", func(e *entry) value { return e.Columns[e.at].Name }, noField, false},
			{"ordinal_position", U32, "position in the table, from 0", func(e *entry) value { return number(e.at) }, noField, false},
			{"is_nullable", Text, "always YES", func(*entry) value { return "YES" }, noField, false},
			{"data_type", Text, "type", func(e *entry) value { return string(e.Columns[e.at].Type) }, noField, false},
			{"description", Text, "description", func(e *entry) value { return e.Columns[e.at].Description }, noField, false},
		})
	tables.Schema, columns.Schema = schemaInformation, schemaInformation
	tables.ownership, columns.ownership = ofEveryone, ofEveryone
	return []*Table{tables, columns}
}

// catalogName is the catalog by which queries may qualify tables. Statements written for other
// servers use otherCatalog.
const (
	catalogName  = "platform"
	otherCatalog = "restate"
)
