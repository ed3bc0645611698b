package raftgroup

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTransfersCountUntilTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr transfers
		var ends atomic.Int32
		onEnd := func() { ends.Add(1) }
		tr.onEnd.Store(&onEnd)
		first, second := tr.begin(time.Minute), tr.begin(time.Hour)
		first()
		first()
		_, running := tr.state()
		require.True(t, running)
		time.Sleep(time.Hour + time.Second) // the second one does not end
		begun, running := tr.state()
		require.False(t, running)
		require.Equal(t, uint64(2), begun)
		second()
		require.EqualValues(t, 2, ends.Load())
	})
}

// During a transfer, Raft may refuse an entry in flight. The proposer learns of it late, so commands that follow must wait.
func TestNothingIsProposedWhileRaftMayRefuseIt(t *testing.T) {
	g, storage := heldGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	defer run(t, p)()
	var o outcomes
	ready := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.readyLocked()
	}

	end := g.transfers.begin(time.Hour)
	o.expect(t, p, []byte("during the transfer"))
	require.False(t, ready())
	end()
	o.wg.Wait()

	write := storage.Hold()
	o.expect(t, p, []byte("in flight"))
	<-write.Arrived
	end = g.transfers.begin(time.Hour)
	p.stored() // so that this is not what the next entry waits for
	o.expect(t, p, []byte("after it"))
	end()
	require.False(t, ready())
	_, bulk := p.takeBulk()
	require.False(t, bulk)
	close(write.Released)
	o.wg.Wait()
	require.Equal(t, []int{1, 1, 1}, seal.sizes)

	write = storage.Hold()
	o.expect(t, p, []byte("in flight"))
	<-write.Arrived
	g.transfers.begin(time.Hour)()
	o.wg.Add(1)
	require.NoError(t, p.SubmitBulk(Bulk{Size: 4, Encode: func() ([]byte, error) { return []byte("bulk"), nil }}, &o))
	_, bulk = p.takeBulk()
	require.False(t, bulk)
	close(write.Released)
	o.wg.Wait()
	require.Empty(t, o.errs)
}
