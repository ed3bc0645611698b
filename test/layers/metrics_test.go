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

// Dashboards and alerts of users outlive an upgrade: a metric, or a label of one, that the last release
// had is exported under its old name, too, until the next release. testdata/metrics.txt has those of the
// last release; it is replaced by the rows of docs/metrics.md when there is another one.
func TestMetricsOfTheLastReleaseAreStillThere(t *testing.T) {
	now := documentedMetrics(t, filepath.Join(root, "docs", "metrics.md"))
	last, err := os.ReadFile(filepath.Join("testdata", "metrics.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(last)) {
		fields := strings.Fields(line)
		labels, documented := now[fields[0]]
		if assert.True(t, documented, "%s is not exported any longer", fields[0]) {
			assert.Subset(t, labels, fields[1:], "%s has lost labels", fields[0])
		}
	}
}

// documentedMetrics returns the labels of each metric in the table for operators.
func documentedMetrics(t *testing.T, path string) map[string][]string {
	table, err := os.ReadFile(path)
	require.NoError(t, err)
	values := regexp.MustCompile(":( `[a-z_]+`,?)+")
	found := map[string][]string{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`platform_") {
			continue
		}
		labels := strings.FieldsFunc(values.ReplaceAllString(cells[2], ","), func(r rune) bool { return r == ',' || r == ' ' })
		for name := range strings.SplitSeq(cells[1], ",") {
			found[strings.Trim(name, " `")] = labels
		}
	}
	return found
}
