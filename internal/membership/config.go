package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config says who the node is and how it finds the others.
type Config struct {
	// Name and Incarnation name this node and its data directory. Required.
	Name        string
	Incarnation string
	// ClusterName keeps clusters apart: nodes of different names do not talk.
	// Required.
	ClusterName string
	// Address is the host:port under which others reach the node port. The host may
	// be a name, which they resolve at each use. Required.
	Address string
	// Meta is what the node tells about itself at the start.
	Meta Meta

	// Streams accepts the gossip streams, as Split hands them out, and Packets is the
	// UDP socket on the same port. Open takes both over and closes them. Required.
	Streams net.Listener
	Packets net.PacketConn

	// Seeds are host:port of nodes to join through. This node may be among them.
	// Names are resolved at each try; all addresses of a name are tried.
	Seeds []string
	// Known returns addresses of nodes that are known from elsewhere and are tried
	// like seeds. It may be nil.
	Known func() []string

	// Key encrypts and authenticates the gossip: 32 bytes, the same on all nodes, or
	// none for no encryption.
	Key []byte
	// Profile is DefaultProfile when zero.
	Profile Profile
	// Dial opens streams, for instance with transport security; nil is plain TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Resolve returns the addresses of a host name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]string, error)

	// OnFailed is called at most once, with ErrNameTaken, when this node has to stop
	// because another one has its name. It must not call Close.
	OnFailed func(error)
	// Logger is slog.Default() when nil.
	Logger *slog.Logger

	wall func() time.Time // time.Now, but for tests
}

// Profile holds the times of the gossip.
type Profile struct {
	// ProbeInterval is how often one other node is probed, ProbeTimeout how long an
	// answer by UDP may take before TCP and other nodes are tried.
	ProbeInterval, ProbeTimeout time.Duration
	// SuspicionMult is for how many probe intervals a silent node may deny its death;
	// up to three times as long if nobody else finds it silent.
	SuspicionMult int
	// GossipInterval is how often news is passed on.
	GossipInterval time.Duration
	// SyncInterval is how often the whole state is compared with one other node.
	SyncInterval time.Duration
	// StreamTimeout bounds one exchange over a stream.
	StreamTimeout time.Duration
	// JoinBackoff and JoinBackoffMax bound the time between two tries to join while
	// no other node is known; RejoinInterval is how often nodes that are missing are
	// looked for after that.
	JoinBackoff, JoinBackoffMax, RejoinInterval time.Duration
	// NameGrace is for how long another node with this node's name may be taken as
	// alive by others without answering this node.
	NameGrace time.Duration
}

// DefaultProfile knows of a crash within one to two seconds.
func DefaultProfile() Profile {
	return Profile{
		ProbeInterval: 300 * time.Millisecond, ProbeTimeout: 150 * time.Millisecond,
		SuspicionMult:  3,
		GossipInterval: 100 * time.Millisecond,
		SyncInterval:   5 * time.Second,
		StreamTimeout:  3 * time.Second,
		JoinBackoff:    100 * time.Millisecond, JoinBackoffMax: 2 * time.Second,
		RejoinInterval: 10 * time.Second,
		NameGrace:      15 * time.Second,
	}
}

// keyBytes is the length of a gossip key, that of AES-256.
const keyBytes = 32

func (c Config) withDefaults() (Config, error) {
	if c.Name == "" || c.Incarnation == "" || c.ClusterName == "" {
		return c, errors.New("membership needs the names of node, incarnation and cluster")
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
		return c, errors.New("membership needs a listener and a packet socket")
	}
	if c.Profile == (Profile{}) {
		c.Profile = DefaultProfile()
	}
	if c.Known == nil {
		c.Known = func() []string { return nil }
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	if c.Resolve == nil {
		c.Resolve = net.DefaultResolver.LookupHost
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
