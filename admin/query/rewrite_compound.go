package query

import (
	"strconv"
	"strings"
)

// compounds makes compound SELECTs that are sorted by partition keys subqueries, so that they are sorted by
// an expression: SQLite sorts a compound SELECT by its columns only.
//
//	select k from a union select k from b order by k limit 5
//	select * from (select k from a union select k from b) order by k limit 5
//
// Those that are sorted by anything but columns and their numbers remain unchanged.
func (r *rewriter) compounds() {
	for i := len(r.tokens) - 1; i > 0; i-- { // inner queries are behind the ORDER BY of outer ones, or before it and not changed by that
		if !r.at(i).is("order") || !r.at(i+1).is("by") || !r.compound(i) {
			continue
		}
		begin := r.queryOf(i)
		terms, ok := r.compoundTerms(i+2, begin)
		if !ok {
			continue
		}
		for n := len(terms) - 1; n >= 0; n-- {
			r.replace(terms[n].from, terms[n].to, terms[n].by)
		}
		at := r.at(begin).at
		r.replace(i, i, synthetic(at, ")")...)
		r.replace(begin, begin, synthetic(at, "SELECT", "*", "FROM", "(")...)
		if r.nested(begin) == 0 {
			r.wrapped = begin + 4
		}
		i += 4
	}
}

// nested returns how many parentheses are open at a position.
func (r *rewriter) nested(at int) (depth int) {
	for _, t := range r.tokens[:at] {
		depth += nesting(t)
	}
	return depth
}

// queryOf returns the first SELECT or VALUES, behind common table expressions, of the query to which the clause at i
// belongs.
func (r *rewriter) queryOf(i int) int {
	begin, depth := i, 0
	for ; begin > 0; begin-- {
		if depth += nesting(r.tokens[begin-1]); depth > 0 {
			break
		}
	}
	for depth = 0; begin < i; begin++ {
		if depth == 0 && r.at(begin).is("select", "values") {
			break
		}
		depth += nesting(r.tokens[begin])
	}
	return begin
}

// sortTerm is an operand of ORDER BY, and the column of the result that replaces it.
type sortTerm struct {
	from, to int
	by       token
}

// compoundTerms returns the operands of the ORDER BY from i on, of a compound SELECT. It returns false if
// none is a partition key, or one is neither a column nor the number of one.
func (r *rewriter) compoundTerms(i, query int) (terms []sortTerm, ok bool) {
	items := r.itemsOf(query)
	for hasKey := false; ; i++ {
		term := sortTerm{from: i, to: i + 1, by: r.at(i)}
		if r.at(i + 1).is(".") { // only the subquery knows the table
			term.to, term.by = i+3, r.at(i+2)
		}
		if term.by.kind == num {
			n, err := strconv.Atoi(term.by.text)
			if err != nil || n < 1 {
				return nil, false
			}
			if key, name := r.keyItem(items, n); key && name.name() == "" {
				return nil, false
			} else if key {
				term.by, hasKey = name, true
			}
		} else if term.by.name() == "" {
			return nil, false
		}
		hasKey = hasKey || r.keys[strings.ToLower(term.by.name())]
		terms = append(terms, term)
		i = term.to
		if r.at(i).is("collate") {
			i += 2
		}
		if r.at(i).is("asc", "desc") {
			i++
		}
		if r.at(i).is("nulls") {
			i += 2
		}
		if !r.at(i).is(",") {
			return terms, hasKey && (i == len(r.tokens) || r.at(i).is("limit", ")"))
		}
	}
}

// keyItem reports whether the result column with a number is a partition key, and returns its name; that is empty
// if it has none.
func (r *rewriter) keyItem(items []item, n int) (key bool, name token) {
	if n > len(items) {
		return false, token{}
	}
	for _, it := range items[:n] {
		if it.star {
			return false, token{}
		}
	}
	it := items[n-1]
	if !r.isKey(it.from, it.to) {
		return false, token{}
	}
	for end := it.to; ; end++ {
		switch t := r.at(end); {
		case t.is(")"), t.is("as"):
		case t.is(",", "from", "union", "intersect", "except", "where", "group") || t.text == "":
			if last := r.at(end - 1); last.name() != "" && (end > it.to || it.to-it.from == 1 || r.at(it.to-2).is(".")) {
				return true, last
			}
			return true, token{}
		case t.name() == "":
			return true, token{}
		}
	}
}
