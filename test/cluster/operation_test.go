package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRollingRestarts gracefully restarts one node after another under load, each as soon
// as the previous one is healthy. Clients avoid a node when its health check fails; no
// request may fail.
func TestRollingRestarts(t *testing.T) {
	b := newTestbed(t, testbedOptions{})
	answered, took := 0, []time.Duration(nil)
	var gaps []time.Duration
	for range intSetting(t, "CLUSTER_ROLLS", 1) {
		run := b.startLoad(t, false)
		for i := range b.Nodes {
			begin := time.Now()
			require.NoError(t, b.restartGracefully(t.Context(), i))
			took = append(took, time.Since(begin))
			b.targets.MarkHealthy(i)
		}
		report := run.Stop(t.Context())
		require.NoError(t, report.Err())
		answered += report.OK
		gaps = append(gaps, slices.Max(report.Gaps))
	}
	t.Logf("%d restarts, %d requests, 0 failed; a restart took p50 %s max %s; longest gap of a key p50 %s max %s",
		len(took), answered, quantile(took, 0.5), quantile(took, 1), quantile(gaps, 0.5), quantile(gaps, 1))
}

// TestFreshClusterStartup starts new nodes concurrently and measures the time until a
// service is registered and a call through each node succeeds.
func TestFreshClusterStartup(t *testing.T) {
	b := prepareTestbed(t, testbedOptions{})
	begin := time.Now()
	require.NoError(t, b.Launch())
	require.Eventually(t, func() bool {
		return b.Nodes[0].Register(t.Context(), b.service.URI(), false) == nil
	}, recoveryTimeout, 5*time.Millisecond)
	registered := time.Since(begin)
	for i := range b.Nodes {
		b.awaitCall(t, i, recoveryTimeout)
	}
	answered := time.Since(begin)
	require.NoError(t, b.AwaitHealthy(t.Context()))
	require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
	t.Logf("registered after %s, calls through every node succeed after %s, fully replicated after %s",
		registered.Round(time.Millisecond), answered.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
}
