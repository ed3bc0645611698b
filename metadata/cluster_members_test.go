package metadata

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemovalReasonOfFormerNodes(t *testing.T) {
	s := newMemStore()
	for _, n := range []Node{{Name: "n1", Incarnation: "01A"}, {Name: "n2", Incarnation: "01B"}, {Name: "n3", Incarnation: "01C"}} {
		_, err := s.RegisterNode(t.Context(), n)
		require.NoError(t, err)
	}
	_, err := s.RemoveNode(t.Context(), 2, true)
	require.NoError(t, err)
	_, err = s.RegisterNode(t.Context(), Node{Name: "n3", Incarnation: "01D"})
	require.NoError(t, err)

	require.Empty(t, s.RemovalReason("n1", "01A"))
	require.Empty(t, s.RemovalReason("n9", "01A"), "there is no record with that name")
	require.Contains(t, s.RemovalReason("n2", "01B"), "removed")
	require.Contains(t, s.RemovalReason("n3", "01C"), "another data directory")
	require.Empty(t, s.RemovalReason("n3", "01D"))
	require.Empty(t, s.RemovalReason("n3", "01E"), "this record may be older")

	err = &RemovedError{Node: "n2", Reason: "why.", Data: "/data/n2"}
	require.ErrorIs(t, err, ErrNodeRemoved)
	require.False(t, errors.Is(err, ErrNodeInUse))
	require.Equal(t, "node n2 was removed from the cluster: why; its data is no longer used. Stop using this node, or let it join again as a new one: move /data/n2 away and start it", err.Error())
}
