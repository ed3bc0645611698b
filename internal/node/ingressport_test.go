package node

import (
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/telemetry"
	"platform/metadata"
)

// The last node of a cluster remembers the removed ones.
func TestRemovedNodesServeNoClients(t *testing.T) {
	require.False(t, haveOthers(nil))
	require.False(t, haveOthers([]metadata.Node{{Name: "n1"}, {Name: "n2", Removed: true}}))
	require.True(t, haveOthers([]metadata.Node{{Name: "n1"}, {Name: "n2", Removed: true}, {Name: "n3"}}))
}

// A connection to a node that starts would wait until it serves, although the other nodes can serve it.
func TestANodeOfAClusterRefusesClientsUntilItServes(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			c := newTestCluster(t, nodes)
			for i := range nodes { // a node that is stopped while it joins reports that it could not
				c.healthy(nodes, i)
			}
			for i := range nodes {
				c.stop(i)
			}
			cfg, log := c.nodes[0].cfg, slog.New(slog.DiscardHandler)
			dial := func() error {
				conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", cfg.Ingress.BindPort))
				if err == nil {
					err = conn.Close()
				}
				return err
			}
			ports, err := listen(t.Context(), cfg)
			require.NoError(t, err)
			require.ErrorIs(t, dial(), syscall.ECONNREFUSED, "a connection would be reset later")
			ports.close()
			n := newNode(cfg, log, new(telemetry.Levels), new(exports))
			n.keys, err = openKeys(cfg, log)
			require.NoError(t, err)
			defer n.shutdown.Complete() // otherwise it ends the process
			defer func() { require.NoError(t, n.close()) }()
			require.NoError(t, n.open(t.Context()))
			if nodes == 1 {
				require.NoError(t, dial(), "no other node can serve it")
				return
			}
			require.ErrorIs(t, dial(), syscall.ECONNREFUSED)
			port, err := n.listeners.ingress.open(t.Context())
			require.NoError(t, err)
			require.NoError(t, dial())
			again, err := n.listeners.ingress.open(t.Context())
			require.NoError(t, err)
			require.Equal(t, port, again)
		})
	}
}
