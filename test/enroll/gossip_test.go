package enroll

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/cluster/membership"
	"platform/internal/nodetls"
)

// gossips starts the gossip of a node, with its certificate and key of packets, as a data directory, and
// returns what the node sees of others.
func (c *cluster) gossips(t *testing.T, node int, name, incarnation string) *membership.Members {
	t.Helper()
	security, err := nodetls.Open(nodetls.Config{
		Mode: nodetls.Require, Cluster: clusterName, Node: name, PacketKeyFile: c.in(node, "node-tls-gossip.key"), Log: slog.New(slog.DiscardHandler),
		Files: certs.Files{Cert: c.in(node, "node-tls.pem"), Key: c.in(node, "node-tls.pem"), CA: c.in(node, "node-tls-ca.crt")},
	})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	packets, err := membership.ListenPacket(t.Context(), l.Addr())
	require.NoError(t, err)
	ports := membership.Split(l, security, 512)
	members, err := membership.Open(membership.Config{
		Name: name, Incarnation: incarnation, ClusterName: clusterName, Address: l.Addr().String(), Streams: ports.Gossip, Packets: packets,
		Seeds: []string{c.nodes[0].NodeAddress()}, Security: security, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, members.Close())
		require.NoError(t, ports.Close())
	})
	return members
}

// ungossiped requires that a removed node gets nothing by gossip.
func (c *cluster) ungossiped(node int, name, incarnation string) {
	c.Run("gossip", func(t *testing.T) {
		require.FileExists(t, filepath.Clean(c.in(node, "node-tls-gossip.key")))
		members := c.gossips(t, node, name, incarnation)
		require.Eventually(t, func() bool { // a busy machine may not respond to an attempt in time
			err := members.Unjoined()[c.nodes[0].NodeAddress()]
			return err != nil && strings.Contains(err.Error(), "that node refuses this one")
		}, waitLimit, 20*time.Millisecond)
		require.Len(t, members.Nodes(), 1, "it sees only itself")
	})
	c.Run("gossip of another data directory", func(t *testing.T) { // which could join, with a valid certificate
		members := c.gossips(t, node, name, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
		require.Eventually(t, func() bool { return len(members.Nodes()) == 4 }, waitLimit, 20*time.Millisecond)
	})
}
