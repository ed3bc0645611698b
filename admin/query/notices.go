package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platform/internal/suggest"
)

// Notice is a remark about a valid query that compares a column with a value that it never has.
type Notice struct {
	Message string `json:"message"`
	Position
}

const (
	// maxNotices bounds the notices of a query.
	maxNotices = 10
	// maxQuoted bounds the literals in notices, in bytes.
	maxQuoted = 60
)

// notices returns remarks about comparisons of columns with literals. It works on tokens and does
// not know the scopes of names: it omits what may be correct, such as comparisons of a name that
// the query also defines.
func (e *Engine) notices(source string, tokens []token) []Notice {
	n := noticer{rewriter: rewriter{tokens: tokens}, source: source, defined: map[string]bool{}}
	if n.definesColumns() {
		return nil
	}
	n.columns = e.catalog.columnsOf(tokens)
	for i := range tokens {
		n.comparison(i)
	}
	return n.found
}

type noticer struct {
	rewriter
	source  string
	columns map[string][]Column // of the tables in the query, by lower-case name
	defined map[string]bool     // whether the query also gives that name to an expression
	found   []Notice
}

// columnsOf returns the columns of all tables whose names occur in a query, by lower-case name.
func (c *catalog) columnsOf(tokens []token) map[string][]Column {
	names := map[string]bool{}
	for _, t := range tokens {
		names[strings.ToLower(t.name())] = true
	}
	columns := map[string][]Column{}
	for _, t := range c.tables {
		if !names[t.Name] {
			continue
		}
		for _, col := range t.Columns {
			columns[col.Name] = append(columns[col.Name], col)
		}
	}
	return columns
}

// definesColumns reports whether the query has a list of column names, as in `WITH x(a, b) AS (…)`.
func (n *noticer) definesColumns() bool {
	for i, t := range n.tokens {
		if t.is(")") && n.at(i+1).is("as") && n.at(i+2).is("(", "materialized", "not") {
			return true
		}
	}
	return false
}

// comparison checks the comparison whose operator is at i.
func (n *noticer) comparison(i int) {
	switch t := n.tokens[i]; {
	case t.is("=", "==", "<>", "!="), t.is("is") && !n.at(i+1).is("null", "distinct"):
		right := i + 1
		if n.at(right).is("not") {
			right++
		}
		if n.at(right).kind == str && n.ends(right+1) {
			n.check(n.columnBefore(i), n.at(right))
			return
		}
		if n.at(i-1).kind == str && n.begins(i-2) {
			column, after := n.columnAfter(i + 1)
			if n.ends(after) {
				n.check(column, n.at(i-1))
			}
		}
	case t.is("<", "<=", ">", ">="):
		if column := n.columnBefore(i); n.at(i+1).kind == str && n.ends(i+2) && n.isTime(column) {
			n.check(column, n.at(i+1))
		}
	case t.is("in") && n.at(i+1).is("("):
		before := i
		if n.at(i - 1).is("not") {
			before--
		}
		column := n.columnBefore(before)
		for at := i + 2; column != "" && n.at(at).kind == str && n.at(at+1).is(",", ")"); at += 2 {
			n.check(column, n.at(at))
		}
	}
}

// begins reports whether a condition can begin after the token at i: the operators that are left out
// bind more closely than a comparison.
func (n *noticer) begins(i int) bool {
	return i >= 0 && n.at(i).is("where", "and", "or", "not", "on", "having", "when", "(", ",", "select", "distinct", "then", "else")
}

// ends reports whether a condition can end before the token at i.
func (n *noticer) ends(i int) bool {
	return i >= len(n.tokens) || n.at(i).is("and", "or", ")", ",", "group", "order", "limit", "having", "union", "intersect", "except",
		"then", "else", "end", "as", "from", "where", "join", "left", "inner", "cross", "window")
}

// columnBefore returns the name of the column that ends before the token at i, "" if the operand is
// not just a column.
func (n *noticer) columnBefore(i int) string {
	name, begin := n.at(i-1).name(), i-1
	for n.at(begin-1).is(".") && n.at(begin-2).name() != "" {
		begin -= 2
	}
	if !n.begins(begin - 1) {
		return ""
	}
	return name
}

// columnAfter returns the name of the column at i and the position after it.
func (n *noticer) columnAfter(i int) (name string, after int) {
	for n.at(i).name() != "" && n.at(i+1).is(".") {
		i += 2
	}
	return n.at(i).name(), i + 1
}

func (n *noticer) isTime(column string) bool {
	columns := n.columns[strings.ToLower(column)]
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c Column) bool { return c.Type != Timestamp })
}

// check adds a notice if no column of that name can have the value of a literal.
func (n *noticer) check(name string, literal token) {
	columns := n.columns[strings.ToLower(name)]
	if len(columns) == 0 || len(n.found) == maxNotices || n.renamed(name) {
		return
	}
	value := literal.literal()
	var known []string
	for _, c := range columns {
		if c.admits(value) {
			return
		}
		known = append(known, c.Values...)
	}
	shown := "'" + value + "'"
	if len(value) > maxQuoted {
		shown = "'" + strings.ToValidUTF8(value[:maxQuoted], "") + "…'"
	}
	var message string
	switch near := suggest.Nearest(value, known); {
	case near != "":
		message = fmt.Sprintf("%s is never %s; did you mean '%s'? It is %s", name, shown, near, oneOf(known))
	case known != nil:
		message = fmt.Sprintf("%s is never %s; it is %s", name, shown, oneOf(known))
	case columns[0].Type == Bool:
		message = fmt.Sprintf("%s is never the text %s; write true or false without quotes", name, shown)
	default:
		message = shown + " is not a time; write it like '2026-11-20T18:21:39Z', or now() - INTERVAL '1 hour'"
	}
	at := positionAt(n.source, literal.at)
	n.found = append(n.found, Notice{fmt.Sprintf("line %d, column %d: %s", at.Line, at.Column, message), at})
}

// admits reports whether the column can be equal to a text, or for times be compared with it.
func (c Column) admits(value string) bool {
	switch {
	case c.Values != nil:
		return slices.Contains(c.Values, value)
	case c.Type == Bool:
		return !slices.Contains([]string{"true", "false", "yes", "no"}, strings.ToLower(value))
	case c.Type == Timestamp:
		_, err := parseTime(value)
		return err == nil || startsWithYear(value)
	}
	return true
}

// startsWithYear reports whether a text is sorted among times in a sensible place: "2026-11".
func startsWithYear(value string) bool {
	return len(value) >= 4 && !strings.ContainsFunc(value[:4], func(r rune) bool { return r < '0' || r > '9' })
}

// renamed reports whether the query gives another expression the name of a column.
func (n *noticer) renamed(name string) bool {
	name = strings.ToLower(name)
	defined, known := n.defined[name]
	if !known {
		defined = n.defines(name)
		n.defined[name] = defined
	}
	return defined
}

func (n *noticer) defines(name string) bool {
	for i, t := range n.tokens {
		if !strings.EqualFold(t.name(), name) || n.at(i+1).is(".") {
			continue
		}
		before := n.at(i - 1)
		switch before.kind {
		case quoted, str, num, blob:
			return true
		case word:
			if before.is("as") || !before.is(beforeExpressions...) {
				return true
			}
		case punct:
			if before.is(")") {
				return true
			}
		}
	}
	return false
}

// beforeExpressions are the keywords that can precede an expression.
var beforeExpressions = []string{
	"select", "distinct", "all", "where", "and", "or", "not", "on", "having", "by", "case", "when", "then", "else",
	"between", "in", "like", "ilike", "glob", "is", "from", "limit", "offset", "collate", "escape",
}

// maxListed bounds the values in a notice.
const maxListed = 12

// oneOf lists values: "a, b or c".
func oneOf(values []string) string {
	var once []string
	for _, v := range values {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	values = once
	switch {
	case len(values) == 1:
		return values[0]
	case len(values) > maxListed:
		return strings.Join(values[:maxListed], ", ") + " or another of " + strconv.Itoa(len(values)) + " values"
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}
