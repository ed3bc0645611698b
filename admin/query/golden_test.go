package query

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewriteGolden = flag.Bool("rewrite", false, "rewrite the golden files")

// TestColumnsOfAllTables pins the names and types that tools rely on.
func TestColumnsOfAllTables(t *testing.T) {
	var b strings.Builder
	for _, table := range newTestEngine(t, Config{}).Tables() {
		fmt.Fprintf(&b, "%s.%s\n", table.Schema, table.Name)
		for _, c := range table.Columns {
			fmt.Fprintf(&b, "  %-46s %s\n", c.Name, c.Type)
			require.NotEmpty(t, c.Description, table.Name+"."+c.Name)
		}
	}
	const path = "testdata/columns.txt"
	if *rewriteGolden {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "columns are only added; run with -rewrite to accept")
}
