package node

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/membership"
)

// On a busy machine the time for the announcement may be over before the other nodes have it. They detect
// that the node has stopped: it has not failed.
func TestAStopThatIsNotAnnouncedIsNoFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	packets, err := membership.ListenPacket(t.Context(), l.Addr())
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	p := nodePort{ports: membership.Split(l, nil, 10)}
	p.members, err = membership.Open(membership.Config{
		Name: "n1", Incarnation: "1", ClusterName: "c", Address: l.Addr().String(), Streams: p.ports.Gossip, Packets: packets, Logger: log,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.close(ctx, log))
}
