package node

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

	"platform/internal/config"
	"platform/internal/datadir"
	"platform/internal/feature"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/internal/routing"
	"platform/internal/version"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

// nodeProtocol is the version of what nodes say to each other. Nodes of different
// versions make no cluster.
const nodeProtocol = 1

// clusterServer answers other nodes about the cluster. It is there before this node
// is part of one.
type clusterServer struct {
	nodepb.UnimplementedNodeClusterServer

	self     datadir.Identity
	expect   int
	flow     bool                    // the settings ask for flow control
	hold     bool                    // the settings ask to keep the feature level
	settings func() []config.Setting // without secrets
	ballot   membership.Ballot
	members  func() *membership.Members
	local    func(id uint32) *partition.Partition
	// quarantine says why a replica of this node is not served, "" if it is.
	quarantine func(id uint32) string
	// disk says what the node does not do because its disk is full, "" if it has room.
	disk func() string
	// replica is the Raft server id of this node's replica of a partition.
	replica func(id uint32) string
	// recoverReplica does this node's part in the recovery of a partition.
	recoverReplica func(context.Context, *nodepb.RecoverRequest) error
	started        time.Time
	draining       *atomic.Bool
	log            *slog.Logger

	// These are nil until they are open.
	store  atomic.Pointer[metadata.Store]
	router atomic.Pointer[routing.Router]
	// partitions is how many there are, 0 until that is known.
	partitions atomic.Uint32
}

var _ nodepb.NodeClusterServer = (*clusterServer)(nil)

// Ballot gives this node's vote to the one that provisions the cluster, or takes it
// back.
func (s *clusterServer) Ballot(_ context.Context, req *nodepb.BallotRequest) (*nodepb.BallotResponse, error) {
	if req.ClusterName != s.self.Cluster {
		return &nodepb.BallotResponse{Refusal: s.foreign(req.ClusterName)}, nil
	}
	if req.Withdraw {
		s.ballot.Withdraw(req.Name, req.Incarnation)
		return &nodepb.BallotResponse{}, nil
	}
	if err := s.ballot.Vote(s.members().Nodes(), s.expect, req.Name, req.Incarnation); err != nil {
		return &nodepb.BallotResponse{Refusal: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	return &nodepb.BallotResponse{}, nil
}

// Join registers another node.
func (s *clusterServer) Join(ctx context.Context, req *nodepb.JoinRequest) (*nodepb.JoinResponse, error) {
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
	case req.Protocol != nodeProtocol:
		return &nodepb.JoinResponse{Refusal: fmt.Sprintf("version %s of the server cannot work with version %s, which the cluster runs; install that", req.Version, version.Version())}, nil
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
		return nil, status.Error(codes.Unavailable, err.Error()) // another time, perhaps
	case errors.Is(err, metadata.ErrNodeTooOld): // the level has risen meanwhile
		cluster, _ = store.Cluster()
		return tooOld(cluster, err), nil
	case errors.Is(err, metadata.ErrNodeRemoved), errors.Is(err, metadata.ErrNodeConflict):
		return &nodepb.JoinResponse{Refusal: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	s.log.Info("node joins the cluster", "node", node.Name, "node_id", node.ID, "address", node.FabricAddress)
	return &nodepb.JoinResponse{ClusterId: cluster.ID, NodeId: node.ID}, nil
}

// tooOld refuses a server that does not support the cluster's feature level.
func tooOld(cluster metadata.Cluster, err error) *nodepb.JoinResponse {
	return &nodepb.JoinResponse{
		Refusal: err.Error(), FeatureLevel: uint32(cluster.Level()), FeatureLevelAt: cluster.FeatureLevelAt.UnixMilli(),
	}
}

// inUse reports whether another node of that name is alive.
func (s *clusterServer) inUse(name, incarnation string) bool {
	for _, m := range s.members().Nodes() {
		if m.Name == name && m.Incarnation != incarnation && m.State == membership.Alive {
			return true
		}
	}
	return false
}

func (s *clusterServer) foreign(name string) string {
	return fmt.Sprintf("this is a node of cluster %q, not %q; check cluster-name and metadata-client.addresses", s.self.Cluster, name)
}

// Propose makes a change of the metadata if this node leads them.
func (s *clusterServer) Propose(ctx context.Context, req *nodepb.ProposeRequest) (*nodepb.ProposeResponse, error) {
	store, err := s.member(req.ClusterId)
	if err != nil {
		return &nodepb.ProposeResponse{NotLeader: true}, nil //nolint:nilerr // the answer tells
	}
	result, index, err := store.HandleForward(ctx, req.Entry)
	switch {
	case errors.Is(err, metadata.ErrNotLeader):
		return &nodepb.ProposeResponse{NotLeader: true}, nil
	case errors.Is(err, metadata.ErrUnavailable):
		return &nodepb.ProposeResponse{Unavailable: true}, nil
	case err != nil:
		return &nodepb.ProposeResponse{Error: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	return &nodepb.ProposeResponse{Result: result, Index: index}, nil
}

// Transfer hands leadership of a partition over.
func (s *clusterServer) Transfer(ctx context.Context, req *nodepb.TransferRequest) (*nodepb.TransferResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.TransferResponse{Error: err.Error(), NotLeader: true}, nil //nolint:nilerr // the answer tells
	}
	if req.Partition >= s.partitions.Load() {
		return &nodepb.TransferResponse{Error: fmt.Sprintf("there is no partition %d", req.Partition)}, nil
	}
	p := s.local(req.Partition)
	if p == nil {
		return &nodepb.TransferResponse{Error: fmt.Sprintf("this node has no replica of partition %d", req.Partition), NotLeader: true}, nil
	}
	if err := p.TransferLeadership(ctx, memberOn(p, raft.ServerID(req.To))); err != nil {
		return &nodepb.TransferResponse{Error: err.Error(), NotLeader: errors.Is(err, raftgroup.ErrNotLeader)}, nil
	}
	return &nodepb.TransferResponse{}, nil
}

// memberOn is the member of a partition that is on a node, or the id itself.
func memberOn(p *partition.Partition, node raft.ServerID) raft.ServerID {
	for _, s := range p.Status().Members.Servers {
		if on, _ := metadata.ReplicaNode(s.ID); on == node {
			return s.ID
		}
	}
	return node
}

// member is the metadata for a node of the same cluster.
func (s *clusterServer) member(clusterID string) (*metadata.Store, error) {
	store := s.store.Load()
	if store == nil {
		return nil, errors.New("this node is not part of a cluster yet")
	}
	if own, known := store.Cluster(); !known || own.ID != clusterID {
		return nil, fmt.Errorf("this node is of cluster %q, not %q", own.ID, clusterID)
	}
	return store, nil
}
