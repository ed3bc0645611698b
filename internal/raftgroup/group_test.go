package raftgroup

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEightGroupsAloneLeadAtOnce(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	var configs []Config
	leading := make(chan uint32, 8)
	for id := range uint32(8) {
		cfg := n.config(id, memJournal(t), n.server0())
		cfg.Profile = Safe()
		cfg.Lead = func(ctx context.Context, _ uint64) error {
			leading <- id
			<-ctx.Done()
			return nil
		}
		configs = append(configs, cfg)
	}
	start := time.Now()
	groups := make([]*Group, len(configs))
	var wg sync.WaitGroup
	for i, cfg := range configs {
		wg.Go(func() {
			g, err := Open(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			groups[i] = g
		})
	}
	for range configs {
		<-leading
	}
	took := time.Since(start)
	t.Logf("8 groups lead after %v", took)
	wg.Wait()
	require.Less(t, took, Safe().HeartbeatTimeout/2, "waited for an election time-out")
	for _, g := range groups {
		require.NoError(t, g.Shutdown(t.Context()))
	}
}

func TestProposeAppliesAndReturnsTheResult(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	j := memJournal(t)
	g, err := Open(n.config(1, j, n.server0()))
	require.NoError(t, err)
	waitLeader(t, g)

	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for i := range 100 {
		n, err := p.Do(t.Context(), fmt.Appendf(nil, "command %d", i))
		require.NoError(t, err)
		require.Equal(t, uint64(i+1), n)
	}
	cancel()
	<-done
	require.NoError(t, g.Shutdown(t.Context()))
	got, err := j.commands()
	require.NoError(t, err)
	require.Len(t, got, 100)
}
