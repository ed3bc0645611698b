package observability

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	dashboard = "../../deploy/grafana/platform.json"
	alerts    = "../../deploy/prometheus/alerts.yml"
)

// panelExpressions returns the queries of the dashboard, by panel.
func panelExpressions(t *testing.T) map[string][]string {
	raw, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &d))
	found := map[string][]string{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotContains(t, found, p.Title)
		for _, target := range p.Targets {
			found[p.Title] = append(found[p.Title], target.Expr)
		}
		require.NotEmpty(t, found[p.Title], p.Title)
	}
	return found
}

var (
	alertName  = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	metricName = regexp.MustCompile(`\bplatform_[a-z_]+`)
	suffix     = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// TestEveryMetricOfDashboardsAndAlertsExists compares them with the documented metrics, which
// are those of a node.
func TestEveryMetricOfDashboardsAndAlertsExists(t *testing.T) {
	table, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	known := metricName.FindAllString(string(table), -1)
	text := ""
	for _, list := range panelExpressions(t) {
		text += strings.Join(list, "\n") + "\n"
	}
	raw, err := os.ReadFile(alerts)
	require.NoError(t, err)
	for _, name := range metricName.FindAllString(text+string(raw), -1) {
		require.True(t, slices.Contains(known, name) || slices.Contains(known, suffix.ReplaceAllString(name, "")), name)
	}
}

// TestEveryAlertHasARunbook requires a section for each alert, and an alert for each section.
func TestEveryAlertHasARunbook(t *testing.T) {
	raw, err := os.ReadFile(alerts)
	require.NoError(t, err)
	books, err := os.ReadFile("../../docs/runbooks.md")
	require.NoError(t, err)
	var named, sections []string
	for _, m := range alertName.FindAllStringSubmatch(string(raw), -1) {
		named = append(named, m[1])
		require.Contains(t, string(raw), `runbook: "docs/runbooks.md#`+strings.ToLower(m[1])+`"`)
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(books), -1) {
		sections = append(sections, m[1])
	}
	require.NotEmpty(t, named)
	require.Equal(t, named, sections)
}

// TestAlerts feeds each alert with the metrics of its fault, and without.
func TestAlerts(t *testing.T) {
	promtool := installed(t, "promtool")
	for _, arguments := range [][]string{{"check", "rules", alerts}, {"test", "rules", "testdata/alerts.test.yml"}} {
		out, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	raw, err := os.ReadFile(alerts)
	require.NoError(t, err)
	tests, err := os.ReadFile("testdata/alerts.test.yml")
	require.NoError(t, err)
	for _, m := range alertName.FindAllStringSubmatch(string(raw), -1) {
		require.Contains(t, string(tests), "alertname: "+m[1]+"\n")
	}
}

// installed returns the path of a program, or skips the test.
func installed(t *testing.T, program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install prometheus)", program)
	}
	return path
}
