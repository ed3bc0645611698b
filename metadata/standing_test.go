package metadata

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStandingOfFormerNodes(t *testing.T) {
	s := newMemStore()
	for _, n := range []Node{{Name: "n1", Incarnation: "01A"}, {Name: "n2", Incarnation: "01B"}, {Name: "n3", Incarnation: "01C"}} {
		_, err := s.RegisterNode(t.Context(), n)
		require.NoError(t, err)
	}
	_, err := s.RemoveNode(t.Context(), 2, true)
	require.NoError(t, err)
	_, err = s.RegisterNode(t.Context(), Node{Name: "n3", Incarnation: "01D"})
	require.NoError(t, err)

	require.Empty(t, s.Standing("n1", "01A"))
	require.Empty(t, s.Standing("n9", "01A"), "nobody of that name is known")
	require.Contains(t, s.Standing("n2", "01B"), "removed")
	require.Contains(t, s.Standing("n3", "01C"), "another data directory")
	require.Empty(t, s.Standing("n3", "01D"))
	require.Empty(t, s.Standing("n3", "01E"), "this record may be older")

	err = &RemovedError{Node: "n2", Reason: "why.", Data: "/data/n2"}
	require.ErrorIs(t, err, ErrNodeRemoved)
	require.False(t, errors.Is(err, ErrNodeInUse))
	require.Equal(t, "node n2 was removed from the cluster: why; its data is not used any more. Stop using this node, or let it join again as a new one: move /data/n2 away and start it", err.Error())
}
