package query

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewriteGolden = flag.Bool("rewrite", false, "rewrite the golden files")

// TestColumnsOfAllTables pins the names and types that tools rely on, and who sees a column: payload
// is hidden from viewers; failure, the message of a failed invocation, attempt or job, and open are not.
func TestColumnsOfAllTables(t *testing.T) {
	const path = "testdata/columns.txt"
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	classes := classesOf(string(stored))
	var b strings.Builder
	for _, table := range newTestEngine(t, Config{}).Tables() {
		fmt.Fprintf(&b, "%s.%s\n", table.Schema, table.Name)
		for _, c := range table.Columns {
			name := table.Schema + "." + table.Name + "." + c.Name
			fmt.Fprintf(&b, "  %-46s %-10s %s\n", c.Name, c.Type, cmp.Or(classes[name], "?"))
			require.NotEmpty(t, c.Description, name)
			if !*rewriteGolden {
				require.Contains(t, []string{"payload", "failure", "open"}, classes[name], "%s: say in %s whether viewers see it", name, path)
				require.Equal(t, slices.Contains(payloadColumns[table.Name], c.Name), classes[name] == "payload", "%s: payloadColumns and %s disagree", name, path)
			}
		}
	}
	if *rewriteGolden {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return
	}
	require.Equal(t, string(stored), b.String(), "columns are only added; run with -rewrite to accept")
}

// classesOf returns the last word of each column, by schema, table and column.
func classesOf(text string) map[string]string {
	classes, table := map[string]string{}, ""
	for line := range strings.Lines(text) {
		switch words := strings.Fields(line); len(words) {
		case 1:
			table = words[0]
		case 3:
			classes[table+"."+words[0]] = words[2]
		}
	}
	return classes
}
