package replicas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAReplicaIsRebuiltOnceItsLeaderHasNoticed checks that the data of a replica is kept while
// the leader may count on it, and the delays after a rebuild.
func TestAReplicaIsRebuiltOnceItsLeaderHasNoticed(t *testing.T) {
	var q quarantine
	start := time.Unix(1000, 0)
	require.True(t, q.add(1, "damaged"))
	require.False(t, q.add(1, "again"))
	require.False(t, q.due(1, start))
	require.False(t, q.due(1, start.Add(quarantineGrace-1)))
	require.True(t, q.due(1, start.Add(quarantineGrace)))
	start = start.Add(quarantineGrace)
	q.rebuilt(1, start)

	require.True(t, q.add(1, "again"))
	require.False(t, q.due(1, start))
	require.False(t, q.due(1, start.Add(rebuildPause-1)))
	require.True(t, q.due(1, start.Add(rebuildPause)))
	q.rebuilt(1, start.Add(rebuildPause))

	require.True(t, q.add(1, "again"))
	start = start.Add(3 * rebuildPause)
	require.False(t, q.due(1, start), "late, but just closed")
	require.True(t, q.due(1, start.Add(quarantineGrace)))
}
