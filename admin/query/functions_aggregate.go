package query

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"modernc.org/sqlite"

	"platform/admin/rest"
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

// maxQuantileNumbers limits how many numbers the quantiles of a query hold at a time, 16 MiB: they do not count for the
// heap limit of SQLite.
const maxQuantileNumbers = 2 << 20

// quantile computes a quantile of the numbers of a group, interpolated between the two nearest ones like
// PERCENTILE_CONT of standard SQL. Without an argument for the fraction it is the median.
type quantile struct {
	session  *session
	fraction float64
	numbers  []float64
}

// Step implements sqlite.AggregateFunction.
func (q *quantile) Step(_ *sqlite.FunctionContext, args []driver.Value) error {
	if len(args) > 1 {
		fraction, ok := numberOf(args[1])
		if !ok || fraction < 0 || fraction > 1 {
			return q.session.fail(&Error{Message: "a percentile is a number from 0 to 1, such as 0.99"})
		}
		q.fraction = fraction
	}
	if args[0] == nil {
		return nil
	}
	number, ok := numberOf(args[0])
	if !ok {
		return q.session.fail(&Error{Message: rest.Shorten(stringOf(args[0])) + " is not a number"})
	}
	if q.session.quantileNumbers == maxQuantileNumbers {
		return q.session.fail(&Error{Message: fmt.Sprintf("the medians and percentiles of a query can have at most %d numbers: add conditions", maxQuantileNumbers)})
	}
	q.session.quantileNumbers++
	q.numbers = append(q.numbers, number)
	return nil
}

// WindowInverse implements sqlite.AggregateFunction.
func (q *quantile) WindowInverse(_ *sqlite.FunctionContext, args []driver.Value) error {
	number, ok := numberOf(args[0])
	if i := slices.Index(q.numbers, number); ok && i >= 0 {
		q.numbers = slices.Delete(q.numbers, i, i+1)
		q.session.quantileNumbers--
	}
	return nil
}

// WindowValue implements sqlite.AggregateFunction.
func (q *quantile) WindowValue(*sqlite.FunctionContext) (driver.Value, error) {
	if len(q.numbers) == 0 {
		return nil, nil
	}
	slices.Sort(q.numbers)
	position := q.fraction * float64(len(q.numbers)-1)
	below := int(position)
	above := min(below+1, len(q.numbers)-1)
	return q.numbers[below] + (position-float64(below))*(q.numbers[above]-q.numbers[below]), nil
}

// Final implements sqlite.AggregateFunction.
func (q *quantile) Final(*sqlite.FunctionContext) {
	q.session.quantileNumbers -= len(q.numbers)
	q.numbers = nil
}

// quantiles are the functions that compute quantiles, with their numbers of arguments. The names are those of DataFusion,
// where some are approximate.
var quantiles = map[string]int32{"median": 1, "approx_median": 1, "approx_percentile_cont": 2, "percentile_cont": 2}

func (s *session) registerAggregates(d *sqlite.Driver) error {
	makers := map[string]*sqlite.FunctionImpl{}
	for name, last := range map[string]bool{firstOf: false, lastOf: true} {
		makers[name] = &sqlite.FunctionImpl{NArgs: 1, MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) {
			return &edge{last: last}, nil
		}}
	}
	for name, args := range quantiles {
		makers[name] = &sqlite.FunctionImpl{NArgs: args, MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) {
			return &quantile{session: s, fraction: 0.5}, nil
		}}
	}
	for name, impl := range makers {
		if err := d.RegisterFunction(name, impl); err != nil {
			return fmt.Errorf("register the aggregate %s: %w", name, err)
		}
	}
	return nil
}
