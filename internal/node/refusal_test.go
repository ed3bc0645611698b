package node

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster"
	"platform/internal/feature"
	nodepb "platform/proto/node"
)

// The response to a node that must not join says why, and what to do.
func TestNodesThatDoNotBelongAreRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	others := cluster.NewPeers(nil)
	t.Cleanup(func() { require.NoError(t, others.Close()) })
	n1, err := others.At(fmt.Sprintf("127.0.0.1:%d", c.nodes[0].cfg.BindPort))
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		change func(*nodepb.JoinRequest)
		want   string
		later  bool // it may be admitted at another time
	}{
		{"another cluster", func(r *nodepb.JoinRequest) { r.ClusterName = "other" }, "this is a node of another cluster; check cluster-name and metadata-client.addresses", false},
		{"another version", func(r *nodepb.JoinRequest) { r.Protocol, r.Version = cluster.Protocol+1, "9.9" }, "version 9.9 of the server is incompatible with version", false},
		{"a server of the first release", func(r *nodepb.JoinRequest) { r.FeatureLevel = 0 }, "this server supports feature level 1; the cluster is at " + fmt.Sprint(uint32(feature.Newest)) + " since 20", false},
		{"a used name", func(r *nodepb.JoinRequest) { r.Name = "n1" }, "node n1 runs with another data directory; choose another name", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := &nodepb.JoinRequest{
				ClusterName: "localcluster", Protocol: cluster.Protocol, Version: "1", Name: "n9", Incarnation: "01M7YV7GGAXQP43WPQP5DZPY0H", FabricAddress: "http://127.0.0.1:9",
				FeatureLevel: uint32(feature.Supported()),
			}
			tc.change(req)
			resp, err := n1.Join(t.Context(), req)
			if tc.later {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.Contains(t, resp.Refusal, tc.want)
		})
	}
	require.EqualValues(t, 4, others.Sent()["Join"])
}
