package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
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

// platform runs the command-line client against a node.
func platform(t testing.TB, n *harness.Server, args ...string) {
	t.Helper()
	bin, err := harness.Build("platform/cmd/platform")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), "PLATFORM_ADMIN_URL="+n.Admin())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "platform %s: %s", strings.Join(args, " "), out)
}

// idOf returns the ID of a node, which depends on the order in which the nodes registered.
func idOf(t testing.TB, n *harness.Server, name string) ids.Node {
	t.Helper()
	state, err := n.State(t.Context())
	require.NoError(t, err)
	for _, node := range state.Nodes {
		if node.Name == name {
			return node.ID
		}
	}
	t.Fatalf("no node %s in %+v", name, state.Nodes)
	return 0
}

// readBy returns how many topic partitions of a subscription a node reads.
func readBy(n *harness.Server, path string, node ids.Node) (count int) {
	resp, err := http.Get(n.Admin() + path)
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	var answer struct{ Partitions []struct{ Node ids.Node } }
	if json.NewDecoder(resp.Body).Decode(&answer) != nil || len(answer.Partitions) == 0 {
		return -1
	}
	for _, p := range answer.Partitions {
		if p.Node == node {
			count++
		}
	}
	return count
}

// TestDrainOfNodesThatRead drains two of three nodes, one after the other, with the command that
// operators use, while records flow. Each record becomes one invocation, in the order of its key.
func TestDrainOfNodesThatRead(t *testing.T) {
	const partitions = 24 // each node reads some
	atATime := setting(t, "KAFKA_DRAIN_RECORDS", 3000)
	b := startBrokers(t, 1)
	b.topic("orders", partitions)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3})
	admin := c.Nodes[0]
	require.NoError(t, admin.Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})
	sub := post(t, c, "/subscriptions?check=true", map[string]any{"source": "kafka://main/orders", "sink": "service://Orders/add"})
	path := fmt.Sprintf("/subscriptions/%v", sub["id"])

	flow, stop := context.WithCancel(t.Context())
	defer stop()
	produced := make(chan int, 1)
	go func() { // until stop, with a small backlog
		i := 0
		for ; flow.Err() == nil; i++ {
			b.client.Produce(t.Context(), record("orders", partitions, i), nil)
			for i%100 == 99 && l.count() < i-1000 && harness.Sleep(flow, 5*time.Millisecond) {
			}
		}
		produced <- i
	}()
	for _, node := range []string{"n3", "n2"} {
		id := idOf(t, admin, node)
		require.Eventually(t, func() bool { return readBy(admin, path, id) > 0 }, 2*time.Minute, 100*time.Millisecond, "%s reads", node)
		await(t, l, l.count()+atATime, 3*time.Minute)
		platform(t, admin, "cluster", "nodes", "drain", node, "--force", "--yes")
		require.Eventually(t, func() bool {
			state, err := admin.State(t.Context())
			return err == nil && state.PartitionsLed(node) == 0 && readBy(admin, path, id) == 0
		}, 2*time.Minute, 100*time.Millisecond, "%s is drained", node)
		await(t, l, l.count()+atATime, 3*time.Minute)
		platform(t, admin, "cluster", "nodes", "undrain", node)
	}
	await(t, l, l.count()+atATime, 3*time.Minute)
	stop()
	records := <-produced
	require.NoError(t, b.client.Flush(t.Context()))
	await(t, l, records, 3*time.Minute)
	require.Eventually(t, func() bool { return countOfKeys(t, c, "Orders") >= int64(records) }, time.Minute, time.Second)
	require.EqualValues(t, records, countOfKeys(t, c, "Orders"), "the handlers counted each record once")
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.invocations, records)
	require.Empty(t, l.doubled)
	require.Empty(t, l.disordered)
	t.Logf("%d records while two of three nodes were drained", records)
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
