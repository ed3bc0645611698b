package query

import (
	"fmt"
	"strings"

	"modernc.org/sqlite/vtab"
)

// noteMark separates a plan from its description in the text that SQLite stores and shows.
const noteMark = "|"

// note describes a plan: the table, and the conditions that select what is read of it.
func (t *virtual) note(p *plan) string {
	var b strings.Builder
	b.WriteString(t.Name)
	for i, c := range p.conditions {
		b.WriteString([...]string{": ", " AND "}[min(i, 1)])
		b.WriteString(t.Columns[c.column].Name)
		b.WriteString(operators[c.op])
	}
	return b.String()
}

// operators are the texts of the operators of conditions.
var operators = map[vtab.ConstraintOp]string{
	vtab.OpEQ: " = ?", vtab.OpIS: " IS ?", vtab.OpMATCH: " IN (…)", vtab.OpNE: " <> ?", vtab.OpISNOT: " IS NOT ?", vtab.OpISNULL: " IS NULL", vtab.OpISNOTNULL: " IS NOT NULL",
	vtab.OpLT: " < ?", vtab.OpLE: " <= ?", vtab.OpGT: " > ?", vtab.OpGE: " >= ?",
}

// planStep is a row of SQLite's plan.
type planStep struct {
	id, parent int64
	detail     string
}

// runExplain runs EXPLAIN: its rows are the steps of the plan, indented below those that they belong
// to.
func (s *session) runExplain(q *rewritten, st *statement, rows Rows) error {
	var steps []planStep
	for {
		more, err := st.step()
		if err != nil {
			return s.explain(q, err)
		}
		if !more {
			break
		}
		if s.ctx.Err() != nil {
			return s.engine.ended(s.ctx)
		}
		steps = append(steps, planStep{st.int(0), st.int(1), string(st.bytes(3))})
	}
	if len(steps) == 0 {
		steps = []planStep{{detail: "nothing is read"}}
	}
	depths := map[int64]int{}
	var text strings.Builder
	text.WriteString("SELECT column1 AS step, column2 AS plan FROM (VALUES ")
	for i, step := range steps {
		depth := 0
		if above, known := depths[step.parent]; known {
			depth = above + 1
		}
		depths[step.id] = depth
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "(%d,'%s')", i+1, strings.ReplaceAll(strings.Repeat("  ", depth)+describeStep(step.detail), "'", "''"))
	}
	text.WriteByte(')')
	return s.runText(q, text.String(), rows)
}

// describeStep returns a step of SQLite's plan in the words of this documentation.
func describeStep(detail string) string {
	if head, rest, found := strings.Cut(detail, " VIRTUAL TABLE INDEX "); found {
		alias := strings.TrimPrefix(head, "SCAN ")
		_, note, _ := strings.Cut(rest, noteMark)
		note, suffix, _ := strings.Cut(note, " LEFT-JOIN")
		table, conditions, narrowed := strings.Cut(note, ": ")
		if alias != table {
			table += " AS " + alias
		}
		text := "read all of " + table
		if narrowed {
			text = "read from " + table + " where " + conditions
		}
		if suffix != "" || strings.HasSuffix(detail, " LEFT-JOIN") {
			text += ", as the right side of a LEFT JOIN"
		}
		return text
	}
	if what, found := strings.CutPrefix(detail, "USE TEMP B-TREE FOR "); found {
		return "sort for " + what
	}
	words := strings.Fields(detail)
	for i, word := range words {
		if len(word) > 1 && word == strings.ToUpper(word) {
			words[i] = strings.ToLower(word)
		}
	}
	return strings.Join(words, " ")
}
