package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/node/offline"
	"platform/metadata"
)

// TestTheMajorityStopsOnceTheClusterWasRecoveredWithoutIt recovers a node while the others continue:
// these stop once they can reach it again, although it refuses their gossip and does not know them.
func TestTheMajorityStopsOnceTheClusterWasRecoveredWithoutIt(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.stop(0)
	_, err := offline.RecoverDirectory(c.dataOf(0), false, time.Now())
	require.NoError(t, err)
	c.nodes[0].cfg.MetadataClient.Addresses = nil
	c.start(0)
	c.healthy(1, 0)
	for _, i := range []int{1, 2} {
		select {
		case err := <-c.nodes[i].done:
			require.ErrorIs(t, err, metadata.ErrNodeRemoved)
			c.nodes[i].cancel = nil
		case <-time.After(waitTimeout):
			require.FailNow(t, "the node continues", "n%d", i+1)
		}
	}
}
