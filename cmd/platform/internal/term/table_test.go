package term

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"
)

func TestTablesWrapLongCellsInATerminal(t *testing.T) {
	id := "inv_1" + strings.Repeat("x", 33)
	render := func(columns int, rows ...[]string) string {
		var out bytes.Buffer
		p := &Printer{out: &out, columns: columns}
		p.Table("", []string{"ID", "TARGET", "MESSAGE"}, rows)
		return out.String()
	}
	short := []string{id, "Greeter/greet", "it is short"}
	long := []string{id, strings.Repeat("Service", 20), strings.Repeat("a failure ", 30) + "\n- a line of its own"}
	for name, tc := range map[string]struct {
		columns, widest int
		rows            [][]string
	}{
		"not a terminal":           {0, text.LongestLineLen(long[0]) + 2 + text.LongestLineLen(long[1]) + 2 + text.LongestLineLen(long[2]) - 1, [][]string{short, long}},
		"wide enough":              {80, 38 + 2 + 13 + 2 + 11, [][]string{short}},
		"long cells":               {160, 160, [][]string{short, long}},
		"too narrow in any case":   {80, 3*38 + 4, [][]string{short, long}},
		"one column is sufficient": {190, 190, [][]string{short, {id, long[1], "it is short"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(tc.columns, tc.rows...)
			require.LessOrEqual(t, text.LongestLineLen(got), tc.widest)
			require.Contains(t, got, id, "ids stay in one piece")
			for _, row := range tc.rows {
				for _, cell := range row {
					for word := range strings.FieldsSeq(cell) {
						require.Contains(t, strings.Join(strings.Fields(got), ""), word[:min(len(word), 9)])
					}
				}
			}
		})
	}
	require.Contains(t, render(160, long), "- a line of its own")
}
