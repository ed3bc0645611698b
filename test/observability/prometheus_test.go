package observability

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestEveryPanelHasData runs the queries of the dashboard in a Prometheus that scrapes a cluster
// of three nodes under load.
func TestEveryPanelHasData(t *testing.T) {
	program := installed(t, "prometheus")
	client, err := harness.Build("platform/cmd/platform")
	require.NoError(t, err)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	service := harness.ServiceFor(t, harness.ServiceOptions{Name: "greeter", Command: []string{"sh", "-c", `exec "$0" sample --listen "$HOST:$PORT"`, client}})
	require.NoError(t, c.AwaitReplicated(t.Context(), time.Minute))
	require.NoError(t, c.Nodes[0].Register(t.Context(), service.URI(), false))
	rules, err := filepath.Abs(alerts)
	require.NoError(t, err)
	base := startPrometheus(t, program, rules, c.Nodes...)

	missing := panelExpressions(t)
	deadline := time.Now().Add(time.Minute)
	for len(missing) > 0 && time.Now().Before(deadline) {
		for _, n := range c.Nodes { // the rates are of the load between two scrapes
			for range 5 {
				r, err := n.Client.Call(t.Context(), "Greeter/greet", []byte(`"x"`))
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, r.Status, "%s", r.Body)
			}
			_, err := n.Client.Call(t.Context(), "Greeter/greet", []byte(`"" `))
			require.NoError(t, err)
		}
		for title, expressions := range missing {
			var left []string
			for _, e := range expressions {
				if !hasData(t, base, e) {
					left = append(left, e)
				}
			}
			if missing[title] = left; len(left) == 0 {
				delete(missing, title)
			}
		}
	}
	for _, optional := range []string{"Errors caused by the server", "Use of concurrency limits", "Invocations waiting for limits"} { // there were none
		delete(missing, optional)
	}
	require.Empty(t, missing)
	for _, n := range c.Nodes {
		followConventions(t, n)
	}
}

// unconventional are the findings that are accepted: this gauge has the name that dashboards for
// clusters of this kind use.
var unconventional = []string{`platform_failure_detector_nodes_total non-counter metrics should not have "_total" suffix`}

// followConventions checks the names, units and types of the metrics of a node.
func followConventions(t *testing.T, n *harness.Server) {
	check := exec.CommandContext(t.Context(), installed(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(read(t, n, "/metrics"))
	findings, err := check.CombinedOutput() // an error if there are findings
	require.Equal(t, unconventional, strings.Split(strings.TrimSpace(string(findings)), "\n"), "%v", err)
}

// startPrometheus starts a Prometheus that scrapes nodes and evaluates rules each second.
func startPrometheus(t *testing.T, program, rules string, nodes ...*harness.Server) (base string) {
	dir := t.TempDir()
	var targets []string
	for _, n := range nodes {
		targets = append(targets, "'"+n.NodeAddress()+"'")
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ['%s']\nscrape_configs: [{job_name: platform, static_configs: [{targets: [%s]}]}]\n", rules, strings.Join(targets, ", "))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := ln.Addr().String()
	require.NoError(t, ln.Close())
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			raw, _ := os.ReadFile(log.Name())
			t.Logf("prometheus:\n%s", raw)
		}
	})
	base = "http://" + address
	require.Eventually(t, func() bool {
		resp, err := http.Get(base + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
	return base
}

// hasData reports whether a query has a result that is a number.
func hasData(t *testing.T, base, expression string) bool {
	expression = strings.NewReplacer("$__rate_interval", "5s", `=~"$cluster"`, `=~".*"`, `=~"$service"`, `=~".*"`).Replace(expression)
	resp, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(expression))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", expression, raw)
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &answer))
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			return true
		}
	}
	return false
}
