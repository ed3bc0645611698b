package nodelink

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/proto/node"
)

func TestNodesOfOtherClustersAreNotAccepted(t *testing.T) {
	cluster := ""
	self := Identity{ClusterID: func() string { return cluster }, Node: "n1", Incarnation: "i", Address: "a:1"}
	other := Identity{ClusterID: func() string { return "c" }, Node: "n2", Incarnation: "j", Address: "b:1"}
	_, err := self.Verify(t.Context(), other.Hello())
	require.ErrorIs(t, err, ErrNoCluster)
	cluster = "c"
	peer, err := self.Verify(t.Context(), other.Hello())
	require.NoError(t, err)
	require.Equal(t, &Peer{Node: "n2", Incarnation: "j", Address: "b:1"}, peer)
	for name, h := range map[string]*node.Hello{"none": nil, "other cluster": {ClusterId: "d"}, "empty": {}} {
		_, err := self.Verify(t.Context(), h)
		require.Error(t, err, name)
	}
	long := strings.Repeat("\n", 1<<20)
	_, err = self.Verify(t.Context(), &node.Hello{ClusterId: long, NodeId: long, Address: long})
	require.ErrorContains(t, err, `belongs to cluster "\n`)
	require.Less(t, len(err.Error()), 1000, "strangers do not determine the length of the log message")
}

// TestAuthorizationIsRepeated requires that a node that was removed is noticed on a stream that
// it has.
func TestAuthorizationIsRepeated(t *testing.T) {
	removed, asked := error(nil), 0
	authorize := func(node, incarnation string) error {
		require.Equal(t, "n2 j", node+" "+incarnation)
		asked++
		return removed
	}
	now := time.Now()
	peer := &Peer{Node: "n2", Incarnation: "j", Authenticated: true}
	require.NoError(t, peer.Authorize(nil, now))
	require.NoError(t, peer.Authorize(authorize, now))
	removed = errors.New("removed")
	require.NoError(t, peer.Authorize(authorize, now.Add(AuthorizedFor-1)))
	require.Equal(t, 1, asked)
	require.ErrorIs(t, peer.Authorize(authorize, now.Add(AuthorizedFor)), removed)

	require.NoError(t, new(Peer).Authorize(authorize, now), "nothing is known about nodes without certificates")
}
