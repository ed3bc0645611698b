package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"platform/internal/nodetls"
)

// Config identifies the node and configures discovery.
type Config struct {
	// Name and Incarnation identify this node and its data directory. Required.
	Name        string
	Incarnation string
	// ClusterName separates clusters: nodes with different cluster names do not
	// communicate. Required.
	ClusterName string
	// Address is the advertised host:port of the node port. The host may be a name,
	// which other nodes resolve at each use. Required.
	Address string
	// Meta is the initial metadata of the node.
	Meta Meta

	// Streams accepts the gossip streams (Ports.Gossip), and Packets is the UDP socket on
	// the same port. Open takes ownership of both and closes them. Required.
	Streams net.Listener
	Packets net.PacketConn

	// Seeds are the host:port addresses of nodes to join through; this node may be among
	// them. Names are resolved at each attempt and all addresses of a name are tried.
	Seeds []string
	// Known returns node addresses from other sources, which are tried like seeds. It may
	// be nil.
	Known func() []string

	// Key encrypts and authenticates the gossip: 32 bytes, identical on all nodes; empty
	// disables encryption.
	Key []byte
	// profile is defaultProfile when zero.
	profile profile
	// Security authenticates other nodes; nil: no authentication.
	Security *nodetls.Security
	// Removed returns the nodes that were removed from the cluster, which are refused; nil: none.
	Removed func() []Removed
	// Former reports whether a node was removed, or replaced by another one with its name; nil: none was.
	Former func(name, incarnation string) bool
	// dial opens connections for streams; nil uses TCP.
	dial func(ctx context.Context, address string) (net.Conn, error)
	// resolve returns the addresses of a host name; nil uses the system resolver.
	resolve func(ctx context.Context, host string) ([]string, error)

	// OnFailed is called at most once, with errNameTaken, when this node must stop because
	// another node owns its name. It must not call Close.
	OnFailed func(error)
	// Logger is slog.Default() when nil.
	Logger *slog.Logger

	wall func() time.Time // time.Now, except in tests
}

// Removed identifies a node that is no longer a member. A node with the same name and another data
// directory is a different one.
type Removed struct{ Name, Incarnation string }

// profile holds the intervals and timeouts of the gossip.
type profile struct {
	// probeInterval is the interval between probes of one other node. probeTimeout is the
	// time to wait for a UDP acknowledgement before probing over TCP and through other
	// nodes.
	probeInterval, probeTimeout time.Duration
	// suspicionMult is the number of probe intervals for which a suspected node can refute
	// the suspicion before it is declared dead; up to three times as many if no other node
	// confirms the suspicion.
	suspicionMult int
	// gossipInterval is the interval between gossip messages.
	gossipInterval time.Duration
	// syncInterval is the interval between full state exchanges with one other node.
	syncInterval time.Duration
	// streamTimeout bounds one stream exchange.
	streamTimeout time.Duration
	// joinBackoff and joinBackoffMax bound the backoff between join attempts while no
	// other node is alive; rejoinInterval is the interval between attempts to reach
	// missing nodes after that.
	joinBackoff, joinBackoffMax, rejoinInterval time.Duration
	// nameGrace is how long other nodes must report a conflicting node with this node's
	// name before this node yields to it even though it cannot reach it.
	nameGrace time.Duration
}

// defaultProfile detects a crash within one to two seconds.
func defaultProfile() profile {
	return profile{
		probeInterval: 300 * time.Millisecond, probeTimeout: 150 * time.Millisecond,
		suspicionMult:  3,
		gossipInterval: 100 * time.Millisecond,
		syncInterval:   5 * time.Second,
		streamTimeout:  3 * time.Second,
		joinBackoff:    100 * time.Millisecond, joinBackoffMax: 2 * time.Second,
		rejoinInterval: 10 * time.Second,
		nameGrace:      15 * time.Second,
	}
}

// keyBytes is the length of a gossip key, that of AES-256.
const keyBytes = 32

func (c Config) withDefaults() (Config, error) {
	if c.Name == "" || c.Incarnation == "" || c.ClusterName == "" {
		return c, errors.New("membership: node name, incarnation and cluster name are required")
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return c, fmt.Errorf("advertised address %q: %w", c.Address, err)
	}
	for _, seed := range c.Seeds {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			return c, fmt.Errorf("seed %q: %w", seed, err)
		}
	}
	if len(c.Key) != 0 && len(c.Key) != keyBytes {
		return c, fmt.Errorf("gossip key has %d bytes, want %d", len(c.Key), keyBytes)
	}
	if c.Streams == nil || c.Packets == nil {
		return c, errors.New("membership: a stream listener and a packet socket are required")
	}
	if c.profile == (profile{}) {
		c.profile = defaultProfile()
	}
	if c.Known == nil {
		c.Known = func() []string { return nil }
	}
	if c.Removed == nil {
		c.Removed = func() []Removed { return nil }
	}
	if c.Former == nil {
		c.Former = func(string, string) bool { return false }
	}
	if c.dial == nil {
		c.dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	if c.resolve == nil {
		c.resolve = net.DefaultResolver.LookupHost
	}
	if c.OnFailed == nil {
		c.OnFailed = func(error) {}
	}
	if c.wall == nil {
		c.wall = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("component", "membership")
	return c, nil
}
