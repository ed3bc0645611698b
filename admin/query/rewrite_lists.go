package query

import (
	"encoding/json"
	"slices"
	"strings"
)

// lists adds conditions so that `column IN ('a', 'b')`, and equalities of a column joined by OR,
// take a single scan. SQLite would scan the table once per value, which reads the complete table
// each time if the column has no index. The source gets the list in an additional, redundant
// condition: `(+column IN (…) AND column MATCH '…')`. The plus sign keeps SQLite from scanning by
// the IN. If the source does not evaluate MATCH, the function matchList returns true.
func (r *rewriter) lists() {
	for i := 0; r.more(i); i++ {
		if r.tokens[i].is("where", "and", "on", "(") {
			r.alternatives(i)
			r.list(i + 1)
		}
	}
}

// alternatives converts `column = 'a' OR column = 'b'` after the token at i to a list, if the
// condition contains nothing else.
func (r *rewriter) alternatives(i int) {
	if r.at(i).is("and", "on") || r.at(i).is("(") && !r.condition(i) {
		return
	}
	from := i + 1
	column := r.column(from)
	if column == nil {
		return
	}
	var values []token
	at := from
	for {
		next := r.column(at)
		value := r.at(at + len(column) + 1)
		if !sameName(column, next) || !r.at(at+len(column)).is("=", "==") || value.kind != str {
			return
		}
		values = append(values, value)
		if at += len(column) + 2; !r.at(at).is("or") {
			break
		}
		at++
	}
	end := at >= len(r.tokens) || r.at(at).is(")", "group", "order", "limit")
	if len(values) < 2 || !end {
		return
	}
	list := append(slices.Clone(column), synthetic(column[0].at, "IN", "(")...)
	for n, v := range values {
		if n > 0 {
			list = append(list, token{punct, ",", v.at})
		}
		list = append(list, v)
	}
	r.replace(from, at, append(list, token{punct, ")", column[0].at})...)
}

// list rewrites a list of text values whose column starts at i.
func (r *rewriter) list(i int) {
	column := r.column(i)
	in := i + len(column)
	if column == nil || !r.at(in).is("in") || !r.at(in+1).is("(") || r.at(i-3).is("between") || r.at(i-1).is("(") && !r.condition(i-1) {
		return
	}
	var values []string
	at := in + 2
	for ; r.at(at).kind == str; at += 2 {
		values = append(values, r.at(at).literal())
		if !r.at(at + 1).is(",") {
			break
		}
	}
	if len(values) < 2 || !r.at(at+1).is(")") {
		return
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return
	}
	place := column[0].at
	by := append(synthetic(place, "(", "+"), r.tokens[i:at+2]...)
	by = append(by, synthetic(place, "AND")...)
	by = append(by, column...)
	by = append(by, synthetic(place, "MATCH", "'"+strings.ReplaceAll(listMark+string(encoded), "'", "''")+"'", ")")...)
	r.replace(i, at+2, by...)
}

// condition reports whether a parenthesis belongs to a condition rather than to the expression of
// a result column.
func (r *rewriter) condition(i int) bool {
	for r.at(i).is("(") {
		i--
	}
	return r.at(i).is("where", "and", "on", "or", "not")
}

// column returns the tokens of a column name at i, including its table; nil if sources do not
// accept lists for the column.
func (r *rewriter) column(i int) []token {
	to := i + 1
	if r.at(i).name() != "" && r.at(to).is(".") {
		to += 2
	}
	if !r.listed[strings.ToLower(r.at(to-1).name())] {
		return nil
	}
	return slices.Clone(r.tokens[i:to])
}

func sameName(a, b []token) bool {
	return slices.EqualFunc(a, b, func(x, y token) bool { return strings.EqualFold(x.text, y.text) })
}

// listMark marks lists of the rewriter, which users cannot write.
const listMark = "\x01"

// listOf parses a list of the rewriter.
func listOf(text string) (values []string, ok bool) {
	encoded, ok := strings.CutPrefix(text, listMark)
	return values, ok && json.Unmarshal([]byte(encoded), &values) == nil
}

// listed returns the names of all columns for which sources accept lists.
func (c *catalog) listed() map[string]bool {
	names := map[string]bool{}
	for _, t := range c.tables {
		for i, col := range t.Columns {
			if t.fields[i].takesList() {
				names[col.Name] = true
			}
		}
	}
	return names
}
