package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Nodes that are restarted elsewhere get other addresses, without end.
func TestConnectionsToFormerAddressesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPeers(nil)
		for _, address := range []string{"a:1", "b:1"} {
			_, err := p.At(address)
			require.NoError(t, err)
		}
		former := p.conns["a:1"]
		time.Sleep(unusedAfter)
		_, err := p.At("b:1")
		require.NoError(t, err)
		time.Sleep(time.Second)
		_, err = p.At("c:1")
		require.NoError(t, err)
		require.Len(t, p.conns, 2)
		require.NotContains(t, p.conns, "a:1")
		require.ErrorContains(t, former.Close(), "closing")
		require.NoError(t, p.Close())
	})
}
