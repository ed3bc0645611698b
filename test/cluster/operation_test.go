package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRollingRestarts restarts one node after the other in order, each as soon as the
// one before is ready, under load. Clients leave a node when its health says so; no
// request may fail, neither there nor elsewhere.
func TestRollingRestarts(t *testing.T) {
	b := newBed(t, bedOptions{})
	answered, took := 0, []time.Duration(nil)
	var gaps []time.Duration
	for range number(t, "CLUSTER_ROLLS", 1) {
		run := b.load(t, false)
		for i := range b.Nodes {
			begin := time.Now()
			require.NoError(t, b.roll(t.Context(), i))
			took = append(took, time.Since(begin))
			b.nodes.Well(i)
		}
		report := run.Stop(t.Context())
		require.NoError(t, report.Err())
		answered += report.OK
		gaps = append(gaps, slices.Max(report.Gaps))
	}
	t.Logf("%d restarts, %d requests, 0 failed; a restart took p50 %s max %s; longest gap of a key p50 %s max %s",
		len(took), answered, quantile(took, 0.5), quantile(took, 1), quantile(gaps, 0.5), quantile(gaps, 1))
}

// TestFreshClusterAnswersSoon starts fresh nodes at once and takes the time until a
// service is registered and a call through each node is answered.
func TestFreshClusterAnswersSoon(t *testing.T) {
	b := prepareBed(t, bedOptions{})
	begin := time.Now()
	require.NoError(t, b.Launch())
	require.Eventually(t, func() bool {
		return b.Nodes[0].Register(t.Context(), b.service.URI(), false) == nil
	}, 30*time.Second, 5*time.Millisecond)
	registered := time.Since(begin)
	for i := range b.Nodes {
		b.awaitAnswer(t, i, 30*time.Second)
	}
	answered := time.Since(begin)
	require.NoError(t, b.AwaitHealthy(t.Context()))
	require.NoError(t, b.AwaitReplicated(t.Context(), wholeIn))
	t.Logf("registered after %s, answered on every node after %s, whole after %s",
		registered.Round(time.Millisecond), answered.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	require.Less(t, answered, 30*time.Second) // 2 s on an idle machine
}
