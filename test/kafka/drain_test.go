package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// patch sends a request to the admin API, and repeats it while the node does not respond.
func patch(t testing.TB, c *harness.Cluster, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, c.Nodes[0].Admin()+path, bytes.NewReader(text))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode < 300
	}, time.Minute, 200*time.Millisecond, path)
}

// TestDrainsAndEdits reads a topic while a node is drained, and while the sink changes between
// handlers with and without keys. Each record becomes one invocation.
func TestDrainsAndEdits(t *testing.T) {
	const records, partitions, steps = 12_000, 6, 6
	b := startBrokers(t, 1)
	b.topic("orders", partitions)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	sub := post(t, c, "/subscriptions", map[string]any{
		"source": "kafka://main/orders", "sink": "service://Orders/add", "options": map[string]string{"auto.offset.reset": "earliest"},
	})
	for step := range steps {
		for i := range records / steps {
			b.client.Produce(t.Context(), record("orders", partitions, step*records/steps+i), nil)
		}
		switch step {
		case 1:
			patch(t, c, "/cluster/nodes/n3/drain?force=true", nil)
		case 4:
			patch(t, c, "/cluster/nodes/n3/undrain", nil)
		default:
			sink := []string{"Orders/add", "Plain/run"}[step/2%2]
			patch(t, c, fmt.Sprintf("/subscriptions/%v", sub["id"]), map[string]any{"sink": "service://" + sink})
		}
		require.NoError(t, b.client.Flush(t.Context()))
		await(t, l, (step+1)*records/steps*3/4, 3*time.Minute) // the rest is in flight
	}
	await(t, l, records, 3*time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.invocations, records)
	require.Empty(t, l.doubled)
}
