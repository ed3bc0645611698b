package query

import (
	"database/sql/driver"
	"fmt"
	"iter"
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

// unsigned rewrites what depends on the order of partition keys: comparisons, ORDER BY, MIN and MAX.
// Keys use all 64 bits, and SQLite has signed integers only: it would sort the upper half of the keys
// below the others.
func (r *rewriter) unsigned() {
	r.keyAliases()
	r.compounds()
	r.keyNumbers()
	for i := 0; r.more(i); i++ {
		if r.endsKey(i) {
			i += r.extreme(r.before(i+1), i+1)
		}
	}
	for i := 0; r.more(i); i++ {
		switch {
		case r.endsKey(i):
			i = r.compared(i, r.before(i+1), i+1)
		case r.at(i).is(valueFunction) && r.at(i+1).is("("):
			i = r.compared(i, i, r.closing(i+1)+1)
		}
	}
}

// endsKey reports whether the token at i is the name of a partition key, without the table before it.
func (r *rewriter) endsKey(i int) bool {
	return r.keys[strings.ToLower(r.at(i).name())] && !r.at(i+1).is(".", "(")
}

// keyAliases adds the aliases of partition keys to their names, unless a column or something else has the
// same name.
func (r *rewriter) keyAliases() {
	for found := true; found; { // an alias may precede the subquery that defines what it stands for
		found = false
		for name, key := range r.aliases() {
			if key && !r.keys[name] && !r.columns[name] {
				r.keys[name], found = true, true
			}
		}
	}
	for name, key := range r.aliases() {
		if !key && !r.columns[name] {
			delete(r.keys, name)
		}
	}
}

// aliases yields the names that stand for expressions, after AS or without it and in the lists of columns of
// common table expressions, and whether these are partition keys.
func (r *rewriter) aliases() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for i := 0; r.more(i); i++ {
			if r.at(i).is("(") && r.at(i-1).name() != "" && r.at(i-2).is("with", "recursive", ",") {
				if !r.listedAliases(i, yield) {
					return
				}
				continue
			}
			name, to := strings.ToLower(r.at(i+1).name()), i
			switch {
			case name == "":
				continue
			case r.at(i).is("as"):
			case r.endsOperand(i) && (i+2 == len(r.tokens) || r.at(i+2).is(",", "from", ")")) && !r.at(i+1).is("asc", "desc", "end", "isnull", "notnull"):
				to++
			default:
				continue
			}
			from := r.before(to)
			if r.at(from-2).is("cast") && r.at(from-1).is("(") { // a type
				continue
			}
			if !yield(name, r.isKey(from, to)) {
				return
			}
		}
	}
}

// listedAliases yields the names in the list at i, if they are those of the columns of a common table expression.
func (r *rewriter) listedAliases(i int, yield func(string, bool) bool) bool {
	end := r.closing(i)
	query := end + 1
	for r.at(query).is("as", "not", "materialized") {
		query++
	}
	if query == end+1 || !r.at(query).is("(") || !r.at(query+1).is("select") {
		return true
	}
	items := r.itemsOf(query + 1)
	for n, at := 0, i+1; at < end && n < len(items) && !items[n].star; n, at = n+1, at+2 {
		if name := strings.ToLower(r.at(at).name()); name != "" && !yield(name, r.isKey(items[n].from, items[n].to)) {
			return false
		}
	}
	return true
}

// keyNumbers replaces the numbers of result columns in ORDER BY, if these are partition keys, with
// their expressions.
func (r *rewriter) keyNumbers() {
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		if t.kind != num || !r.sorts(i, i+1) || r.opensWindow(i) {
			continue
		}
		n, err := strconv.Atoi(t.text)
		items := r.itemsOf(r.queryOf(i))
		if err != nil || n < 1 || n > len(items) || slices.ContainsFunc(items[:n], func(it item) bool { return it.star }) {
			continue
		}
		if it := items[n-1]; r.isKey(it.from, it.to) {
			r.replace(i, i+1, slices.Clone(r.tokens[it.from:it.to])...)
		}
	}
}

// opensWindow reports whether the term of ORDER BY at i is in parentheses that are no query, such as those of
// OVER, where a number is not that of a column.
func (r *rewriter) opensWindow(i int) bool { return !r.at(r.queryOf(i)).is("select", "values") }

// isKey reports whether the expression in [from, to) is a partition key, or the MIN or MAX of keys.
func (r *rewriter) isKey(from, to int) bool {
	switch {
	case to-from == 1 || to-from == 3 && r.at(from+1).is("."):
		return r.endsKey(to - 1)
	case from >= to || !r.at(to-1).is(")"):
		return false
	case r.at(from).is("("):
		return r.closing(from) == to-1 && r.isKey(from+1, to-1)
	case r.at(from).is("max", "min") && r.at(from+1).is("(") && r.closing(from+1) == to-1:
		if from += 2; r.at(from).is("distinct") {
			from++
		}
		return r.isKey(from, to-1)
	}
	return false
}

// orderSigns are the comparisons that depend on the order of numbers.
var orderSigns = []string{"<", "<=", ">", ">="}

// compared rewrites the comparison or ORDER BY of the partition key in [from, to), to which the token at
// i belongs. It returns the last token that needs no further rewriting.
func (r *rewriter) compared(i, from, to int) int {
	from, to = r.around(from, to)
	before := func(tokens int) int { return i + tokens + 2 } // the function and its parenthesis precede the key
	switch {
	case r.at(from-1).is(arithmeticSigns...) || r.at(to).is(arithmeticSigns...):
	case r.at(to).is(orderSigns...):
		r.ordered(to+1, r.operandEnd(to+1))
		r.ordered(from, to)
		return before(0)
	case r.at(from - 1).is(orderSigns...):
		r.ordered(from, to)
		return before(r.ordered(r.operandStart(from-1), from-1))
	case r.at(to).is("between"), r.at(to).is("not") && r.at(to+1).is("between"):
		if r.between(from, to) {
			return before(0)
		}
	case r.at(from - 1).is("between"):
		return r.bound(i, from-1)
	case r.at(from-1).is("and") && r.at(r.operandStart(from-1)-1).is("between"):
		return r.bound(i, r.operandStart(from-1)-1)
	case r.sorts(from, to):
		r.ordered(from, to)
		return before(0)
	case r.at(from-1).is("(", ",") && r.at(to).is(",", ")"):
		if added, ok := r.inRow(from, to); ok {
			return before(added)
		}
	}
	return i
}

// around returns the expression that consists of the one in [from, to) and parentheses, or is a subquery
// for it.
func (r *rewriter) around(from, to int) (begin, end int) {
	for {
		switch {
		case r.at(from-1).is("(") && r.at(to).is(")") && r.groups(from-1):
			from, to = from-1, to+1
		case r.at(from-1).is("select") && r.at(from-2).is("(") && r.at(to).is("from", ")"):
			from -= 2
			to = r.closing(from) + 1
		default:
			return from, to
		}
	}
}

// groups reports whether the parenthesis at i belongs to an expression, not to a call or a list.
func (r *rewriter) groups(i int) bool {
	t := r.at(i - 1)
	return t.kind == punct && !t.is(")") ||
		t.is("and", "or", "not", "where", "select", "on", "having", "by", "when", "then", "else", "case", "between")
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
	if len(operand) == 1 {
		if n, err := strconv.ParseUint(operand[0].text, 10, 64); err == nil {
			operand[0].text = strconv.FormatInt(int64(n), 10) // SQLite would round a large one
		}
	}
	if r.at(from).is("-") { // a negative number, rather than a key as it is stored
		operand = slices.Concat(synthetic(at, "CAST", "("), operand, synthetic(at, "AS", "REAL", ")"))
	}
	call := slices.Concat(synthetic(at, orderFunction, "("), operand, synthetic(at, ")"))
	r.replace(from, to, call...)
	return len(call) - (to - from)
}

// between rewrites the BETWEEN whose first operand is in [from, to); false means that it is incomplete.
func (r *rewriter) between(from, to int) bool {
	least := to + 1
	if r.at(to).is("not") {
		least++
	}
	and := r.operandEnd(least)
	if !r.at(and).is("and") {
		return false
	}
	r.ordered(and+1, r.operandEnd(and+1))
	r.ordered(least, and)
	r.ordered(from, to)
	return true
}

// bound rewrites the BETWEEN at the given position, of which a bound is the partition key at i. It
// returns the last token that needs no further rewriting.
func (r *rewriter) bound(i, between int) int {
	to := between
	if r.at(to - 1).is("not") {
		to--
	}
	from := r.operandStart(to)
	if from < to && r.between(from, to) {
		return from
	}
	return i
}

// extreme rewrites the MIN or MAX of which the partition key in [from, to) is the only argument. It
// returns how many tokens that adds before the key.
func (r *rewriter) extreme(from, to int) int {
	call := from - 2
	if r.at(from - 1).is("distinct") {
		call--
	}
	if !r.at(call).is("max", "min") || !r.at(call+1).is("(") || !r.at(to).is(")") {
		return 0
	}
	end := to + 1
	for end+1 < len(r.tokens) && r.at(end).is("filter", "over") {
		if end += 2; r.at(end - 1).is("(") {
			end = r.closing(end-1) + 1
		}
	}
	at := r.at(call).at
	r.replace(end, end, token{punct, ")", at})
	r.ordered(from, to)
	r.replace(call, call, synthetic(at, valueFunction, "(")...)
	return 4 // two functions, each with its parenthesis
}

// inRow rewrites the comparison of the row with the element [from, to). It returns how many tokens that
// adds before the row; false means that it is not compared with another row.
func (r *rewriter) inRow(from, to int) (added int, ok bool) {
	open, index := from-1, 0
	for depth := 0; open >= 0; open-- {
		t := r.tokens[open]
		if depth += nesting(t); depth > 0 {
			break
		}
		if depth == 0 && t.is(",") {
			index++
		}
	}
	if open < 0 || !r.groups(open) {
		return 0, false
	}
	closing := r.closing(open)
	switch {
	case r.at(closing+1).is(orderSigns...) && r.at(closing+2).is("("):
		if a, b := r.element(closing+2, index); a < b {
			r.ordered(a, b)
			r.ordered(from, to)
			return 0, true
		}
	case r.at(open-1).is(orderSigns...) && r.at(open-2).is(")"):
		if a, b := r.element(r.opening(open-2), index); a < b {
			r.ordered(from, to)
			return r.ordered(a, b), true
		}
	}
	return 0, false
}

// element returns the element of the row that begins with the parenthesis at i.
func (r *rewriter) element(i, index int) (from, to int) {
	from = i + 1
	for to, closing := from, r.closing(i); to <= closing; to++ {
		switch t := r.tokens[to]; {
		case t.is("("):
			to = r.closing(to)
		case to == closing, t.is(","):
			if index == 0 {
				return from, to
			}
			index--
			from = to + 1
		}
	}
	return 0, 0
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
			return r.at(i-1).is("order") && !r.compound(i-1)
		case t.is("select", "values", "where", "having"):
			return false
		}
	}
	return false
}

// compound reports whether the clause at i belongs to a compound SELECT, which is sorted by result columns
// only.
func (r *rewriter) compound(i int) bool {
	for depth := 0; i > 0 && depth <= 0; {
		i--
		if depth += nesting(r.tokens[i]); depth == 0 && r.tokens[i].is("union", "intersect", "except") {
			return true
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
	return "~" + stringOf(number), nil // SQLite sorts what is no number above all
}

// storedKey is the reverse of keyText. It implements valueFunction.
func storedKey(_ *session, args []driver.Value) (driver.Value, error) {
	n, err := strconv.ParseUint(stringOf(args[0]), 10, 64)
	return int64(n), err
}
