package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rewriter modifies the tokens of a query.
type rewriter struct {
	ctx      context.Context //nolint:containedctx // ends the passes early, which call each other deeply
	tokens   []token
	times    map[string]bool // names of timestamps
	numbers  map[string]bool // names of unsigned numbers
	listed   map[string]bool // names of columns for which sources accept lists
	keys     map[string]bool // names of partition keys
	columns  map[string]bool // names of all columns
	wrapped  int             // position of the SELECT that compounds has made a subquery of the query; 0: none
	failedAt int             // position of the invalid literal
	steps    int             // of all passes
}

// at returns a token, an empty one if out of range.
func (r *rewriter) at(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{kind: punct}
	}
	return r.tokens[i]
}

// more reports whether a pass over the tokens continues at i.
func (r *rewriter) more(i int) bool {
	r.steps++
	return i < len(r.tokens) && (r.steps%16 != 0 || r.ctx.Err() == nil)
}

// replace replaces the tokens in [i, j) with others.
func (r *rewriter) replace(i, j int, by ...token) {
	r.tokens = slices.Replace(r.tokens, i, j, by...)
}

// names removes the catalog and the schema from names, and quotes columns whose names are
// keywords of SQLite.
func (r *rewriter) names() {
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		for isQualifier(t.name()) && r.at(i+1).is(".") {
			if r.at(i - 1).is(".") {
				break
			}
			r.replace(i, i+2)
			t = r.at(i)
		}
		switch {
		case t.is("index"):
			r.tokens[i] = token{quoted, quoteName(t.text), t.at}
		case t.is("ilike"):
			r.replace(i, i+1, synthetic(t.at, "LIKE", "'"+ilikeMark+"'", "||")...)
		case t.is("first_value", "last_value") && r.at(i+1).is("("):
			r.edge(i)
		case t.is("(") && r.at(i+1).is("select") && r.inFrom(i):
			r.alias(i)
		case t.is("current_timestamp", "localtimestamp"):
			r.replace(i, i+1, synthetic(t.at, "now", "(", ")")...)
		}
	}
}

// isQualifier reports whether a name can qualify a table.
func isQualifier(name string) bool {
	return strings.EqualFold(name, catalogName) || strings.EqualFold(name, otherCatalog) || strings.EqualFold(name, schemaPublic)
}

// edge replaces FIRST_VALUE and LAST_VALUE at i with aggregates unless they have a window.
func (r *rewriter) edge(i int) {
	end := r.closing(i + 1)
	if end < 0 || r.at(end+1).is("over") {
		return
	}
	name := firstOf
	if r.tokens[i].is("last_value") {
		name = lastOf
	}
	r.tokens[i].text = name
}

// inFrom reports whether the parenthesis at i is an element of FROM, rather than a value.
func (r *rewriter) inFrom(i int) bool {
	if !r.at(i - 1).is(",") {
		return r.at(i-1).is("from", "join")
	}
	depth := 0
	for i--; i >= 0 && depth <= 0; i-- {
		t := r.tokens[i]
		depth += nesting(t)
		switch {
		case depth != 0:
		case t.is("from", "join") && !r.at(i-1).is("distinct"):
			return true
		case t.is("select", "values", "where", "by", "having"):
			return false
		}
	}
	return false
}

// alias gives a subquery at i without an alias the name of the only table that it reads, so that
// conditions outside can refer to it.
func (r *rewriter) alias(i int) {
	end := r.closing(i)
	next := r.at(end + 1)
	if end < 0 || next.is("as") || next.name() != "" && !next.is("where", "group", "order", "limit", "having", "union", "except", "intersect") {
		return
	}
	var table token
	depth := 0
	for at := i + 1; at < end; at++ {
		t := r.tokens[at]
		depth += nesting(t)
		switch {
		case depth != 0:
		case t.is("join") || t.is(",") && table.text != "" || t.is("union", "except", "intersect"):
			return
		case t.is("from") && r.at(at+1).is("("): // another subquery
			return
		case t.is("from") && !r.at(at-1).is("distinct"):
			for table = r.at(at + 1); r.at(at + 2).is("."); at += 2 {
				table = r.at(at + 3)
			}
			if alias := r.at(at + 2); alias.is("as") {
				table = r.at(at + 3)
			} else if alias.name() != "" && !alias.is("where", "group", "order", "limit", "having", "window") {
				table = alias
			}
		case t.is("where", "group", "order", "limit", "having", "window") && table.name() != "":
			at = end // only lists of columns follow
		}
	}
	if table.name() != "" {
		r.replace(end+1, end+1, token{table.kind, table.text, next.at})
	}
}

// literals rewrites intervals, timestamps and large numbers for SQLite.
func (r *rewriter) literals() error {
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		switch {
		case t.is("interval") && (r.at(i+1).kind == str || r.at(i+1).kind == num):
			ms, used, err := r.interval(i + 1)
			if err != nil {
				r.failedAt = t.at
				return err
			}
			r.replace(i, i+1+used, token{interval, strconv.FormatInt(ms, 10), t.at})
		case t.is("timestamp", "date", "timestamptz") && r.at(i+1).kind == str:
			r.replace(i, i+2, append(synthetic(t.at, "to_timestamp", "("), r.tokens[i+1], token{punct, ")", t.at})...)
		case t.is("in") && r.at(i+1).is("("):
			r.listedLiterals(i)
		case t.kind == num:
			r.large(i)
		case t.kind == str && r.comparedWith(r.numbers, i):
			r.number(i)
		case t.kind == str && (r.comparedWith(r.times, i) || r.comparedWithTime(i)):
			r.time(i)
		}
	}
	return nil
}

// large converts the number at i, if it has 64 bits, to a partition key as it is stored. Compared by
// size with anything else, it is a floating-point number for SQLite.
func (r *rewriter) large(i int) {
	n, err := strconv.ParseUint(r.tokens[i].text, 10, 64)
	if err != nil || n <= math.MaxInt64 || n == 1<<63 && r.at(i-1).is("-") {
		return
	}
	bySize := r.at(i-1).is("<", "<=", ">", ">=", "between") || r.at(i+1).is("<", "<=", ">", ">=", "between") ||
		r.at(i+1).is("not") && r.at(i+2).is("between") || r.at(i-1).is("and") && r.at(i-3).is("between")
	if !bySize || r.comparedWith(r.keys, i) {
		r.tokens[i].text = strconv.FormatInt(int64(n), 10)
	}
}

// number converts the text at i, which is compared with a number.
func (r *rewriter) number(i int) {
	t := r.tokens[i]
	if n, err := strconv.ParseUint(t.literal(), 10, 64); err == nil && n > math.MaxInt64 { // SQLite converts smaller ones
		r.tokens[i] = token{num, strconv.FormatInt(int64(n), 10), t.at}
	}
}

// time converts the text at i, which is compared with a timestamp.
func (r *rewriter) time(i int) {
	if at, err := parseTime(r.tokens[i].literal()); err == nil {
		r.tokens[i].text = "'" + timestampText(at) + "'"
	}
}

// listedLiterals converts the texts in the list after the IN at i.
func (r *rewriter) listedLiterals(i int) {
	column := r.at(i - 1)
	if column.is("not") {
		column = r.at(i - 2)
	}
	name := strings.ToLower(column.name())
	convert := r.number
	if r.times[name] {
		convert = r.time
	} else if !r.numbers[name] {
		return
	}
	for at := i + 2; r.at(at).kind == str || r.at(at).kind == num || r.at(at).is(","); at++ {
		if r.at(at).kind == str {
			convert(at)
		}
	}
}

// comparedWith reports whether a text is compared with one of the named columns: timestamps require the
// canonical format, numbers the way in which they are stored.
func (r *rewriter) comparedWith(columns map[string]bool, i int) bool {
	named := func(t token) bool { return columns[strings.ToLower(t.name())] }
	switch {
	case r.at(i-1).is("=", "==", "<", "<=", ">", ">=", "<>", "!=", "between"):
		return named(r.at(i-2)) || r.at(i-2).is("not") && named(r.at(i-3))
	case r.at(i-1).is("and") && r.at(i-3).is("between"):
		return named(r.at(i-4)) || r.at(i-4).is("not") && named(r.at(i-5))
	case r.at(i+1).is("=", "==", "<", "<=", ">", ">=", "<>", "!="):
		return named(r.at(i+2)) || r.at(i+3).is(".") && named(r.at(i+4))
	}
	return false
}

// comparedWithTime reports whether a text is compared with an expression whose value is a time, such as
// MAX(created_at).
func (r *rewriter) comparedWithTime(i int) bool {
	switch at := i - 1; {
	case r.at(at).is("and") && r.at(at-2).is("between"):
		return r.isTime(r.before(at-2), at-2)
	case r.at(at).is("=", "==", "<", "<=", ">", ">=", "<>", "!=", "between"):
		return r.isTime(r.before(at), at)
	}
	return r.at(i+1).is("=", "==", "<", "<=", ">", ">=", "<>", "!=") && r.isTime(i+2, r.behind(i+2))
}

// units of intervals, in milliseconds.
var units = map[string]float64{
	"millisecond": 1, "ms": 1, "second": 1000, "sec": 1000, "s": 1000, "minute": 60_000, "min": 60_000, "m": 60_000,
	"hour": 3_600_000, "hr": 3_600_000, "h": 3_600_000, "day": 86_400_000, "d": 86_400_000, "week": 7 * 86_400_000, "w": 7 * 86_400_000,
	"month": 30 * 86_400_000, "mon": 30 * 86_400_000, "year": 365 * 86_400_000, "y": 365 * 86_400_000,
}

func unit(name string) (float64, bool) {
	name = strings.ToLower(name)
	ms, ok := units[name]
	if !ok {
		ms, ok = units[strings.TrimSuffix(name, "s")]
	}
	return ms, ok
}

// interval parses the text after INTERVAL: '1 day 2 hours', '1' DAY or 1 DAY. used is the number
// of tokens. Months have 30 days and years 365.
func (r *rewriter) interval(i int) (ms int64, used int, err error) {
	text := r.tokens[i].text
	if r.tokens[i].kind == str {
		text = r.tokens[i].literal()
	}
	used = 1
	if next := r.at(i + 1); next.kind == word {
		if _, ok := unit(next.text); ok && !strings.ContainsAny(strings.TrimSpace(text), " hmsdwy") {
			text += " " + next.text
			used = 2
		}
	}
	ms, err = parseInterval(text)
	return ms, used, err
}

func parseInterval(text string) (int64, error) {
	bad := fmt.Errorf("invalid interval %q; write it like '1 day 2 hours' or '90 seconds'", text)
	var total float64
	rest := strings.TrimSpace(text)
	if rest == "" {
		return 0, bad
	}
	for rest != "" {
		n := 0
		for n < len(rest) && (isDigit(rest[n]) || strings.IndexByte("+-.", rest[n]) >= 0) {
			n++
		}
		amount, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, bad
		}
		rest = strings.TrimLeft(rest[n:], " ")
		n = 0
		for n < len(rest) && isWordStart(rest[n]) {
			n++
		}
		ms, ok := unit(rest[:n])
		if !ok {
			return 0, bad
		}
		total += amount * ms
		rest = strings.TrimLeft(rest[n:], " ,")
	}
	if total > 1e15 || total < -1e15 {
		return 0, fmt.Errorf("the interval %q is too long", text)
	}
	return int64(total), nil
}

// timeLayouts are the accepted formats of times; those without a zone are UTC.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 MST",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

func parseTime(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range timeLayouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		// Of other abbreviations than these, Parse does not know the time zone.
		if name, _ := t.Zone(); !strings.HasSuffix(layout, "MST") || name == "UTC" || name == "GMT" {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write it like 2026-11-20T18:21:39.411Z", text)
}
