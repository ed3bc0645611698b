package query

import (
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// Aggregates that SQLite has only as window functions. Calls of FIRST_VALUE and LAST_VALUE without
// OVER are rewritten to them.
const (
	firstOf = "first_of"
	lastOf  = "last_of"
)

var errWindow = errors.New("FIRST_VALUE and LAST_VALUE without OVER are not window functions")

// edge computes the first or the last value of a group.
type edge struct {
	last  bool
	rows  int
	value driver.Value
}

// Step implements sqlite.AggregateFunction.
func (e *edge) Step(_ *sqlite.FunctionContext, args []driver.Value) error {
	if e.rows == 0 || e.last {
		e.value = args[0]
	}
	e.rows++
	return nil
}

// WindowInverse implements sqlite.AggregateFunction.
func (e *edge) WindowInverse(*sqlite.FunctionContext, []driver.Value) error { return errWindow }

// WindowValue implements sqlite.AggregateFunction.
func (e *edge) WindowValue(*sqlite.FunctionContext) (driver.Value, error) { return e.value, nil }

// Final implements sqlite.AggregateFunction.
func (e *edge) Final(*sqlite.FunctionContext) {}

func registerAggregates(d *sqlite.Driver) error {
	for name, last := range map[string]bool{firstOf: false, lastOf: true} {
		err := d.RegisterFunction(name, &sqlite.FunctionImpl{
			NArgs:         1,
			MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) { return &edge{last: last}, nil },
		})
		if err != nil {
			return err
		}
	}
	return nil
}
