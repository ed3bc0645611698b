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

// TestElectionsUnderCPUBurn burns all processors under load. A leader that is slow is not
// silent: each partition may have one other leader at most.
func TestElectionsUnderCPUBurn(t *testing.T) {
	if os.Getenv("CLUSTER_BURN") == "" {
		t.Skip("burns all processors; CLUSTER_BURN says for how many seconds")
	}
	b := newBed(t, bedOptions{})
	run := b.load(t, false)
	before := b.terms(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(number(t, "CLUSTER_BURN", 60))*time.Second)
	defer cancel()
	var burning sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		burning.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	burning.Wait()
	changes := map[int]int{}
	for id, term := range b.terms(t) {
		changes[id] = term - before[id]
		require.LessOrEqual(t, changes[id], 1, "leader changes of partition %d", id)
	}
	require.NoError(t, b.mend(t.Context()))
	require.NoError(t, run.Stop(t.Context()).Err())
	t.Logf("leader changes by partition: %v", changes)
}

// terms are those of the leaders of all partitions.
func (b *bed) terms(t *testing.T) (terms map[int]int) {
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
	}, wholeIn, 20*time.Millisecond)
	return terms
}
