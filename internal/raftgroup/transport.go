package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/limits"
	"platform/proto/node"

	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Limits of the transport.
const (
	// appendPieceBytes is when one append is sent in several messages.
	appendPieceBytes = 1 << 20
	// snapshotChunkBytes bounds one message of a snapshot.
	snapshotChunkBytes = 256 << 10
	// snapshotRate is the default of TransportConfig.SnapshotRate: a fraction of what a
	// disk and two processors could do, so that calls go on beside it.
	snapshotRate = 32 << 20
	// snapshotStall is how long a snapshot may make no progress.
	snapshotStall = 30 * time.Second
	// dataTimeout is how long an append with entries may take, plus a second for
	// each MiB.
	dataTimeout = 5 * time.Second
)

// Peer is what a node says about itself when it connects.
type Peer struct {
	NodeID      string
	Incarnation string
	Address     raft.ServerAddress
}

// TransportConfig says who this node is and how it reaches others.
type TransportConfig struct {
	// ClusterID keeps nodes of different clusters apart. Required.
	ClusterID string
	// NodeID and Incarnation name this node and its data directory.
	NodeID      string
	Incarnation string
	// Address is where other nodes reach this node's gRPC server; it is the
	// address of this node in the configurations of all groups. Required.
	Address raft.ServerAddress

	// AddressOf tells where the replica id is reached now, "" if that is not known;
	// the address in the group's configuration is used then. With it a group finds
	// itself again when its members come back under other addresses. It is asked
	// for each request and must be quick; nil means the configurations only.
	AddressOf func(id raft.ServerID) raft.ServerAddress

	// SnapshotRate bounds how many bytes of snapshots this node sends per second, to
	// all peers together; 32 MiB when 0.
	SnapshotRate int
	// MaxHeldLogBytes bounds the log that all groups keep for followers that are being
	// sent a snapshot; 1 GiB when 0. Followers beyond it need another snapshot.
	MaxHeldLogBytes int64

	// DialOptions replace the default of no transport security.
	DialOptions []grpc.DialOption
	// Dial replaces gRPC, and Refused the probe that finds out whether nobody listens
	// at an address any more. Both serve tests that simulate the network; nil: neither
	// is replaced.
	Dial    func(raft.ServerAddress) (Conn, error)
	Refused func(context.Context, raft.ServerAddress) bool
	// Authorize may refuse a peer that connects; nil accepts every node of the
	// cluster.
	Authorize func(context.Context, Peer) error
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// Transport carries the Raft traffic of all groups of a node over a few streams
// per peer: a fast connection for votes and appends, a bulk connection for
// snapshots.
type Transport struct {
	node.UnimplementedRaftTransportServer

	cfg    TransportConfig
	log    *slog.Logger
	hello  *node.Hello
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// mu covers the maps and closed.
	mu       sync.RWMutex
	closed   bool
	watching bool // for silent leaders
	ports    map[uint32]*port
	peers    map[raft.ServerAddress]*peer
	probed   map[raft.ServerAddress]bool // peers whose death is being checked

	run      running // noted while watching
	refusals *repeats
	pace     *rate.Limiter // of snapshots that are sent
	heldLog  atomic.Int64  // see compactionHolds
}

// NewTransport returns the transport of a node. It dials when a group needs it.
func NewTransport(cfg TransportConfig) (*Transport, error) {
	if cfg.ClusterID == "" || cfg.Address == "" {
		return nil, errors.New("raft transport needs a cluster id and an address")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.DialOptions == nil {
		cfg.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Transport{
		cfg: cfg,
		log: cfg.Logger.With("component", "raft_transport"),
		hello: &node.Hello{
			ClusterId: cfg.ClusterID, NodeId: cfg.NodeID, Incarnation: cfg.Incarnation, Address: string(cfg.Address),
		},
		ctx:    ctx,
		cancel: cancel,
		ports:  make(map[uint32]*port),
		peers:  make(map[raft.ServerAddress]*peer),
		probed: make(map[raft.ServerAddress]bool),

		refusals: newRepeats(),
		pace:     rate.NewLimiter(rate.Limit(orDefault(cfg.SnapshotRate, snapshotRate)), snapshotChunkBytes),
	}, nil
}

// Register adds the transport's service to the node's gRPC server, which must be
// made with ServerOptions.
func (t *Transport) Register(s grpc.ServiceRegistrar) { node.RegisterRaftTransportServer(s, t) }

// ServerOptions returns what a gRPC server needs to carry the transport.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limits.Receive),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	}
}

// Close ends all connections. The groups should be shut down before and the gRPC
// server stopped after.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	peers := slices.Collect(maps.Values(t.peers))
	t.mu.Unlock()

	t.cancel()
	var errs error
	for _, p := range peers {
		errs = errors.Join(errs, p.close())
	}
	t.wg.Wait()
	return errs
}

// refused reports a peer that is not who it should be, once in a while: it is asked
// again and again. The address is the one that was dialed, "" if the peer has called.
func (t *Transport) refused(addr raft.ServerAddress, err error) {
	skipped, due := t.refusals.due(string(addr)+" "+err.Error(), time.Now())
	if !due {
		return
	}
	args := []any{"err", err}
	if addr != "" {
		args = append(args, "address", string(addr))
	}
	if skipped > 0 {
		args = append(args, "repeated", skipped)
	}
	t.log.Error("peer refused", args...)
}

// attach makes the group reachable.
func (t *Transport) attach(g *Group) (*port, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.New("raft transport is closed")
	}
	if _, ok := t.ports[g.cfg.ID]; ok {
		return nil, fmt.Errorf("group %d is open already", g.cfg.ID)
	}
	p := &port{
		t: t, group: g, id: g.cfg.ID, election: g.cfg.Profile.ElectionTimeout,
		rpcs: make(chan raft.RPC), closed: make(chan struct{}), voted: make(voted, 1),
	}
	p.ctx, p.end = context.WithCancel(t.ctx)
	p.outgoing.Store(t.newOutgoing())
	t.ports[g.cfg.ID] = p
	if !t.watching {
		t.watching = true
		t.wg.Go(t.watchSilence)
	}
	return p, nil
}

func (t *Transport) detach(p *port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ports[p.id] == p {
		delete(t.ports, p.id)
		close(p.closed)
		p.end()
		p.outgoing.Load().hangUp()
	}
}

func (t *Transport) port(group uint32) (*port, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, ok := t.ports[group]
	return p, ok
}

// addressOf is where the replica id is reached.
func (t *Transport) addressOf(id raft.ServerID, configured raft.ServerAddress) raft.ServerAddress {
	if t.cfg.AddressOf != nil {
		if now := t.cfg.AddressOf(id); now != "" {
			return now
		}
	}
	return configured
}

// peer returns the connections to addr, which are made when they are used.
func (t *Transport) peer(addr raft.ServerAddress) (*peer, error) {
	t.mu.RLock()
	p, ok := t.peers[addr]
	t.mu.RUnlock()
	if ok {
		return p, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.peers[addr]; ok {
		return p, nil
	}
	if t.closed {
		return nil, errors.New("raft transport is closed")
	}
	p, err := t.newPeer(addr)
	if err != nil {
		return nil, err
	}
	t.peers[addr] = p
	return p, nil
}

// reach opens a stream to addr, so that both nodes know of each other before they
// need to.
func (t *Transport) reach(addr raft.ServerAddress) {
	if addr == t.cfg.Address {
		return
	}
	if p, err := t.peer(addr); err == nil {
		_, _ = p.stream(controlStream) // an unreachable peer is found out when it is needed
	}
}

// peerSeen is called when the node at addr connected to this one.
func (t *Transport) peerSeen(addr raft.ServerAddress) {
	t.mu.RLock()
	p, ok := t.peers[addr]
	t.mu.RUnlock()
	if ok {
		p.seen()
	}
}

// distance is 0 for a peer with a working stream and 1 otherwise.
func (t *Transport) distance(addr raft.ServerAddress) int {
	t.mu.RLock()
	p, ok := t.peers[addr]
	t.mu.RUnlock()
	if ok && p.connected() {
		return 0
	}
	return 1
}

// dial prepares a connection. The name in addr is resolved at each attempt,
// because the passthrough resolver leaves it to the dialer.
func (t *Transport) dial(addr raft.ServerAddress) (Conn, error) {
	if t.cfg.Dial != nil {
		return t.cfg.Dial(addr)
	}
	conn, err := grpc.NewClient("passthrough:///"+string(addr), append(DialOptions(), t.cfg.DialOptions...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}

// DialOptions are how nodes connect to each other: back-off, keepalive, and a codec
// for messages generated with vtprotobuf. What is missing is transport security.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(wireCodecName), grpc.MaxCallRecvMsgSize(limits.Receive)),
	}
}

// greet checks the first message of a peer.
func (t *Transport) greet(ctx context.Context, h *node.Hello) error {
	if h == nil {
		return errors.New("peer did not introduce itself")
	}
	if h.ClusterId != t.cfg.ClusterID {
		return fmt.Errorf("peer %s at %s is of cluster %q, this node of %q", h.NodeId, h.Address, h.ClusterId, t.cfg.ClusterID)
	}
	if t.cfg.Authorize == nil {
		return nil
	}
	return t.cfg.Authorize(ctx, Peer{NodeID: h.NodeId, Incarnation: h.Incarnation, Address: raft.ServerAddress(h.Address)})
}
