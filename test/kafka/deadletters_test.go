package kafka

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

// TestDeadLettersOfACluster sets records aside while servers are killed, lists them on any node, and
// delivers each once.
func TestDeadLettersOfACluster(t *testing.T) {
	const records, partitions = 300, 6
	b := startBrokers(t, 1)
	b.topic("orders", partitions)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	sub := post(t, c, "/subscriptions?check=true", map[string]any{"source": "kafka://main/orders", "sink": "service://Orders/add", "on_error": "dead-letter"})
	path := fmt.Sprintf("/subscriptions/%v", sub["id"])
	for i := range records {
		b.client.Produce(t.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % partitions), Value: fmt.Appendf(nil, `{"n":%d}`, i)}, nil)
	}
	c.Nodes[1].Kill()
	restart(t, c.Nodes[1])
	require.NoError(t, b.client.Flush(t.Context()))
	for _, n := range c.Nodes {
		require.Eventually(t, func() bool { return len(lettersOf(n, path)) == records }, time.Minute, 100*time.Millisecond, "all are listed on %s", n.Admin())
	}
	patch(t, c, path, map[string]any{"sink": "service://Plain/run"})
	retry := func() {
		resp, err := http.Post(c.Nodes[0].Admin()+path+"/dead-letters/retry", "application/json", nil)
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	c.Nodes[2].Kill()
	retry()
	restart(t, c.Nodes[2])
	require.Eventually(t, func() bool {
		retry()
		left := lettersOf(c.Nodes[0], path)
		return left != nil && len(left) == 0 && l.count() >= records
	}, 2*time.Minute, 100*time.Millisecond, "all are delivered")
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.invocations, records)
	require.Empty(t, l.doubled)
}

// lettersOf returns the dead letters of a subscription as a node lists them; nil if not all nodes
// have responded.
func lettersOf(n *harness.Server, path string) []any {
	resp, err := http.Get(n.Admin() + path + "/dead-letters?limit=1000")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var page struct {
		Letters []any `json:"dead_letters"`
		Silent  []any `json:"silent_nodes"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Silent) > 0 {
		return nil
	}
	return page.Letters
}
