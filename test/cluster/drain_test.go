package cluster

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"platform/internal/certs"
	"platform/test/harness"
)

// drainTimeout limits the drain of a node with little data.
const drainTimeout = time.Minute

// TestNodesWithCertificatesAreReplaced drains and removes the node that joined last and leads, after a new one has
// joined. The new node is suspended or killed while it receives logs that begin before their leader joined, and that
// leader is no longer in the partition table.
func TestNodesWithCertificatesAreReplaced(t *testing.T) {
	rounds := intSetting(t, "CLUSTER_DRAINS", 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds+2)*2*drainTimeout)
	defer cancel()
	b := prepareTestbed(t, testbedOptions{nodes: 4, env: nodeCertificates(t, "drains", "n1", "n2", "n3", "n4")})
	var first errgroup.Group
	for _, n := range b.Nodes[:3] {
		first.Go(func() error { return n.Restart(ctx) })
	}
	require.NoError(t, first.Wait())
	require.NoError(t, b.Nodes[0].Register(ctx, b.service.URI(), false))
	b.awaitVoters(ctx, t, 0, 3)
	counts := counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	for i := range 60 { // logs that take a while to send
		path := harness.Path("Counter", fmt.Sprint("later", i), "add") + "?delay=1h"
		resp, err := b.Nodes[i%3].Client.Send(ctx, path, bytes.Repeat([]byte{'1'}, 1<<20))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, resp.Status, "%s", resp.Body)
	}
	last, next := 2, 3 // the node that joined last, and the one that replaces it
	for range rounds {
		begin := time.Now()
		b.leadOn(ctx, t, last)
		require.NoError(t, b.Nodes[next].Restart(ctx))
		b.drain(ctx, t, last)
		b.interrupt(ctx, t, next)
		name := b.Nodes[last].Name()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			out, err := b.cli(t, 0, "cluster", "nodes", "remove", name, "--yes")
			require.NoError(c, err, out)
		}, drainTimeout, 100*time.Millisecond)
		t.Logf("%s was replaced by %s after %s", name, b.Nodes[next].Name(), time.Since(begin).Round(time.Millisecond))
		require.NoError(t, b.Nodes[last].Process.AwaitExit(time.Minute))
		require.NoError(t, b.Nodes[last].Wipe())
		b.awaitVoters(ctx, t, 0, 3)
		b.requireCounters(ctx, t, next, counts)
		b.addToCounters(ctx, t, 1, counts)
		last, next = next, last
	}
}

// drain begins to drain a node. The command line would begin later.
func (b *testbed) drain(ctx context.Context, t *testing.T, node int) {
	t.Helper()
	url := b.Nodes[0].Admin() + "/cluster/nodes/" + b.Nodes[node].Name() + "/drain"
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// interrupt suspends a node several times, for longer than the others' decisions about it hold, or kills it once.
func (b *testbed) interrupt(ctx context.Context, t *testing.T, node int) {
	t.Helper()
	n := b.Nodes[node]
	if rand.IntN(4) == 0 {
		harness.Sleep(ctx, rand.N(250*time.Millisecond))
		n.Kill()
		require.NoError(t, n.Restart(ctx))
		return
	}
	for range 2 {
		harness.Sleep(ctx, rand.N(250*time.Millisecond))
		require.NoError(t, n.Process.Signal(syscall.SIGSTOP))
		harness.Sleep(ctx, 1200*time.Millisecond)
		require.NoError(t, n.Process.Signal(syscall.SIGCONT))
	}
}

// leadOn transfers the leaderships of all partitions to a node, which has a replica of each.
func (b *testbed) leadOn(ctx context.Context, t *testing.T, node int) {
	t.Helper()
	args := []string{"cluster", "partitions", "transfer", "--to", b.Nodes[node].Name()}
	state, err := b.Nodes[0].State(ctx)
	require.NoError(t, err)
	for _, p := range state.Partitions {
		args = append(args, fmt.Sprint(p.ID))
	}
	out, err := b.cli(t, 0, args...)
	require.NoError(t, err, out)
}

// nodeCertificates returns the settings of a cluster whose nodes have certificates.
func nodeCertificates(t *testing.T, cluster string, names ...string) map[string]string {
	ca, err := certs.NewAuthority(cluster, time.Hour)
	require.NoError(t, err)
	packets, err := ca.PacketKey()
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name string, content []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	write("ca.crt", ca.CertPEM())
	write("gossip.key", packets)
	for _, name := range names {
		cert, key, err := ca.IssueNode(name, time.Hour)
		require.NoError(t, err)
		write(name+".crt", cert)
		write(name+".key", key)
	}
	return map[string]string{
		"CLUSTER_NAME": cluster, "BOOTSTRAP_EXPECT": "3", "DEFAULT_NUM_PARTITIONS": "4",
		"SECURITY__NODE_TLS__MODE":            "require",
		"SECURITY__NODE_TLS__CERT_FILE":       filepath.Join(dir, "{name}.crt"),
		"SECURITY__NODE_TLS__KEY_FILE":        filepath.Join(dir, "{name}.key"),
		"SECURITY__NODE_TLS__CA_FILE":         filepath.Join(dir, "ca.crt"),
		"SECURITY__NODE_TLS__PACKET_KEY_FILE": filepath.Join(dir, "gossip.key"),
	}
}
