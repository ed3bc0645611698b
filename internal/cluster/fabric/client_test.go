package fabric

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Nodes that are restarted elsewhere get other addresses, without end.
func TestConnectionsToFormerAddressesAreDropped(t *testing.T) {
	former, idle := startNode(t, "c", localReplica(invokeFake())), startNode(t, "c", localReplica(invokeFake()))
	c := newClient(t, "c")
	for _, n := range []*testNode{former, idle} {
		_, err := c.Remote(n.address, 0).Invoke(t.Context(), invocation(1))
		require.NoError(t, err)
	}
	p, err := c.nodeConn(former.address)
	require.NoError(t, err)
	former.stop()
	<-p.link.calls.Ended()

	_, err = c.nodeConn("b:1")
	require.NoError(t, err)
	require.Len(t, c.conns, 3, "it may be back")
	p.brokenSince.Store(time.Now().Add(-2 * unusedAfter).UnixNano())
	_, err = c.nodeConn("c:1")
	require.NoError(t, err)
	require.Len(t, c.conns, 3)
	require.NotContains(t, c.conns, former.address)
	require.Contains(t, c.conns, idle.address, "it is connected")

	_, err = c.Remote(former.address, 0).Invoke(t.Context(), invocation(1))
	require.Error(t, err)
	require.Contains(t, c.conns, former.address, "it is needed again")
}
