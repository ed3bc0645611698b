package query

import (
	"slices"
	"strings"

	"platform/internal/suggest"
)

// locate converts an error of SQLite to one with a position in the original text and, for unknown
// names, a suggestion.
func (e *Engine) locate(q *rewritten, sql *sqlError) *Error {
	err := &Error{Message: sql.message}
	at := -1
	if sql.offset >= 0 {
		at = q.origin(sql.offset)
	}
	for _, unknown := range []struct {
		prefix, what string
		names        func() []string
	}{
		{"no such column: ", "column", func() []string { return e.columnsIn(q) }},
		{"no such table: ", "table", e.tableNames},
		{"no such function: ", "function", functionNames},
	} {
		if name, found := strings.CutPrefix(sql.message, unknown.prefix); found {
			name, _, _ = strings.Cut(name, " - ") // advice about quotes
			name = strings.Trim(name, `"`)
			err.Message = "there is no " + unknown.what + " " + name
			last := name[strings.LastIndexByte(name, '.')+1:]
			if at < 0 || unknown.what != "column" {
				at = q.find(last)
			}
			replacement := ""
			if unknown.what == "table" {
				replacement = replacedTables[strings.ToLower(last)]
			}
			switch near := nearest(last, unknown.what, unknown.names()); {
			case unknown.what == "column" && q.isOperand(name):
				err.Suggestion = "texts are written in single quotes: '" + strings.ReplaceAll(name, "'", "''") + "'"
			case replacement != "":
				err.Suggestion = replacement
			case near != "":
				err.Suggestion = "did you mean " + near + "?"
			default:
				err.Suggestion = e.whereListed(unknown.what, q)
			}
			break
		}
	}
	switch {
	case sql.message == "incomplete input":
		err.Message, at = "unexpected end of the query", len(q.source)
	case strings.HasPrefix(sql.message, unauthorizedFunction):
		return e.denied(q, sql)
	case strings.HasPrefix(sql.message, "near "):
		err.Message = "syntax error " + strings.TrimSuffix(sql.message, ": syntax error")
	}
	if at >= 0 {
		err.Position = positionAt(q.source, at)
	}
	return err
}

const metricsElsewhere = "metrics are served at /metrics, and GET /stats has time series of invocations"

// replacedTables has tables of other servers, and what to use instead.
var replacedTables = map[string]string{
	"metrics_processor": metricsElsewhere,
	"metrics_node":      metricsElsewhere,
	"metrics_log":       metricsElsewhere,
}

// nearest returns the names that a user may have meant instead of an unknown one, "" if none is close.
func nearest(name, what string, names []string) string {
	switch what {
	case "column":
		var longer []string
		for _, n := range names {
			if strings.HasPrefix(n, strings.ToLower(name)+"_") {
				longer = append(longer, n)
			}
		}
		if len(longer) > 1 && len(longer) <= 4 {
			return oneOf(longer)
		}
	case "table":
		for _, n := range names {
			if singular := strings.TrimSuffix(strings.ToLower(name), "s"); n == "sys_"+singular || n == "sys_"+singular+"s" {
				return n
			}
		}
	}
	return suggest.Nearest(name, names)
}

// isOperand reports whether a name is the right operand of each comparison in which it occurs, and so
// probably a text without quotes.
func (q *rewritten) isOperand(name string) bool {
	found := false
	for i, t := range q.tokens {
		if !strings.EqualFold(t.name(), name) {
			continue
		}
		compared := i >= 2 && q.tokens[i-1].is("=", "==", "<>", "!=")
		listed := i >= 2 && q.tokens[i-1].is("(") && q.tokens[i-2].is("in")
		if !compared && !listed {
			return false
		}
		found = true
	}
	return found
}

const unauthorizedFunction = "not authorized to use function: "

// denied returns the error for a query that is not authorized.
func (e *Engine) denied(q *rewritten, sql *sqlError) *Error {
	if name, found := strings.CutPrefix(sql.message, unauthorizedFunction); found {
		err := &Error{Message: "the function " + name + " is not available here"}
		if at := q.find(name); at >= 0 {
			err.Position = positionAt(q.source, at)
		}
		return err
	}
	if name, found := strings.CutPrefix(sql.message, "access to "); found {
		name, _, _ = strings.Cut(name, " is prohibited")
		return &Error{Message: "access to " + name + " is not possible", Suggestion: "SHOW TABLES lists the tables"}
	}
	return &Error{Message: notReading}
}

func (e *Engine) tableNames() []string {
	var names []string
	for _, t := range e.catalog.tables {
		names = append(names, t.Name)
	}
	return names
}

// whereListed returns a hint how to list the tables, or the columns of the first table that the
// query names.
func (e *Engine) whereListed(what string, q *rewritten) string {
	if what == "table" {
		return "SHOW TABLES lists them"
	}
	first, at := "<table>", len(q.source)
	for _, t := range e.catalog.tables {
		if found := q.find(t.Name); found >= 0 && found < at {
			first, at = t.Name, found
		}
	}
	if what == "column" {
		return "DESCRIBE " + first + " lists them"
	}
	return ""
}

// columnsIn returns the columns of the tables in a query, of all tables if it names none.
func (e *Engine) columnsIn(q *rewritten) []string {
	var named, all []string
	for _, t := range e.catalog.tables {
		for _, c := range t.Columns {
			all = append(all, c.Name)
			if q.find(t.Name) >= 0 {
				named = append(named, c.Name)
			}
		}
	}
	if named == nil {
		named = all
	}
	slices.Sort(named)
	return slices.Compact(named)
}
