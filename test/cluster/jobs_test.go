package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/test/harness"
)

// job is a job as the admin API shows it.
type job struct {
	ID, State             string
	Matched, Done, Failed int
}

// adminRequest makes a request to the admin API of any node that responds.
func adminRequest(ctx context.Context, c *harness.Cluster, method, path string, body, into any) error {
	var last error
	for _, n := range c.Nodes {
		if !n.Process.Running() {
			continue
		}
		if last = requestJSON(ctx, method, n.Admin()+path, body, into); last == nil {
			return nil
		}
	}
	return last
}

// TestAJobSurvivesItsLeader kills the node that executes a job in the middle of it. The next
// leader continues: no invocation is missed, and none is counted twice.
func TestAJobSurvivesItsLeader(t *testing.T) {
	count := intSetting(t, "CLUSTER_JOB", 2000)
	client, err := harness.Build("platform/cmd/platform")
	require.NoError(t, err)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	service := harness.ServiceFor(t, harness.ServiceOptions{Name: "greeter", Command: []string{"sh", "-c", `exec "$0" sample --listen "$HOST:$PORT"`, client}})
	require.NoError(t, c.AwaitReplicated(t.Context(), time.Minute))
	require.NoError(t, c.Nodes[0].Register(t.Context(), service.URI(), false))

	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := c.Nodes[i%3].Client.Send(t.Context(), "Greeter/greet?delay=24h", []byte(`"x"`), "content-type", "application/json")
			if err != nil || r.Status >= 300 {
				t.Errorf("send %d: %v %v", i, r.Status, err)
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())

	var j job
	require.NoError(t, adminRequest(t.Context(), c, http.MethodPost, "/jobs", map[string]any{
		"operation": "kill", "filter": map[string]any{"service": "Greeter", "status": "scheduled"},
	}, &j))
	var health struct {
		Metadata struct{ Leader ids.Node } `json:"metadata_cluster_health"`
		Nodes    []harness.NodeState
	}
	require.NoError(t, adminRequest(t.Context(), c, http.MethodGet, "/cluster-health", nil, &health))
	require.Eventually(t, func() bool {
		return adminRequest(t.Context(), c, http.MethodGet, "/jobs/"+j.ID, nil, &j) == nil && (j.Done > 0 || j.State != "running")
	}, time.Minute, 10*time.Millisecond)
	for _, n := range health.Nodes {
		for _, node := range c.Nodes {
			if n.ID == health.Metadata.Leader && n.Name == node.Name() {
				node.Kill()
				t.Logf("killed %s, which executed the job, after %d of %d", n.Name, j.Done, count)
			}
		}
	}
	require.Eventually(t, func() bool {
		return adminRequest(t.Context(), c, http.MethodGet, "/jobs/"+j.ID, nil, &j) == nil && j.State != "running"
	}, 10*time.Minute, 100*time.Millisecond, "jobs give way to other requests, and are slow on a busy machine")
	require.Equal(t, job{ID: j.ID, State: "done", Matched: count, Done: count}, j)

	var left struct {
		Rows []struct{ N int }
	}
	require.Eventually(t, func() bool {
		err := adminRequest(t.Context(), c, http.MethodPost, "/query", map[string]any{
			"query": "SELECT COUNT(*) AS n FROM sys_invocation WHERE status <> 'completed'", "consistency": "strong",
		}, &left)
		return err == nil && len(left.Rows) == 1
	}, time.Minute, 100*time.Millisecond)
	require.Zero(t, left.Rows[0].N, "no invocation is left")
}

// requestJSON makes a request and decodes the response.
func requestJSON(ctx context.Context, method, url string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: status %d", method, url, response.StatusCode)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
