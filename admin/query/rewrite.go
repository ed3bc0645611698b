package query

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// rewritten is a query in the SQLite dialect, with its origin.
type rewritten struct {
	source string // original text
	text   string
	tokens []token // of text, with their positions in source
	begins []int   // positions of the tokens in text
	// collated is true if the query compares text other than byte by byte.
	collated bool
	explains bool // it is EXPLAIN
	types    computedTypes
	notices  []Notice
}

// Limits of a query. They limit the time and memory of rewriting it.
const (
	maxQuery   = 1 << 20 // bytes
	maxTokens  = 50_000
	maxNesting = 200 // of parentheses; SQLite limits the depth of expressions likewise
)

// rewrite converts a query to the SQLite dialect. It works on tokens, not on a grammar: what it
// does not recognize remains unchanged, and SQLite reports the errors.
func (e *Engine) rewrite(ctx context.Context, text string) (*rewritten, error) {
	tokens, err := e.tokens(text)
	if err != nil {
		return nil, err
	}
	balanced, err := parentheses(text, tokens)
	if err != nil {
		return nil, err
	}
	var notices []Notice
	if balanced {
		notices = e.notices(text, tokens)
	}
	r := &rewriter{
		ctx: ctx, tokens: tokens, times: e.catalog.times(), numbers: e.catalog.named(U64), listed: e.catalog.listed(),
		keys: e.catalog.keys(), columns: e.catalog.columns(),
	}
	r.names()
	if err := r.literals(); err != nil {
		return nil, &Error{Message: err.Error(), Position: positionAt(text, r.failedAt)}
	}
	if balanced { // SQLite rejects unbalanced ones
		if err := r.casts(); err != nil {
			return nil, &Error{Message: err.Error(), Position: positionAt(text, r.failedAt)}
		}
		r.arithmetic()
		r.lists()
		r.unsigned()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	q := &rewritten{source: text, tokens: r.tokens, notices: notices, explains: len(r.tokens) > 0 && r.tokens[0].is("explain")}
	if balanced {
		q.types = r.types(e.catalog)
	}
	q.join()
	return q, nil
}

// tokens returns the tokens of a single statement that is permitted.
func (e *Engine) tokens(text string) ([]token, error) {
	if len(text) > maxQuery {
		return nil, &Error{Message: fmt.Sprintf("the query is longer than %d MiB", maxQuery>>20)}
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) > maxTokens {
		return nil, &Error{Message: fmt.Sprintf("the query has more than %d names, values and operators", maxTokens)}
	}
	if tokens, err = single(text, tokens); err != nil {
		return nil, err
	}
	return e.checkStatement(text, tokens)
}

// join makes the text of the rewritten query from its tokens.
func (q *rewritten) join() {
	var b strings.Builder
	for i, t := range q.tokens {
		if i > 0 && !adjacent(q.source, q.tokens[i-1], t) {
			b.WriteByte(' ')
		}
		q.begins = append(q.begins, b.Len())
		b.WriteString(t.text)
		q.collated = q.collated || t.is("collate")
	}
	q.text = b.String()
}

// parentheses reports whether all parentheses are balanced. It returns an error if they are nested
// too deeply.
func parentheses(text string, tokens []token) (balanced bool, err error) {
	depth := 0
	balanced = true
	for _, t := range tokens {
		depth += nesting(t)
		balanced = balanced && depth >= 0
		if depth > maxNesting {
			return false, &Error{Message: fmt.Sprintf("parentheses are nested more than %d deep", maxNesting), Position: positionAt(text, t.at)}
		}
	}
	return balanced && depth == 0, nil
}

// adjacent reports whether two tokens are adjacent in the original text. They must then be
// adjacent in the rewritten text as well: SQLite names a column by its text, and count(*) must
// not become count ( * ).
func adjacent(source string, a, b token) bool {
	return b.at == a.at+len(a.text) && strings.HasPrefix(source[min(a.at, len(source)):], a.text+b.text)
}

// single returns the tokens of a query without its final semicolons. It returns an error unless
// there is exactly one statement.
func single(text string, tokens []token) ([]token, error) {
	for i, t := range tokens {
		if !t.is(";") {
			continue
		}
		for _, rest := range tokens[i:] {
			if !rest.is(";") {
				return nil, &Error{Message: "one query at a time", Position: positionAt(text, rest.at)}
			}
		}
		tokens = tokens[:i]
		break
	}
	if len(tokens) == 0 {
		return nil, &Error{Message: "the query is empty", Suggestion: "try SELECT * FROM sys_invocation LIMIT 10"}
	}
	return tokens, nil
}

// checkStatement checks the kind of the statement, and replaces kinds that SQLite does not have.
func (e *Engine) checkStatement(text string, tokens []token) ([]token, error) {
	first := tokens[0]
	switch {
	case first.is("select", "with", "values", "("):
		return tokens, nil
	case first.is("explain"):
		rest := tokens[1:]
		for len(rest) > 0 && rest[0].is("analyze", "verbose", "query", "plan") {
			rest = rest[1:]
		}
		return append(synthetic(first.at, "EXPLAIN", "QUERY", "PLAN"), rest...), nil
	case first.is("show") && len(tokens) == 2 && tokens[1].is("tables"):
		return lex(`SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables`)
	case first.is("show") && len(tokens) >= 4 && tokens[1].is("columns"):
		return e.describe(text, tokens[len(tokens)-1])
	case first.is("describe", "desc") && len(tokens) >= 2:
		return e.describe(text, tokens[len(tokens)-1])
	case first.is("describe", "desc"):
		return nil, &Error{Message: "DESCRIBE needs the name of a table", Suggestion: "SHOW TABLES lists them"}
	case first.is("show"):
		return nil, &Error{Message: "SHOW TABLES and SHOW COLUMNS FROM <table> are possible", Position: positionAt(text, first.at)}
	}
	return nil, &Error{Message: notReading, Position: positionAt(text, first.at)}
}

// describe returns a query for the columns of a table.
func (e *Engine) describe(text string, table token) ([]token, error) {
	name := strings.ToLower(table.name())
	if !e.catalog.known(name) {
		err := &Error{Message: "there is no table " + cmp.Or(table.name(), table.text), Position: positionAt(text, table.at)}
		if near := nearest(name, "table", e.tableNames()); near != "" {
			err.Suggestion = "did you mean " + near + "?"
		} else {
			err.Suggestion = e.whereListed("table", nil)
		}
		return nil, err
	}
	return lex(`SELECT column_name, data_type, description FROM information_schema.columns WHERE table_name = '` +
		strings.ReplaceAll(name, "'", "''") + `' ORDER BY ordinal_position`)
}

// synthetic returns tokens that replace text at a position.
func synthetic(at int, texts ...string) []token {
	out := make([]token, len(texts))
	for i, text := range texts {
		k := word
		switch {
		case text[0] == '\'':
			k = str
		case isDigit(text[0]) || text[0] == '-' && len(text) > 1:
			k = num
		case !isWordStart(text[0]):
			k = punct
		}
		out[i] = token{k, text, at}
	}
	return out
}

// origin maps a position in the rewritten text to the original.
func (q *rewritten) origin(offset int) int {
	at := len(q.source)
	for i, begin := range q.begins {
		if begin > offset {
			break
		}
		at = q.tokens[i].at
	}
	return at
}

// find returns the position of a name, -1 if it does not occur.
func (q *rewritten) find(name string) int {
	for _, t := range q.tokens {
		if strings.EqualFold(t.name(), name) {
			return t.at
		}
	}
	return -1
}

// times are the names of all columns of type timestamp.
func (c *catalog) times() map[string]bool { return c.named(Timestamp) }

// columns are the names of all columns.
func (c *catalog) columns() map[string]bool {
	names := map[string]bool{}
	for _, t := range c.tables {
		for _, col := range t.Columns {
			names[col.Name] = true
		}
	}
	return names
}

// named returns the names of all columns of a type.
func (c *catalog) named(want Type) map[string]bool {
	names := map[string]bool{}
	for _, t := range c.tables {
		for _, col := range t.Columns {
			if col.Type == want {
				names[col.Name] = true
			}
		}
	}
	return names
}

// Columns with the partition keys that belong to a partition.
const (
	startKey = "start_key"
	endKey   = "end_key"
)

// keys returns the names of all columns with partition keys.
func (c *catalog) keys() map[string]bool {
	names := map[string]bool{}
	for _, t := range c.tables {
		for i, col := range t.Columns {
			if t.fields[i] == byPartitionKey || col.Name == startKey || col.Name == endKey {
				names[col.Name] = true
			}
		}
	}
	return names
}
