package membership

import (
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/test/harness/ports"
)

// pending is how many connections of a node may be unidentified.
const pending = 512

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLogger is silent unless MEMBERSHIP_LOG is set.
func testLogger(tb testing.TB) *slog.Logger {
	if os.Getenv("MEMBERSHIP_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// bind opens a TCP listener and a UDP socket on the same port. An empty address uses a free
// port.
func bind(tb testing.TB, address string) (net.Listener, net.PacketConn) {
	tb.Helper()
	for range 20 { // another program may use the UDP port
		at := address
		if at == "" {
			at = ports.Address(tb) // it may be started again
		}
		l, err := net.Listen("tcp", at)
		require.NoError(tb, err)
		packets, err := ListenPacket(tb.Context(), l.Addr())
		if err == nil {
			return l, packets
		}
		require.NoError(tb, l.Close())
	}
	tb.Fatal("no port is free for both TCP and UDP")
	return nil, nil
}

// testNode is a node with a complete node port.
type testNode struct {
	*Members
	tb      testing.TB
	ports   *Ports
	address string
	failed  chan error
}

// start starts a node on a free port. configure may change its configuration.
func start(tb testing.TB, name string, configure func(*Config)) *testNode {
	tb.Helper()
	return startAt(tb, "", name, configure)
}

func startAt(tb testing.TB, address, name string, configure func(*Config)) *testNode {
	tb.Helper()
	l, packets := bind(tb, address)
	n := &testNode{tb: tb, address: l.Addr().String(), failed: make(chan error, 1)}
	cfg := Config{
		Name: name, Incarnation: "1", ClusterName: "test", Address: n.address, Packets: packets,
		OnFailed: func(err error) { n.failed <- err },
		Logger:   testLogger(tb).With("self", name),
	}
	if configure != nil {
		configure(&cfg)
	}
	n.ports = split(l, cfg.Security, pending, time.Hour) // no test waits for the time limit of silent connections
	cfg.Streams = n.ports.Gossip
	var err error
	n.Members, err = Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(n.crash)
	return n
}

// crash stops the node without announcing it.
func (n *testNode) crash() {
	require.NoError(n.tb, n.ports.Close())
	require.NoError(n.tb, n.Close())
}

func seeds(nodes ...*testNode) func(*Config) {
	return func(c *Config) {
		for _, n := range nodes {
			c.Seeds = append(c.Seeds, n.address)
		}
	}
}

// eventually waits for a condition, which is evaluated after each change.
func (n *testNode) eventually(what string, condition func() bool) {
	n.tb.Helper()
	changes, stop := n.Watch()
	defer stop()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-changes:
		case <-deadline:
			require.Fail(n.tb, "condition not met", "%s; node %s sees %+v", what, n.selfMember().Name, n.Nodes())
		}
	}
}

// sees waits until n considers exactly these nodes alive.
func (n *testNode) sees(names ...string) {
	n.tb.Helper()
	n.eventually("expected live nodes", func() bool {
		var got []string
		for _, m := range n.Nodes() {
			if m.State == Alive {
				got = append(got, m.Name)
			}
		}
		return slices.Equal(got, names)
	})
}

// member returns n's view of a node.
func (n *testNode) member(name string) Member {
	for _, m := range n.Nodes() {
		if m.Name == name {
			return m
		}
	}
	return Member{}
}
