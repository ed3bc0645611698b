package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"platform/internal/logsample"
	"platform/internal/nodelink"
	"platform/internal/nodetls"
	"platform/internal/raftgroup/peers"
	"platform/internal/raftgroup/retention"
	"platform/proto/node"
)

// Limits of the transport.
const (
	// appendBatchBytes is the size above which one append is sent in several messages.
	appendBatchBytes = 1 << 20
	// snapshotRate is the default of TransportConfig.SnapshotRate: a fraction of what a
	// disk and two CPUs could do, so that calls continue meanwhile.
	snapshotRate = 32 << 20
	// maxHeldLogBytes is the default of TransportConfig.MaxHeldLogBytes.
	maxHeldLogBytes = 1 << 30
	// dataTimeout is the timeout of an append with entries, plus a second per MiB.
	dataTimeout = 5 * time.Second
)

// TransportConfig configures a Transport: the identity of this node and how it reaches
// others.
type TransportConfig struct {
	// ClusterID separates nodes of different clusters. Required.
	ClusterID string
	// NodeID and Incarnation identify this node and its data directory.
	NodeID      string
	Incarnation string
	// Address is where other nodes reach this node's gRPC server; it is the address of this
	// node in the configurations of all groups. Required.
	Address raft.ServerAddress

	// AddressOf returns the current address of the replica id, "" if unknown; then the
	// address in the group's configuration is used. It lets a group reconnect when its
	// members return under other addresses. It is called for each request and must not
	// block; nil means that only the configurations are used.
	AddressOf func(id raft.ServerID) raft.ServerAddress

	// SnapshotRate bounds the bytes of snapshots that this node sends per second, to all
	// peers in total; 32 MiB when 0.
	SnapshotRate int
	// MaxHeldLogBytes bounds the log that all groups retain for followers that are being
	// sent a snapshot; 1 GiB when 0. Followers beyond it need another snapshot.
	MaxHeldLogBytes int64

	// Security authenticates other nodes; nil: no authentication.
	Security *nodetls.Security
	// DialOptions override those that follow from Security.
	DialOptions []grpc.DialOption
	// Dial replaces gRPC, and Refused the probe whether nothing listens at an address. Both
	// are for tests that simulate the network; nil: not replaced.
	Dial    func(address string) (nodelink.Conn, error)
	Refused func(context.Context, raft.ServerAddress) bool
	// Authorize may reject a peer that was authenticated; nil accepts every node of the
	// cluster. It is called when a stream begins, and about once a second while it is used.
	Authorize nodelink.Authorize
	// MayServe reports whether a node may have a replica of a group whose configuration, as
	// known by this node, does not contain it: this node may be behind. leaderless reports
	// that the replica here has heard no leader for some time. nil accepts the node.
	MayServe func(group uint32, nodeID string, leaderless bool) bool
	// Stopping reports whether this node is about to stop. The others may stop as well, so losing them is then no warning; nil: it
	// is not.
	Stopping func() bool
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// errTransportClosed is the error of groups that are opened after Close.
var errTransportClosed = errors.New("raft transport is closed")

// Transport carries the Raft traffic of all groups of a node. Its requests leave through peers;
// it serves those of other nodes as a gRPC service, and passes them to the ports of the groups.
type Transport struct {
	node.UnimplementedRaftTransportServer

	cfg    TransportConfig
	log    *slog.Logger
	self   nodelink.Identity
	ctx    context.Context //nolint:containedctx // Raft calls without one; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	peers  *peers.Pool

	started time.Time

	// mu covers the maps and closed.
	mu       sync.RWMutex
	closed   bool
	watching bool // for silent leaders
	ports    map[uint32]*port
	probed   map[raft.ServerAddress]bool // peers whose death is being verified

	run      running // updated while watching
	refusals *logsample.Sampler[string]
	heldLog  *retention.Budget
}

// NewTransport returns the transport of a node. It dials when a group needs it.
func NewTransport(cfg TransportConfig) (*Transport, error) {
	if cfg.ClusterID == "" || cfg.Address == "" {
		return nil, errors.New("raft transport needs a cluster ID and an address")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Transport{
		cfg: cfg, started: time.Now(),
		log: cfg.Logger.With("component", "raft_transport"),
		self: nodelink.Identity{
			ClusterID: func() string { return cfg.ClusterID }, Node: cfg.NodeID, Incarnation: cfg.Incarnation, Address: string(cfg.Address),
		},
		ctx:    ctx,
		cancel: cancel,
		ports:  make(map[uint32]*port),
		probed: make(map[raft.ServerAddress]bool),

		refusals: newLogSampler(),
		heldLog:  retention.NewBudget(cmp.Or(cfg.MaxHeldLogBytes, maxHeldLogBytes)),
	}
	t.peers = peers.NewPool(peers.Config{
		Dial: t.dial, Hello: t.self.Hello, Refused: t.refused,
		Verify: func(ctx context.Context, h *node.Hello) error {
			_, err := t.greet(ctx, h)
			return err
		},
		SnapshotRate: cmp.Or(cfg.SnapshotRate, snapshotRate),
	})
	return t, nil
}

// Register adds the transport's service to the node's gRPC server, which must be created
// with nodelink.ServerOptions.
func (t *Transport) Register(s grpc.ServiceRegistrar) { node.RegisterRaftTransportServer(s, t) }

// Close closes all connections. The groups should be shut down before and the gRPC server
// stopped after.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.mu.Unlock()

	t.cancel()
	err := t.peers.Close()
	t.wg.Wait()
	return err
}

// refused logs, at a limited rate, that a peer is not the expected one. The address is the
// one that was dialed, "" if the peer has connected.
func (t *Transport) refused(addr raft.ServerAddress, err error) {
	kind := "connected" // the text of the error may come from an unknown client
	if addr != "" {
		kind = string(addr) + " " + err.Error()
	}
	skipped, due := t.refusals.Admit(kind, time.Now())
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
		return nil, errTransportClosed
	}
	if _, ok := t.ports[g.cfg.ID]; ok {
		return nil, fmt.Errorf("group %d is already open", g.cfg.ID)
	}
	p := &port{
		t: t, group: g, id: g.cfg.ID, election: g.cfg.Profile.ElectionTimeout,
		rpcs: make(chan raft.RPC), closed: make(chan struct{}), voted: make(voted, 1), followers: newFollowers(),
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

// addressOf returns where the replica id is reached.
func (t *Transport) addressOf(id raft.ServerID, configured raft.ServerAddress) raft.ServerAddress {
	if t.cfg.AddressOf != nil {
		if now := t.cfg.AddressOf(id); now != "" {
			return now
		}
	}
	return configured
}

// connect opens a stream to addr, unless it is the address of this node.
func (t *Transport) connect(addr raft.ServerAddress) {
	if addr != t.cfg.Address {
		t.peers.Connect(addr)
	}
}

// dial prepares a connection.
func (t *Transport) dial(address string) (nodelink.Conn, error) {
	if t.cfg.Dial != nil {
		return t.cfg.Dial(address)
	}
	return nodelink.Dial(address, t.cfg.Security, t.cfg.DialOptions...)
}
