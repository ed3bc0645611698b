package query

import "strings"

// casts rewrites x::type, casts to timestamps and EXTRACT.
func (r *rewriter) casts() {
	for i := 0; r.more(i); i++ {
		t := r.tokens[i]
		switch {
		case t.is("::") && r.at(i+1).kind == word:
			from := r.before(i)
			typ := r.tokens[i+1].text
			operand := append([]token(nil), r.tokens[from:i]...)
			r.replace(from, i+2, cast(t.at, operand, typ)...)
			i = from
		case t.is("cast", "try_cast") && r.at(i+1).is("("):
			r.cast(i)
		case t.is("extract") && r.at(i+1).is("(") && r.at(i+3).is("from"):
			field := "'" + strings.ToLower(r.at(i+2).name()) + "'"
			r.replace(i, i+4, synthetic(t.at, "date_part", "(", field, ",")...)
		}
	}
}

// cast rewrites CAST(x AS type) at i for types that SQLite interprets differently.
func (r *rewriter) cast(i int) {
	end := r.closing(i + 1)
	if end < 0 {
		return
	}
	r.tokens[i].text = "CAST"
	as := end - 1
	for as > i && !r.tokens[as].is("as") {
		as--
	}
	if as <= i+2 || as+1 >= end {
		return
	}
	operand := append([]token(nil), r.tokens[i+2:as]...)
	r.replace(i, end+1, cast(r.tokens[i].at, operand, r.tokens[as+1].text)...)
}

func cast(at int, operand []token, typ string) []token {
	typ = strings.ToLower(typ)
	switch typ {
	case "timestamp", "timestamptz", "date", "datetime":
		return append(append(synthetic(at, "to_timestamp", "("), operand...), token{punct, ")", at})
	case "string", "utf8", "varchar", "char", "text":
		typ = "TEXT"
	case "bigint", "int", "integer", "smallint", "tinyint", "unsigned", "long", "boolean", "bool":
		typ = "INTEGER"
	case "double", "float", "real", "decimal", "numeric":
		typ = "REAL"
	}
	return append(append(append(synthetic(at, "CAST", "("), operand...), synthetic(at, "AS", typ)...), token{punct, ")", at})
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
		if !t.is("+", "-") {
			continue
		}
		from := r.before(i)
		if from == i || !r.isTime(from, i) {
			continue
		}
		to := r.behind(i + 1)
		function := "time_add"
		switch {
		case to == i+1:
			continue
		case t.is("-") && r.isTime(i+1, to):
			function = "time_diff"
		case t.is("-"):
			function = "time_sub"
		}
		call := append(synthetic(t.at, function, "("), r.tokens[from:i]...)
		call = append(call, token{punct, ",", t.at})
		call = append(append(call, r.tokens[i+1:to]...), token{punct, ")", t.at})
		r.replace(from, to, call...)
		i = from + len(call) - 1
	}
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
	case t.is("-", "+") && r.at(i+1).kind == num:
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
