package cluster

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestElectionsUnderCPUSaturation saturates all CPUs under load. A slow leader is not a
// failed one: each partition may change its leader at most once.
func TestElectionsUnderCPUSaturation(t *testing.T) {
	if os.Getenv("CLUSTER_BURN") == "" {
		t.Skip("set CLUSTER_BURN to the number of seconds to saturate all CPUs")
	}
	b := newTestbed(t, testbedOptions{})
	run := b.startLoad(t, false)
	before := b.leaderTerms(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(intSetting(t, "CLUSTER_BURN", 60))*time.Second)
	defer cancel()
	var spinners sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		spinners.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	spinners.Wait()
	changes := map[int]int{}
	for id, term := range b.leaderTerms(t) {
		changes[id] = term - before[id]
		require.LessOrEqual(t, changes[id], 1, "leader changes of partition %d", id)
	}
	require.NoError(t, b.awaitRecovery(t.Context()))
	require.NoError(t, run.Stop(t.Context()).Err())
	t.Logf("leader changes by partition: %v", changes)
}

// leaderTerms returns the term of each partition's leader.
func (b *testbed) leaderTerms(t *testing.T) (terms map[int]int) {
	require.Eventually(t, func() bool {
		state, err := b.Nodes[0].State(t.Context())
		if err != nil {
			return false
		}
		terms = map[int]int{}
		for _, p := range state.Partitions {
			if p.Leader == 0 {
				return false
			}
			terms[p.ID] = p.Term
		}
		return len(terms) > 0
	}, recoveryTimeout, 20*time.Millisecond)
	return terms
}
