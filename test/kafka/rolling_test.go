package kafka

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// stop lets a broker shut down, as in an upgrade: it transfers its leaderships first.
func (nd *broker) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, nd.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-nd.exited:
	case <-time.After(2 * time.Minute):
		nd.kill()
		t.Fatal("the broker does not shut down")
	}
}

// TestRollingRestartOfBrokers restarts three brokers one after the other, as an upgrade does, while
// records are produced and read. Each becomes one invocation, in the order of its key, and the
// subscription reads on between the restarts. It is part of `make test-kafka`: three brokers take
// minutes to start beside other tests.
func TestRollingRestartOfBrokers(t *testing.T) {
	const partitions, brokerCount = 6, 3
	if setting(t, "KAFKA_BROKERS", 1) != brokerCount {
		t.Skip("runs with KAFKA_BROKERS=3")
	}
	records := setting(t, "KAFKA_ROLLING_RECORDS", 6000)
	b := startBrokers(t, brokerCount)
	b.topic("orders", partitions)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	post(t, c, "/subscriptions", map[string]any{
		"source": "kafka://main/orders", "sink": "service://Orders/add", "options": map[string]string{"auto.offset.reset": "earliest"},
	})
	produced := 0
	produce := func(until int) {
		for ; produced < until; produced++ {
			b.client.Produce(t.Context(), record("orders", partitions, produced), nil)
		}
	}
	for i, nd := range b.nodes {
		produce(records * (3*i + 1) / 9)
		nd.stop(t)
		produce(records * (3*i + 2) / 9)
		require.NoError(t, b.client.Flush(t.Context()))
		await(t, l, produced, 3*time.Minute) // by the other two brokers
		nd.start(t)
		produce(records * (3*i + 3) / 9)
		require.NoError(t, b.client.Flush(t.Context()))
		await(t, l, produced, 3*time.Minute)
		b.inSync(t, "orders")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.invocations, records)
	require.Empty(t, l.doubled)
	require.Empty(t, l.disordered)
}

// inSync waits until all replicas of a topic are in sync, as an operator does before the next restart.
func (b *brokers) inSync(t testing.TB, topic string) {
	t.Helper()
	require.Eventually(t, func() bool {
		details, err := b.admin.ListTopics(t.Context(), topic)
		if err != nil {
			return false
		}
		for _, p := range details[topic].Partitions {
			if len(p.ISR) < len(p.Replicas) {
				return false
			}
		}
		return true
	}, 2*time.Minute, 100*time.Millisecond, "the replicas are in sync")
}
