package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/cluster/datadir"
	"platform/internal/cluster/membership"
	"platform/internal/config"
	"platform/internal/eventlog"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/logsample"
	"platform/internal/process"
	"platform/internal/raftgroup"
	"platform/internal/stats"
	"platform/internal/telemetry"
	"platform/internal/version"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

// Protocol is the version of the protocol between nodes. Nodes with different versions cannot
// form a cluster.
const Protocol = 1

// Replicas are the partition replicas of this node.
type Replicas interface {
	// Replica returns the open replica of a partition, nil if there is none.
	Replica(partition uint32) *partition.Partition
	// ReplicaID returns the Raft server ID of the node's replica of a partition.
	ReplicaID(partition uint32) raft.ServerID
	// Quarantine returns why the replica of a partition is not served, "" if it is.
	Quarantine(partition uint32) string
	// Recover executes this node's part of the recovery of a partition.
	Recover(ctx context.Context, req *nodepb.RecoverRequest) error
}

// ServerConfig configures a Server.
type ServerConfig struct {
	Self             datadir.Identity
	Expect           int                     // bootstrap-expect
	FlowControl      bool                    // flow control is on in the settings
	HoldFeatureLevel bool                    // the settings hold the feature level
	Settings         func() []config.Setting // without secrets
	// Members returns the nodes known by gossip. It is called once the node port is open.
	Members  func() *membership.Members
	Disk     func() string // see diskspace.Monitor.Shortage
	Usage    func() Usage
	Draining func() bool // reports whether the node is about to stop
	// FailedAttempts returns the number of failed attempts since the start.
	FailedAttempts func() uint64
	Stats          *stats.History
	LogLevels      *telemetry.Levels
	Renew          Renew
	// Nodes are those of the metadata on disk, with removed ones. They are known before the metadata are
	// open, so that nodes which are no longer members are refused from the first message on.
	Nodes []metadata.Node
	Log   *slog.Logger
}

// Usage is what this node uses of its machine.
type Usage struct {
	process.Usage
	// DiskFree and DiskTotal are sizes of the disk of the data directory in bytes; 0 if unknown.
	DiskFree, DiskTotal uint64
}

// Server serves requests of other nodes about the cluster. It starts before this node belongs
// to a cluster; some requests fail until OpenMetadata and OpenReplicas are called.
type Server struct {
	nodepb.UnimplementedNodeClusterServer

	cfg     ServerConfig
	self    datadir.Identity
	log     *slog.Logger
	started time.Time
	ballot  membership.Ballot
	events  *eventlog.Log

	store    atomic.Pointer[metadata.Store] // nil until it is open
	replicas atomic.Pointer[openReplicas]   // nil until they are open
	streams  atomic.Pointer[Streams]        // nil until they are open
	refusals *logsample.Sampler[string]     // by the name of an authenticated node, "" for others
}

// Bounds of the log messages about refused nodes.
const (
	refusalInterval = 10 * time.Second
	maxRefusals     = 3 // of a node
	maxRefused      = 100
)

type openReplicas struct {
	Replicas
	partitions uint32 // of the cluster
}

// NewServer returns a server.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{
		cfg: cfg, self: cfg.Self, log: cfg.Log, started: time.Now(),
		refusals: logsample.New[string](maxRefusals, refusalInterval, maxRefused),
	}
	s.events = eventlog.New(s.view)
	return s
}

// OpenMetadata provides the metadata; nil withdraws them.
func (s *Server) OpenMetadata(store *metadata.Store) { s.store.Store(store) }

// OpenReplicas provides the node's replicas of the cluster's partitions.
func (s *Server) OpenReplicas(r Replicas, partitions uint32) {
	s.replicas.Store(&openReplicas{r, partitions})
}

// Started returns when the node started.
func (s *Server) Started() time.Time { return s.started }

// Metadata returns the metadata, nil until they are open.
func (s *Server) Metadata() *metadata.Store { return s.store.Load() }

// FeatureLevel returns the cluster's feature level, the first one until this node belongs
// to a cluster.
func (s *Server) FeatureLevel() feature.Level {
	if store := s.store.Load(); store != nil {
		return store.FeatureLevel()
	}
	return feature.Level1
}

// ClusterID returns the ID of the cluster, "" until this node belongs to one.
func (s *Server) ClusterID() string {
	store := s.store.Load()
	if store == nil {
		return ""
	}
	c, _ := store.Cluster()
	return c.ID
}

// Replica returns this node's replica of a partition, nil if there is none.
func (s *Server) Replica(id uint32) *partition.Partition {
	r := s.replicas.Load()
	if r == nil || id >= r.partitions {
		return nil
	}
	return r.Replica(id)
}

// partitions returns the number of partitions, 0 until the replicas are open.
func (s *Server) partitions() uint32 {
	if r := s.replicas.Load(); r != nil {
		return r.partitions
	}
	return 0
}

var _ nodepb.NodeClusterServer = (*Server)(nil)

// Ballot gives this node's vote to the node that provisions the cluster, or withdraws it.
func (s *Server) Ballot(_ context.Context, req *nodepb.BallotRequest) (*nodepb.BallotResponse, error) {
	if req.ClusterName != s.self.Cluster {
		return &nodepb.BallotResponse{Refusal: s.foreign(req.ClusterName)}, nil
	}
	if req.Withdraw {
		s.ballot.Withdraw(req.Name, req.Incarnation)
		return &nodepb.BallotResponse{}, nil
	}
	if err := s.ballot.Vote(s.cfg.Members().Nodes(), s.cfg.Expect, req.Name, req.Incarnation); err != nil {
		return &nodepb.BallotResponse{Refusal: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	return &nodepb.BallotResponse{}, nil
}

// Join registers another node.
func (s *Server) Join(ctx context.Context, req *nodepb.JoinRequest) (*nodepb.JoinResponse, error) {
	store := s.store.Load()
	if store == nil {
		return nil, status.Error(codes.Unavailable, "this node is not part of a cluster yet")
	}
	cluster, known := store.Cluster()
	switch {
	case !known:
		return nil, status.Error(codes.Unavailable, "the cluster is not provisioned yet")
	case req.ClusterName != s.self.Cluster:
		return &nodepb.JoinResponse{Refusal: s.foreign(req.ClusterName)}, nil
	case req.Protocol != Protocol:
		return &nodepb.JoinResponse{Refusal: fmt.Sprintf("version %s of the server is incompatible with version %s of the cluster; install that version", req.Version, version.Version())}, nil
	}
	if err := cluster.CheckJoin(req.FeatureLevel); err != nil {
		return tooOld(cluster, err), nil
	}
	node, err := store.AddNode(ctx, metadata.Node{
		Name: req.Name, Incarnation: req.Incarnation,
		FabricAddress: req.FabricAddress, IngressAddress: req.IngressAddress, AdminAddress: req.AdminAddress,
		FeatureLevel: feature.Announced(req.FeatureLevel),
	}, s.inUse(req.Name, req.Incarnation))
	switch {
	case errors.Is(err, metadata.ErrNodeInUse), errors.Is(err, metadata.ErrUnavailable), errors.Is(err, metadata.ErrUnknownOutcome):
		return nil, status.Error(codes.Unavailable, err.Error()) // may succeed later
	case errors.Is(err, metadata.ErrNodeTooOld): // the level was raised concurrently
		cluster, _ = store.Cluster()
		return tooOld(cluster, err), nil
	case errors.Is(err, metadata.ErrNodeRemoved), errors.Is(err, metadata.ErrNodeConflict):
		return &nodepb.JoinResponse{Refusal: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	s.log.Info("node joined the cluster", "node", node.Name, "node_id", ids.Node(node.ID), "address", node.FabricAddress)
	return &nodepb.JoinResponse{ClusterId: cluster.ID, NodeId: node.ID}, nil
}

// tooOld rejects a server that does not support the cluster's feature level.
func tooOld(cluster metadata.Cluster, err error) *nodepb.JoinResponse {
	return &nodepb.JoinResponse{
		Refusal: err.Error(), FeatureLevel: uint32(cluster.Level()), FeatureLevelAt: cluster.FeatureLevelAt.UnixMilli(),
	}
}

// inUse reports whether another node of that name is alive.
func (s *Server) inUse(name, incarnation string) bool {
	for _, m := range s.cfg.Members().Nodes() {
		if m.Name == name && m.Incarnation != incarnation && m.State == membership.Alive {
			return true
		}
	}
	return false
}

func (s *Server) foreign(name string) string {
	if skipped, due := s.refusals.Admit("", time.Now()); due {
		s.log.Warn("node of another cluster refused", "cluster", fmt.Sprintf("%.64s", name), "repeated", skipped)
	}
	return "this is a node of another cluster; check cluster-name and metadata-client.addresses"
}

// Propose proposes a change of the metadata if this node is the leader.
func (s *Server) Propose(ctx context.Context, req *nodepb.ProposeRequest) (*nodepb.ProposeResponse, error) {
	store, err := s.member(req.ClusterId)
	if err != nil {
		return &nodepb.ProposeResponse{NotLeader: true}, nil //nolint:nilerr // the response has the error
	}
	result, index, err := store.HandleForward(ctx, req.Entry)
	switch {
	case errors.Is(err, metadata.ErrNotLeader):
		return &nodepb.ProposeResponse{NotLeader: true}, nil
	case errors.Is(err, metadata.ErrUnavailable):
		return &nodepb.ProposeResponse{Unavailable: true}, nil
	case err != nil:
		return &nodepb.ProposeResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	return &nodepb.ProposeResponse{Result: result, Index: index}, nil
}

// Transfer transfers the leadership of a partition.
func (s *Server) Transfer(ctx context.Context, req *nodepb.TransferRequest) (*nodepb.TransferResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.TransferResponse{Error: err.Error(), NotLeader: true}, nil //nolint:nilerr // the response has the error
	}
	if req.Partition >= s.partitions() {
		return &nodepb.TransferResponse{Error: fmt.Sprintf("there is no partition %d", req.Partition)}, nil
	}
	p := s.Replica(req.Partition)
	if p == nil {
		return &nodepb.TransferResponse{Error: fmt.Sprintf("this node has no replica of partition %d", req.Partition), NotLeader: true}, nil
	}
	if err := p.TransferLeadership(ctx, memberOn(p, raft.ServerID(req.To))); err != nil {
		return &nodepb.TransferResponse{Error: err.Error(), NotLeader: errors.Is(err, raftgroup.ErrNotLeader)}, nil
	}
	return &nodepb.TransferResponse{}, nil
}

// memberOn returns the member of a partition on a node, or the ID itself.
func memberOn(p *partition.Partition, node raft.ServerID) raft.ServerID {
	for _, s := range p.Status().Members.Servers {
		if on, _ := metadata.ReplicaNode(s.ID); on == node {
			return s.ID
		}
	}
	return node
}

// errNoMetadata means that this node joins a cluster whose metadata it has not received yet.
var errNoMetadata = errors.New("this node has not received the metadata of its cluster yet")

// member returns the metadata for a request from a node of the same cluster. With
// errNoMetadata, it is unknown whether that is so.
func (s *Server) member(clusterID string) (*metadata.Store, error) {
	store := s.store.Load()
	if store == nil {
		return nil, errors.New("this node is not part of a cluster yet")
	}
	switch own, known := store.Cluster(); {
	case !known:
		return nil, errNoMetadata
	case own.ID != clusterID:
		return nil, errors.New("this is a node of another cluster")
	}
	return store, nil
}

// Recover executes this node's part of the recovery of a partition.
func (s *Server) Recover(ctx context.Context, req *nodepb.RecoverRequest) (*nodepb.RecoverResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.RecoverResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	if req.Partition >= s.partitions() {
		return &nodepb.RecoverResponse{Error: fmt.Sprintf("there is no partition %d", req.Partition)}, nil
	}
	if err := s.replicas.Load().Recover(ctx, req); err != nil {
		return &nodepb.RecoverResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	return &nodepb.RecoverResponse{}, nil
}

// Follow returns when this node has applied the metadata's log up to an index.
func (s *Server) Follow(ctx context.Context, req *nodepb.FollowRequest) (*nodepb.FollowResponse, error) {
	store, err := s.member(req.ClusterId)
	if errors.Is(err, errNoMetadata) { // they contain the cluster
		if err = s.store.Load().Follow(ctx, req.Index); err == nil {
			store, err = s.member(req.ClusterId)
		}
	}
	if err == nil {
		err = store.Follow(ctx, req.Index)
	}
	return &nodepb.FollowResponse{}, err
}
