package query

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// casts rewrites x::type, CAST and EXTRACT. It returns an error for a type that SQLite would
// interpret as another one.
func (r *rewriter) casts() error {
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		switch {
		case t.is("::") && r.at(i+1).kind == word:
			from := r.before(i)
			by, err := r.cast(t.at, from, i, r.tokens[i+1])
			if err != nil {
				return err
			}
			r.replace(from, i+2, by...)
			i = from
		case t.is("cast", "try_cast") && r.at(i+1).is("("):
			if err := r.castCall(i); err != nil {
				return err
			}
		case t.is("extract") && r.at(i+1).is("(") && r.at(i+3).is("from"):
			field := "'" + strings.ToLower(r.at(i+2).name()) + "'"
			r.replace(i, i+4, synthetic(t.at, "date_part", "(", field, ",")...)
		}
	}
	return nil
}

// castCall rewrites CAST(x AS type) at i.
func (r *rewriter) castCall(i int) error {
	end := r.closing(i + 1)
	if end < 0 {
		return nil
	}
	r.tokens[i].text = "CAST"
	as := end - 1
	for as > i && !r.tokens[as].is("as") {
		as--
	}
	if as <= i+2 || as+1 >= end {
		return nil
	}
	by, err := r.cast(r.tokens[i].at, i+2, as, r.tokens[as+1])
	if err != nil {
		return err
	}
	r.replace(i, end+1, by...)
	return nil
}

// castTypes are the types of SQLite for the names of types that queries may cast to, other than
// those of times.
var castTypes = map[string]string{
	"string": "TEXT", "utf8": "TEXT", "largeutf8": "TEXT", "varchar": "TEXT", "nvarchar": "TEXT", "char": "TEXT", "character": "TEXT", "text": "TEXT",
	"bigint": "INTEGER", "int": "INTEGER", "integer": "INTEGER", "smallint": "INTEGER", "tinyint": "INTEGER", "unsigned": "INTEGER", "signed": "INTEGER",
	"long": "INTEGER", "boolean": "INTEGER", "bool": "INTEGER", "int2": "INTEGER", "int4": "INTEGER", "int8": "INTEGER", "int16": "INTEGER",
	"int32": "INTEGER", "int64": "INTEGER", "uint8": "INTEGER", "uint16": "INTEGER", "uint32": "INTEGER", "uint64": "INTEGER",
	"double": "REAL", "float": "REAL", "real": "REAL", "decimal": "REAL", "numeric": "REAL", "float4": "REAL", "float8": "REAL", "float32": "REAL", "float64": "REAL",
	"blob": "BLOB", "bytea": "BLOB", "binary": "BLOB", "varbinary": "BLOB",
}

// booleans are the texts that are booleans, which SQLite would convert to 0.
var booleans = map[string]string{"true": "1", "t": "1", "yes": "1", "on": "1", "false": "0", "f": "0", "no": "0", "off": "0"}

// cast returns a cast of the operand in [from, to).
func (r *rewriter) cast(at, from, to int, typ token) ([]token, error) {
	operand := slices.Clone(r.tokens[from:to])
	text, isText := "", len(operand) == 1 && operand[0].kind == str
	if isText {
		text = operand[0].literal()
	}
	name := strings.ToLower(typ.text)
	switch name {
	case "timestamp", "timestamptz", "datetime":
		return slices.Concat(synthetic(at, "to_timestamp", "("), operand, synthetic(at, ")")), nil
	case "date":
		return slices.Concat(synthetic(at, "date_trunc", "(", "'day'", ",", "to_timestamp", "("), operand, synthetic(at, ")", ")")), nil
	case "interval":
		if !isText {
			r.failedAt = typ.at
			return nil, errors.New("only a text can be cast to an interval; to compute one, multiply it: n * INTERVAL '1 second'")
		}
		ms, err := parseInterval(text)
		r.failedAt = operand[0].at
		return []token{{interval, strconv.FormatInt(ms, 10), operand[0].at}}, err
	case "boolean", "bool":
		if number, known := booleans[strings.ToLower(text)]; isText && known {
			return synthetic(operand[0].at, number), nil
		}
	}
	known := castTypes[name]
	if known == "" {
		r.failedAt = typ.at
		return nil, fmt.Errorf("casts to the type %s are not possible; the types are TEXT, BIGINT, DOUBLE, BOOLEAN, BLOB, TIMESTAMP, DATE and INTERVAL", typ.text)
	}
	return slices.Concat(synthetic(at, "CAST", "("), operand, synthetic(at, "AS", known, ")")), nil
}

// timeFunctions return timestamps.
var timeFunctions = map[string]bool{"now": true, "to_timestamp": true, "date_trunc": true, "time_add": true, "time_sub": true, "date_bin": true, "from_unixtime": true}

// likeTheirArgument are the functions that return a timestamp if their argument is one.
var likeTheirArgument = map[string]bool{
	"max": true, "min": true, "coalesce": true, "ifnull": true, "nullif": true, "greatest": true, "least": true, firstOf: true, lastOf: true,
}

// arithmetic rewrites sums and differences of timestamps and intervals, which are text and
// numbers for SQLite. Aliases of timestamps count as timestamps. Inner parentheses are rewritten
// first.
func (r *rewriter) arithmetic() {
	deepest, depth := 0, 0
	for _, t := range r.tokens {
		depth += nesting(t)
		deepest = max(deepest, depth)
	}
	for level := deepest; level >= 0 && r.ctx.Err() == nil; level-- {
		r.arithmeticAt(level)
	}
}

// nesting returns by how much a token changes the depth of parentheses.
func nesting(t token) int {
	switch {
	case t.is("("):
		return 1
	case t.is(")"):
		return -1
	}
	return 0
}

func (r *rewriter) arithmeticAt(level int) {
	depth := 0
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		if depth += nesting(t); depth != level {
			continue
		}
		if t.is("as") && r.at(i+1).name() != "" && r.isTime(r.before(i), i) {
			r.times[strings.ToLower(r.at(i+1).name())] = true
			continue
		}
		if t.is("+", "-") {
			i = r.sum(i)
		}
	}
}

// factors join operands more tightly than a plus or minus.
var factors = []string{"*", "/", "%", "||", "->", "->>"}

// sum rewrites the plus or minus at i if one side is a timestamp or an interval. Where that is not
// known of a side, the function decides when it gets the value. It returns the last token.
func (r *rewriter) sum(i int) int {
	last := r.left(i)
	from := last
	for r.at(from-1).is(factors...) || r.at(from-1).is("+", "-") {
		before := r.left(from - 1)
		if before == from-1 && r.at(before).is(factors...) {
			break
		}
		from = before
	}
	to := r.behind(i + 1)
	if from == i || to == i+1 {
		return i
	}
	one := to
	for r.at(to).is(factors...) && r.behind(to+1) > to+1 {
		to = r.behind(to + 1)
	}
	leftTime, rightTime := from == last && r.isTime(from, i), to == one && r.isTime(i+1, to)
	leftSpan, rightSpan := r.isInterval(from, i), r.isInterval(i+1, to)
	minus := r.at(i).is("-")
	function := ""
	switch {
	case leftTime && minus && rightTime:
		function = "time_diff"
	case leftTime && minus:
		function = "time_sub"
	case leftTime, rightTime && leftSpan && !minus:
		function = "time_add"
	case minus && (rightTime || rightSpan) && !leftSpan:
		function = minusFunction
	case !minus && (rightTime || leftSpan != rightSpan):
		function = plusFunction
	default:
		return i
	}
	at := r.tokens[i].at
	call := slices.Concat(synthetic(at, function, "("), r.tokens[from:i], synthetic(at, ","), r.tokens[i+1:to], synthetic(at, ")"))
	r.replace(from, to, call...)
	return from + len(call) - 1
}

// left returns the start of the left operand of the operator at i; i if it is a sign.
func (r *rewriter) left(i int) int {
	if t := r.at(i - 1); t.kind == word && keyword(t.text) {
		return i
	}
	return r.before(i)
}

// isInterval reports whether the operand in [i, j) is computed from an interval.
func (r *rewriter) isInterval(i, j int) bool {
	for ; i < j; i++ {
		t := r.tokens[i]
		if t.kind == interval {
			return true
		}
		if t.name() != "" && !keyword(t.text) && r.at(i+1).is("(") { // a function
			if end := r.closing(i + 1); end > 0 {
				i = end
			}
		}
	}
	return false
}

// isTime reports whether the operand in [i, j) is a timestamp.
func (r *rewriter) isTime(i, j int) bool {
	if i >= j {
		return false
	}
	last := r.tokens[j-1]
	if last.name() != "" {
		return r.times[strings.ToLower(last.name())]
	}
	if !last.is(")") {
		return false
	}
	open := r.opening(j - 1)
	switch function := strings.ToLower(r.at(open - 1).name()); {
	case open < i:
		return false
	case open == i:
		return r.isTime(open+1, j-1)
	case timeFunctions[function]:
		return true
	case likeTheirArgument[function]:
		return r.isTime(open+1, r.behind(open+1))
	}
	return false
}

// before returns the start of the operand that ends before i (a name, literal, call or
// parenthesis); i if there is none.
func (r *rewriter) before(i int) int {
	at := i - 1
	switch t := r.at(at); {
	case at < 0:
		return i
	case t.is("end"):
		if at = r.matching(at, -1); at < 0 {
			return i
		}
		return at
	case t.is(")"):
		if at = r.opening(at); at < 0 {
			return i
		}
		if before := r.at(at - 1); before.kind == quoted || before.kind == word && !keyword(before.text) {
			at--
		}
	case t.kind == punct:
		return i
	}
	for r.at(at-1).is(".") && r.at(at-2).name() != "" && r.at(at).kind != num {
		at -= 2
	}
	return at
}

// behind returns the end of the operand that starts at i.
func (r *rewriter) behind(i int) int {
	at := i
	switch t := r.at(i); {
	case i >= len(r.tokens):
		return i
	case t.is("("):
		if end := r.closing(i); end > 0 {
			return end + 1
		}
		return i
	case t.is("case"):
		if end := r.matching(i, 1); end > 0 {
			return end + 1
		}
		return i
	case t.is("-", "+") && (r.at(i+1).kind == num || r.at(i+1).kind == interval):
		return i + 2
	case t.kind == punct:
		return i
	}
	for r.at(at+1).is(".") && r.at(at+2).name() != "" {
		at += 2
	}
	if r.at(at + 1).is("(") {
		if end := r.closing(at + 1); end > 0 {
			return end + 1
		}
	}
	return at + 1
}

// matching returns the END of the CASE at i, or in the direction -1 the CASE of the END; -1 if there is
// none.
func (r *rewriter) matching(i, direction int) int {
	for depth := 0; i >= 0 && i < len(r.tokens); i += direction {
		switch {
		case r.tokens[i].is("case"):
			depth += direction
		case r.tokens[i].is("end"):
			depth -= direction
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// opening returns the parenthesis that matches the closing one at i, -1 if there is none.
func (r *rewriter) opening(i int) int {
	for depth := 0; i >= 0; i-- {
		switch {
		case r.tokens[i].is(")"):
			depth++
		case r.tokens[i].is("("):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// closing returns the parenthesis that matches the opening one at i, -1 if there is none.
func (r *rewriter) closing(i int) int {
	for depth := 0; i < len(r.tokens); i++ {
		switch {
		case r.tokens[i].is("("):
			depth++
		case r.tokens[i].is(")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// keyword reports whether a word before a parenthesis is not the name of a function.
func keyword(text string) bool {
	switch strings.ToLower(text) {
	case "and", "or", "not", "in", "where", "select", "on", "having", "by", "when", "then", "else", "case", "from", "as",
		"between", "like", "is", "exists", "values", "over", "using", "filter", "limit", "offset", "distinct", "all", "union":
		return true
	}
	return false
}
