package query

import "strings"

// rename restores the names of result columns whose expressions were rewritten. SQLite names a
// column without an alias by its text in the rewritten query. The tokens in this text determine the
// position of the column in the original query.
func (q *rewritten) rename(names []string) {
	after := 0
	var source []token // lexed when first needed
	for i, name := range names {
		if strings.Contains(q.source, name) {
			continue
		}
		first, next := q.span(name, after)
		if first < 0 {
			first, next = q.span(name, 0)
		}
		if first < 0 {
			continue
		}
		begin := len(q.source)
		for _, t := range q.tokens[first:next] {
			begin = min(begin, t.at)
		}
		if source == nil {
			source, _ = lex(q.source) // cannot fail: it was lexed before
		}
		if column := columnAt(q.source, source, begin); column != "" {
			names[i], after = column, next
		}
	}
}

// span returns the range of tokens whose text is piece, starting at from; -1 if there is none. A
// single word does not count: it is a name.
func (q *rewritten) span(piece string, from int) (first, next int) {
	for i := from; i < len(q.tokens); i++ {
		begin := q.begins[i]
		if !strings.HasPrefix(q.text[begin:], piece) {
			continue
		}
		for next = i + 1; next < len(q.tokens) && q.begins[next] < begin+len(piece); {
			next++
		}
		last := q.tokens[next-1]
		whole := q.begins[next-1]+len(last.text) == begin+len(piece)
		if whole && (next-i > 1 || last.kind == num || last.kind == interval) {
			return i, next
		}
	}
	return -1, 0
}

// columnAt returns the result column that starts at a position of a query with these tokens.
func columnAt(source string, tokens []token, begin int) string {
	depth, end := 0, begin
	for i, t := range tokens {
		if t.at < begin {
			continue
		}
		if depth += nesting(t); depth < 0 {
			break
		}
		distinctFrom := i > 0 && t.is("from") && tokens[i-1].is("distinct") // IS DISTINCT FROM
		if depth == 0 && !distinctFrom && t.is(",", ";", "from", "where", "group", "having", "window", "order", "limit", "union", "intersect", "except") {
			break
		}
		end = t.at + len(t.text)
	}
	return source[begin:end]
}
