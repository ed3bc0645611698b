package query

import "strings"

// item is the expression of a result column, without its alias. A star represents any number of
// columns.
type item struct {
	from, to int
	star     bool
}

// items returns the result columns of the query.
func (r *rewriter) items() []item {
	if r.wrapped > 0 {
		return r.itemsOf(r.wrapped)
	}
	at, depth := 0, 0
	for ; at < len(r.tokens); at++ {
		if depth += nesting(r.tokens[at]); depth == 0 && r.tokens[at].is("select") {
			break
		}
	}
	return r.itemsOf(at)
}

// itemsOf returns the result columns of the SELECT at a position.
func (r *rewriter) itemsOf(at int) []item {
	at++
	if r.at(at).is("distinct", "all") {
		at++
	}
	var out []item
	depth := 0
	for begin := at; ; at++ {
		t := r.at(at)
		depth += nesting(t)
		distinctFrom := t.is("from") && r.at(at-1).is("distinct")
		end := at >= len(r.tokens) || depth < 0 || depth == 0 && !distinctFrom && t.is("from", "where", "group", "having", "window", "order", "limit", "union", "intersect", "except")
		if !end && (depth != 0 || !t.is(",")) {
			continue
		}
		if r.at(at-1).is("*") && (begin == at-1 || r.at(at-2).is(".")) {
			out = append(out, item{begin, at, true})
		} else {
			out = append(out, r.withoutAlias(begin, at))
		}
		if end {
			return out
		}
		begin = at + 1
	}
}

// withoutAlias returns the expression in [from, to).
func (r *rewriter) withoutAlias(from, to int) item {
	switch {
	case to-from > 2 && r.at(to-2).is("as"):
		to -= 2
	case to-from > 1 && r.at(to-1).name() != "" && !r.at(to-1).is("end", "null", "true", "false") && r.endsOperand(to-2):
		to--
	}
	for to-from > 2 && r.at(from).is("(") && r.closing(from) == to-1 && !r.at(from+1).is("select", "with", "values") {
		from, to = from+1, to-1
	}
	return item{from: from, to: to}
}

// endsOperand reports whether the token at i ends an operand, so that a name after it is an alias.
func (r *rewriter) endsOperand(i int) bool {
	t := r.at(i)
	return t.kind != punct && !keyword(t.text) && !t.is("null", "true", "false") || t.is(")") || t.is("null", "true", "false", "end")
}

// computedTypes are the types of result columns that are derived from their expressions: head from
// the first column to a star, tail from a star to the last column. Types that cannot be derived are
// empty.
type computedTypes struct{ head, tail []Type }

// of returns the type of column i of a result with the given number of columns.
func (c computedTypes) of(i, columns int) Type {
	switch back := columns - i; {
	case i < len(c.head):
		return c.head[i]
	case back <= len(c.tail):
		return c.tail[len(c.tail)-back]
	}
	return ""
}

func (r *rewriter) types(catalog *catalog) (types computedTypes) {
	durations := catalog.named(Duration)
	list := &types.head
	for _, it := range r.items() {
		switch {
		case it.star:
			types.tail = nil
			list = &types.tail
		case r.isCondition(it):
			*list = append(*list, Bool)
		case r.isTime(it.from, it.to) && !r.at(it.from).is("case"):
			*list = append(*list, Timestamp)
		case r.isExtreme(it, durations):
			*list = append(*list, Duration)
		case r.yieldsKey(it):
			*list = append(*list, U64)
		default:
			*list = append(*list, "")
		}
	}
	return types
}

// yieldsKey reports whether an expression is a partition key, or a function returns one.
func (r *rewriter) yieldsKey(it item) bool {
	from, to := it.from, it.to
	if r.isKey(from, to) {
		return true
	}
	end := r.closing(from + 1)
	if end < 0 || !r.at(from+1).is("(") || end != to-1 && !r.at(end+1).is("over", "filter") {
		return false
	}
	switch {
	case r.at(from).is(valueFunction):
		return true
	case r.at(from).is("lag", "lead", "first_value", "last_value", "nth_value", "nullif", firstOf, lastOf):
		return r.isKey(from+2, r.behind(from+2))
	}
	return false
}

// conditions are the functions that return a boolean.
var conditions = map[string]bool{
	"starts_with": true, "ends_with": true, "regexp_like": true, "array_contains": true, "array_has": true, "exists": true,
}

// isCondition reports whether an expression is a comparison, or combines comparisons.
func (r *rewriter) isCondition(it item) bool {
	if it.to-it.from == 1 {
		return r.at(it.from).is("true", "false")
	}
	if conditions[strings.ToLower(r.at(it.from).name())] && r.closing(it.from+1) == it.to-1 {
		return true
	}
	depth, cases := 0, 0
	for i := it.from; i < it.to; i++ {
		t := r.tokens[i]
		depth += nesting(t)
		switch {
		case depth != 0:
		case t.is("case"):
			cases++
		case t.is("end"):
			cases--
		case cases == 0 && t.is("=", "==", "<>", "!=", "<", "<=", ">", ">=", "is", "not", "and", "or", "like", "glob", "regexp", "in", "between", "match"):
			return true
		}
	}
	return false
}

// isExtreme reports whether an expression is the minimum, maximum or first value of one of the
// given columns, or of a CASE whose THEN is such a column.
func (r *rewriter) isExtreme(it item, columns map[string]bool) bool {
	if !r.at(it.from).is("min", "max", "greatest", "least", "coalesce", firstOf) || r.closing(it.from+1) != it.to-1 {
		return false
	}
	from, to := it.from+2, it.to-1
	if r.at(from).is("case") && r.at(to-1).is("end") {
		then := from
		for then < to && !r.tokens[then].is("then") {
			then++
		}
		from, to = then+1, to-1
	}
	if to-from == 3 && r.at(from+1).is(".") {
		from += 2
	}
	return to-from == 1 && columns[strings.ToLower(r.at(from).name())]
}
