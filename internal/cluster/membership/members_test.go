package membership

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// three starts nodes a, b and c and waits until they have discovered each other.
func three(t *testing.T, configure func(*Config)) (a, b, c *testNode) {
	with := func(more func(*Config)) func(*Config) {
		return func(cfg *Config) {
			more(cfg)
			if configure != nil {
				configure(cfg)
			}
		}
	}
	a = start(t, "a", with(func(*Config) {}))
	b = start(t, "b", with(seeds(a)))
	c = start(t, "c", with(seeds(a, b)))
	for _, n := range []*testNode{a, b, c} {
		n.sees("a", "b", "c")
	}
	return a, b, c
}

func TestNodesDiscoverEachOtherThroughSeeds(t *testing.T) {
	a, b, _ := three(t, func(c *Config) { c.Meta = Meta{Version: "1.2.3"} })
	m := a.member("c")
	require.Equal(t, "1", m.Incarnation)
	require.Equal(t, "1.2.3", m.Version)
	require.False(t, m.Self)
	require.True(t, a.member("a").Self)
	require.Equal(t, b.address, a.member("b").Address)
	require.Equal(t, Alive, b.State("c", "1"))
	require.Equal(t, Unknown, b.State("c", "2"))
	require.Equal(t, Unknown, b.State("d", "1"))
}

func TestCrashIsDetected(t *testing.T) {
	a, b, c := three(t, nil)
	crashed := time.Now()
	c.crash()
	a.sees("a", "b")
	b.sees("a", "b")
	t.Logf("detected by both nodes after %v", time.Since(crashed).Round(time.Millisecond))
	require.Less(t, time.Since(crashed), 25*time.Second) // the machine may be busy
	require.Equal(t, Dead, a.State("c", "1"))
	require.Equal(t, Dead, a.member("c").State)
}

func TestLeaveIsKnownImmediately(t *testing.T) {
	a, b, c := three(t, nil)
	left := time.Now()
	if err := c.Leave(t.Context()); err != nil { // a busy machine takes longer than Leave waits
		t.Log(err)
	}
	for _, n := range []*testNode{a, b} { // which were sent the announcement, and may not have read it yet
		n.eventually("c has left", func() bool { return n.State("c", "1") == Left })
	}
	t.Logf("left in %v", time.Since(left).Round(time.Millisecond))
	require.NoError(t, c.Leave(t.Context()))
	c.crash()
	require.NoError(t, c.Leave(t.Context()))

	// The same data directory returns at another address.
	back := start(t, "c", seeds(b))
	for _, n := range []*testNode{a, b, back} {
		n.sees("a", "b", "c")
		require.Equal(t, back.address, n.member("c").Address)
	}
}

func TestLeaveReturnsWhenContextEnds(t *testing.T) {
	a, _, _ := three(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Leave(ctx), context.Canceled)
}

func TestCrashedNodeReturnsAtNewAddress(t *testing.T) {
	a, b, c := three(t, nil)
	c.crash()
	back := start(t, "c", seeds(a)) // before the crash is detected
	for _, n := range []*testNode{a, b, back} {
		n.eventually("new address", func() bool {
			m := n.member("c")
			return m.Address == back.address && m.State == Alive
		})
		n.sees("a", "b", "c")
	}
	require.Empty(t, back.failed)
}

func TestMetaIsPropagated(t *testing.T) {
	a, b, c := three(t, nil)
	require.NoError(t, c.UpdateMeta(func(m *Meta) { m.ClusterID, m.NodeID = "id", 7 }))
	require.NoError(t, c.UpdateMeta(func(m *Meta) { m.Draining = true }))
	for _, n := range []*testNode{a, b, c} {
		n.eventually("new description", func() bool { return n.member("c").Draining })
		require.Equal(t, Meta{ClusterID: "id", NodeID: 7, Draining: true}, n.member("c").Meta)
	}
	err := c.UpdateMeta(func(m *Meta) { m.Version = string(make([]byte, 600)) })
	require.ErrorIs(t, err, errMetaTooLarge)
	require.Equal(t, uint32(7), c.selfMember().NodeID)
}

func TestNodesOfOtherClustersAreRejected(t *testing.T) {
	log := new(lockedBuffer)
	a := start(t, "a", nil)
	b := start(t, "b", func(c *Config) {
		c.ClusterName, c.Seeds, c.Logger = "other", []string{a.address}, log.logger()
	})
	require.Eventually(t, func() bool { return log.contains("node belongs to another cluster") }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		unjoined := b.Unjoined()
		return len(unjoined) == 1 && errors.Is(unjoined[a.address], errOtherCluster)
	}, time.Minute, time.Millisecond, "Unjoined returns the reason")
	require.True(t, b.alone())
	require.True(t, a.alone())
	// No packets are sent to the other cluster either.
	_, err := b.transport.endpoint(a.selfMember().identity().String())
	require.ErrorIs(t, err, errNoAddress)
}

func TestClustersWithSameNameStaySeparate(t *testing.T) {
	with := func(id string, more func(*Config)) func(*Config) {
		return func(c *Config) { c.Meta.ClusterID = id; more(c) }
	}
	log := new(lockedBuffer)
	a := start(t, "a", with("first", func(c *Config) { c.Logger = log.logger() }))
	b := start(t, "b", with("second", seeds(a)))
	c := start(t, "c", with("first", seeds(a, b)))
	c.sees("a", "c")
	require.Eventually(t, func() bool { return log.contains("same cluster-name") }, time.Minute, time.Millisecond)
	a.sees("a", "c")
	b.sees("b")

	// A node that saw both clusters while it was fresh lists only its own after joining.
	d := start(t, "d", func(c *Config) { c.Known = func() []string { return []string{b.address} } })
	d.sees("b", "d")
	require.NoError(t, d.UpdateMeta(func(m *Meta) { m.ClusterID = "first" }))
	d.sees("d")
	b.sees("b")
}

func TestOtherGossipKeyIsRejected(t *testing.T) {
	key := func(b byte, more func(*Config)) func(*Config) {
		return func(c *Config) { c.Key = bytes.Repeat([]byte{b}, keyBytes); more(c) }
	}
	log := new(lockedBuffer)
	a := start(t, "a", key(1, func(*Config) {}))
	same := start(t, "b", key(1, seeds(a)))
	same.sees("a", "b")
	other := start(t, "c", key(2, func(c *Config) { c.Seeds, c.Logger = []string{a.address}, log.logger() }))
	none := start(t, "d", func(c *Config) { c.Seeds, c.Logger = []string{a.address}, log.logger() })
	require.Eventually(t, func() bool {
		return log.contains("decrypt") && log.contains("encryption is configured but remote state is not encrypted") ||
			log.contains("decrypt") && log.contains("encryption is not configured")
	}, time.Minute, time.Millisecond)
	require.True(t, other.alone())
	require.True(t, none.alone())
	a.sees("a", "b")
}

func TestJoinErrorsSayWhatToDo(t *testing.T) {
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serve(conn)
			}
		}()
		return l.Addr().String()
	}
	closing := listen(func(conn net.Conn) { conn.Close() })
	silent := listen(func(conn net.Conn) { t.Cleanup(func() { conn.Close() }) })
	foreign := start(t, "a", func(c *Config) { c.Key = bytes.Repeat([]byte{1}, keyBytes) })
	_, port, err := net.SplitHostPort(closing)
	require.NoError(t, err)
	named := net.JoinHostPort("localhost", port)
	b := start(t, "b", func(c *Config) {
		c.Seeds, c.Key = []string{closing, silent, foreign.address, named}, bytes.Repeat([]byte{2}, keyBytes)
	})
	var unjoined map[string]error
	require.Eventually(t, func() bool { unjoined = b.Unjoined(); return len(unjoined) == 4 }, time.Minute, time.Millisecond)
	require.ErrorContains(t, unjoined[closing], "it closed the connection: either it is not the node port of a server (bind-port, 5122 by default), or")
	require.ErrorContains(t, unjoined[closing], "security.node-tls")
	require.ErrorContains(t, unjoined[silent], "got no response: the server hangs, or this is not its node port (bind-port, 5122 by default)")
	require.ErrorContains(t, unjoined[foreign.address], "networking.gossip-key-file must contain the same key on all nodes")
	require.NotContains(t, unjoined[closing].Error(), "node at", "the caller names the address")
	require.ErrorContains(t, unjoined[named], closing+": it closed the connection", "the address that a name stands for")
}

func TestSeedsAreResolvedAtEachAttempt(t *testing.T) {
	a := start(t, "a", nil)
	_, port, err := net.SplitHostPort(a.address)
	require.NoError(t, err)
	var lookups atomic.Int32
	b := start(t, "b", func(c *Config) {
		c.Seeds = []string{"node-a:" + port}
		c.resolve = func(context.Context, string) ([]string, error) {
			switch lookups.Add(1) {
			case 1:
				return nil, errors.New("no such host")
			case 2:
				return []string{"::1"}, nil // not reachable over an IPv4 socket
			}
			return []string{"127.0.0.1"}, nil
		}
	})
	b.sees("a", "b")
	a.sees("a", "b")
}

// TestNodeReturnsWithNewIPBehindSameName changes the IP address behind the advertised host
// name of a node.
func TestNodeReturnsWithNewIPBehindSameName(t *testing.T) {
	var names sync.Map
	resolve := func(_ context.Context, host string) ([]string, error) {
		ip, ok := names.Load(host)
		if !ok {
			return nil, errors.New("no such host")
		}
		return []string{ip.(string)}, nil
	}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		if ips, err := resolve(ctx, host); err == nil {
			address = net.JoinHostPort(ips[0], port)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	named := func(name, address string, more func(*Config)) *testNode {
		return startAt(t, address, name, func(c *Config) {
			_, port, _ := net.SplitHostPort(c.Address)
			host, _, _ := net.SplitHostPort(address)
			c.Address = net.JoinHostPort("host-"+name, port)
			names.Store("host-"+name, host)
			c.resolve, c.dial = resolve, dial
			more(c)
		})
	}
	a := named("a", "127.0.0.1:0", func(*Config) {})
	b := named("b", "127.0.0.1:0", func(c *Config) { c.Seeds = []string{a.selfMember().Address} })
	a.sees("a", "b")
	b.sees("a", "b")
	started, address := b.selfMember().Started, b.selfMember().Address
	_, port, err := net.SplitHostPort(b.address)
	require.NoError(t, err)
	b.crash()
	names.Delete("host-b") // some name servers only know running hosts
	a.sees("a")

	b = named("b", "127.0.0.2:"+port, func(c *Config) { c.Seeds = []string{a.selfMember().Address} })
	require.Equal(t, address, b.selfMember().Address)
	a.sees("a", "b")
	require.True(t, a.member("b").Started.After(started))
	// UDP probes use the new address, too.
	require.Eventually(t, func() bool {
		to, ok := a.transport.resolver.packetAddress(t.Context(), address)
		return ok && to.Addr().String() == "127.0.0.2"
	}, time.Minute, 10*time.Millisecond)
}

func TestPartitionHeals(t *testing.T) {
	quick := func(c *Config) { c.profile = defaultProfile(); c.profile.rejoinInterval = 500 * time.Millisecond }
	a := start(t, "a", quick)
	b := start(t, "b", func(c *Config) { quick(c); seeds(a)(c) })
	b.sees("a", "b")
	b.crash()
	a.sees("a")
	// b returns at the same address without any seeds.
	b = startAt(t, b.address, "b", quick)
	b.sees("a", "b")
	a.sees("a", "b")
}

func TestOpenRejectsInvalidConfig(t *testing.T) {
	good := Config{Name: "a", Incarnation: "1", ClusterName: "c", Address: "h:1"}
	for name, change := range map[string]func(*Config){
		"no name":   func(c *Config) { c.Name = "" },
		"address":   func(c *Config) { c.Address = "h" },
		"seed":      func(c *Config) { c.Seeds = []string{"h"} },
		"key":       func(c *Config) { c.Key = []byte("short") },
		"no socket": func(*Config) {},
	} {
		cfg := good
		change(&cfg)
		_, err := Open(cfg)
		require.Error(t, err, name)
	}
	l, packets := bind(t, "")
	good.Streams, good.Packets, good.Meta.Version = l, packets, string(make([]byte, 600))
	_, err := Open(good)
	require.ErrorIs(t, err, errMetaTooLarge)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
