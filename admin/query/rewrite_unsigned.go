package query

import (
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Functions that convert partition keys as they are stored to text that is sorted like the keys, and
// back.
const (
	orderFunction = "unsigned_order"
	valueFunction = "unsigned_value"
)

// unsigned rewrites order comparisons, ORDER BY, MIN and MAX of partition keys. They use all 64 bits,
// and SQLite has signed integers only: it would sort the upper half of the keys below the others.
func (r *rewriter) unsigned() {
	compound := slices.ContainsFunc(r.tokens, func(t token) bool { return t.is("union", "intersect", "except") })
	for i := 0; r.more(i); i++ {
		if !r.keys[strings.ToLower(r.at(i).name())] || r.at(i+1).is(".", "(") {
			continue
		}
		from, to := r.before(i+1), i+1
		switch {
		case r.at(from - 1).is(arithmeticSigns...):
		case r.at(to).is("<", "<=", ">", ">="):
			r.ordered(to+1, r.operandEnd(to+1))
			i += r.ordered(from, to)
		case r.at(from-1).is("<", "<=", ">", ">=") && !r.at(to).is(arithmeticSigns...):
			i += r.ordered(from, to)
			i += r.ordered(r.operandStart(from-1), from-1)
		case r.at(to).is("between"), r.at(to).is("not") && r.at(to+1).is("between"):
			i += r.between(from, to)
		case r.at(from-1).is("(") && r.at(from-2).is("max", "min") && r.at(to).is(")"):
			i += r.extreme(from, to)
		case r.sorts(from, to) && !compound: // a compound SELECT is sorted by result columns only
			i += r.ordered(from, to)
		}
	}
}

// arithmeticSigns join operands more tightly than a comparison.
var arithmeticSigns = append([]string{"+", "-", "&", "|", "<<", ">>"}, factors...)

// operandEnd returns the end of the operand of a comparison that starts at i.
func (r *rewriter) operandEnd(i int) int {
	end := r.behind(i)
	for r.at(end).is(arithmeticSigns...) && r.behind(end+1) > end+1 {
		end = r.behind(end + 1)
	}
	return end
}

// operandStart returns the start of the operand of a comparison that ends before i.
func (r *rewriter) operandStart(i int) int {
	start := r.before(i)
	for r.at(start - 1).is(arithmeticSigns...) {
		before := r.left(start - 1)
		if start--; before == start {
			break // a sign
		}
		start = before
	}
	return start
}

// ordered applies the function to the operand in [from, to), and returns how many tokens that adds.
func (r *rewriter) ordered(from, to int) int {
	at := r.at(from).at
	operand := slices.Clone(r.tokens[from:to])
	if r.at(from).is("-") { // a negative number, rather than a key as it is stored
		operand = slices.Concat(synthetic(at, "CAST", "("), operand, synthetic(at, "AS", "REAL", ")"))
	}
	call := slices.Concat(synthetic(at, orderFunction, "("), operand, synthetic(at, ")"))
	r.replace(from, to, call...)
	return len(call) - (to - from)
}

// between rewrites the BETWEEN whose first operand is in [from, to), and returns how many tokens that
// adds to this one.
func (r *rewriter) between(from, to int) int {
	least := to + 1
	if r.at(to).is("not") {
		least++
	}
	and := r.operandEnd(least)
	if !r.at(and).is("and") {
		return 0
	}
	r.ordered(and+1, r.operandEnd(and+1))
	r.ordered(least, and)
	return r.ordered(from, to)
}

// extreme rewrites the MIN or MAX of the column in [from, to), and returns how many tokens that adds up
// to the end of the column.
func (r *rewriter) extreme(from, to int) int {
	end := to + 1
	for r.at(end).is("filter", "over") {
		if end += 2; r.at(end - 1).is("(") {
			end = r.closing(end-1) + 1
		}
	}
	call := r.at(from - 2)
	r.replace(end, end, token{punct, ")", call.at})
	added := r.ordered(from, to)
	r.replace(from-2, from-2, synthetic(call.at, valueFunction, "(")...)
	return added + 2
}

// sorts reports whether the operand in [from, to) is a term of ORDER BY.
func (r *rewriter) sorts(from, to int) bool {
	if t := r.at(to); to < len(r.tokens) && !t.is(",", ")", "asc", "desc", "nulls", "limit", "offset", "rows", "range", "groups") {
		return false
	}
	if !r.at(from-1).is(",", "by") {
		return false
	}
	depth := 0
	for i := from - 1; i >= 0 && depth <= 0; i-- {
		t := r.tokens[i]
		depth += nesting(t)
		switch {
		case depth != 0:
		case t.is("by"):
			return r.at(i - 1).is("order")
		case t.is("select", "values", "where", "having"):
			return false
		}
	}
	return false
}

// keyText converts a number to text that is sorted like it among partition keys, which are their
// decimal digits. It implements orderFunction.
func keyText(_ *session, args []driver.Value) (driver.Value, error) {
	number := args[0]
	if text, isText := number.(string); isText { // SQLite converts it where it is compared with a number
		text = strings.TrimSpace(text)
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			number = int64(n)
		} else if f, err := strconv.ParseFloat(text, 64); err == nil {
			number = f
		}
	}
	switch v := number.(type) {
	case int64:
		return fmt.Sprintf("%020d", uint64(v)), nil
	case float64:
		switch whole := math.Floor(v); {
		case v < 0:
			return "", nil // below all
		case v >= 1<<64:
			return "~", nil // above all
		case v != whole:
			return fmt.Sprintf("%020d+", uint64(whole)), nil // between two
		default:
			return fmt.Sprintf("%020d", uint64(whole)), nil
		}
	}
	return "~", nil // SQLite sorts what is no number above all
}

// storedKey is the reverse of keyText. It implements valueFunction.
func storedKey(_ *session, args []driver.Value) (driver.Value, error) {
	n, err := strconv.ParseUint(stringOf(args[0]), 10, 64)
	return int64(n), err
}
