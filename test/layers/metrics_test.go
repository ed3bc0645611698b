package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// describedMetric matches the description of a metric that is read at each scrape.
var describedMetric = regexp.MustCompile(`(?:metrics\.Desc|\bConstDesc)\(\s*"([a-z0-9_]+)"`)

// Metrics whose collector internal/node does not register, and which docs/metrics.md does not list
// either, exist in the code alone. The tests of a node compare docs/metrics.md with what it serves.
func TestEveryDescribedMetricIsDocumented(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	require.NoError(t, err)
	found := 0
	for _, folder := range []string{"admin", "flowcontrol", "ingress", "internal", "invoker", "metadata", "partition"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range describedMetric.FindAllStringSubmatch(string(text), -1) {
				found++
				// assert.Contains would print the table.
				assert.True(t, strings.Contains(string(table), "`platform_"+name[1]+"`"), "%s describes the metric platform_%s, which has no row in docs/metrics.md", path, name[1])
			}
			return err
		})
		require.NoError(t, err)
	}
	require.Greater(t, found, 40)
}
