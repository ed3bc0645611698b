package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/config"
	"platform/internal/datadir"
	"platform/internal/membership"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// standingTimeout bounds how long a start waits for nodes that do not answer.
	standingTimeout = time.Second
	// standingTick is how often a running node asks nodes that its metadata do not have.
	standingTick = 5 * time.Second
)

// Standing tells another node whether it is still a member.
func (s *Server) Standing(_ context.Context, req *nodepb.StandingRequest) (*nodepb.StandingResponse, error) {
	store, err := s.member(req.ClusterId)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &nodepb.StandingResponse{Removed: store.RemovalReason(req.Name, req.Incarnation)}, nil
}

// Standing tells whether this node is still a member of its cluster, according to others.
type Standing struct {
	Self    datadir.Identity
	DataDir string
	Peers   *Peers
}

// Check fails if another node reports that this one is no longer a member. It is
// called before anything of the metadata or the partitions is opened: replicas of a
// node that was removed may be a majority among themselves. Nodes that do not answer
// have no say, so that a cluster whose nodes start at the same time is not held up.
func (s *Standing) Check(ctx context.Context, layout *metadata.Layout, seeds []string) error {
	addresses := map[string]bool{}
	for _, seed := range seeds {
		addresses[seed] = true
	}
	for _, node := range layout.Nodes {
		if address := config.HostPort(node.FabricAddress); node.Name != s.Self.Node && address != "" {
			addresses[address] = true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, standingTimeout)
	defer cancel()
	var mu sync.Mutex
	var removed error
	var wg sync.WaitGroup
	for address := range addresses {
		wg.Go(func() {
			if err := s.ask(ctx, layout.Cluster.ID, address); errors.Is(err, metadata.ErrNodeRemoved) {
				mu.Lock()
				defer mu.Unlock()
				removed = err
				cancel()
			}
		})
	}
	wg.Wait()
	return removed
}

// ask asks the node at an address. The error is ErrNodeRemoved if it says that
// this node was removed.
func (s *Standing) ask(ctx context.Context, cluster, address string) error {
	peer, err := s.Peers.At(address)
	if err != nil {
		return err
	}
	resp, err := peer.Standing(ctx, &nodepb.StandingRequest{ClusterId: cluster, Name: s.Self.Node, Incarnation: s.Self.Incarnation})
	if err != nil {
		return err
	}
	if resp.Removed != "" {
		return s.Removed(resp.Removed)
	}
	return nil
}

// Removed is the error of a node that is no longer a member.
func (s *Standing) Removed(reason string) error {
	return &metadata.RemovedError{Node: s.Self.Node, Reason: reason, Data: s.DataDir}
}

// Watch ends with an error when a node that this one's metadata do not have
// says that this one was removed: the cluster was recovered without it.
func (s *Standing) Watch(ctx context.Context, store *metadata.Store, members *membership.Members) error {
	tick := time.NewTicker(standingTick)
	defer tick.Stop()
	for {
		for _, m := range strangers(store, members) {
			asking, cancel := context.WithTimeout(ctx, standingTimeout)
			err := s.ask(asking, m.ClusterID, m.Address)
			cancel()
			if errors.Is(err, metadata.ErrNodeRemoved) {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// strangers are nodes of the cluster that the metadata do not have.
func strangers(store *metadata.Store, members *membership.Members) (list []membership.Member) {
	layout, _ := store.Layout()
	known := map[string]bool{}
	for _, node := range layout.Nodes {
		known[string(node.ServerID())] = true
	}
	for _, m := range members.Nodes() {
		if m.State == membership.Alive && !m.Self && m.ClusterID == layout.Cluster.ID && !known[string(ServerID(m.Name, m.Incarnation))] {
			list = append(list, m)
		}
	}
	return list
}
