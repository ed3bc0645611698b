package raftgroup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/limits"
)

// A command above the limit could be written by the leader and not sent to any follower,
// so the group would never commit again.
func TestCommandAboveTheLimitIsRefusedPermanently(t *testing.T) {
	g, j := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	_, err = p.do(t.Context(), make([]byte, limits.StoredCommand+1))
	require.ErrorIs(t, err, ErrTooLarge)
	require.False(t, Definite(err), "proposing it again is pointless")

	_, err = g.Propose(make([]byte, limits.Entry+1)).Wait(t.Context())
	require.ErrorIs(t, err, ErrTooLarge)
	require.Zero(t, j.count)
}

// An old entry of almost 64 MiB, which the first release could write and not send, still
// reaches the followers.
func TestLargestEntryReachesEveryFollower(t *testing.T) {
	c := newTestClusterWith(t, 1024, func(cfg *Config) { cfg.Profile = Safe() }) // storing it takes longer than tests wait for a leader
	entry, err := sealJournal([][]byte{make([]byte, limits.Entry-64)})
	require.NoError(t, err)
	// Storing it may take a slow machine so long that the leader changes; then the entry is
	// proposed again.
	require.Eventually(t, func() bool {
		_, err := c.groups[c.leader()].Propose(entry).Wait(t.Context())
		return err == nil
	}, 2*time.Minute, time.Millisecond)
	c.awaitSame()
}

// Large commands are not refused as overload while nothing else waits, and few of them
// are under way at a time.
func TestLargeCommandsAreProposedFewAtATime(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := new(countingSeal)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, maxQueueBytes: 2 << 20, maxInFlightBytes: 3 << 20})
	require.NoError(t, err)
	var o outcomes
	o.expect(t, p, make([]byte, 4<<20))
	require.ErrorIs(t, p.Submit(make([]byte, 1<<20), 0, ignoreOutcome{}), ErrOverloaded)
	stop := run(t, p)
	defer stop()
	o.wg.Wait()
	for range 8 {
		for p.Submit(make([]byte, 1<<20), 0, ignoreOutcome{}) != nil {
			_, err := p.do(t.Context(), []byte("x")) // waits until the queue has moved
			if err != nil {
				require.ErrorIs(t, err, ErrOverloaded)
			}
		}
		p.mu.Lock()
		require.LessOrEqual(t, p.inBytes, 3<<20)
		p.mu.Unlock()
	}
	require.Empty(t, o.errs)
}
