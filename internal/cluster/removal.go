package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/cluster/datadir"
	"platform/internal/cluster/membership"
	"platform/internal/config"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// removalTimeout bounds how long a start waits for nodes that do not respond.
	removalTimeout = time.Second
	// removalTick is the interval of requests to nodes that are missing from the metadata.
	removalTick = 5 * time.Second
)

// Standing reports to another node whether it is still a member.
func (s *Server) Standing(_ context.Context, req *nodepb.StandingRequest) (*nodepb.StandingResponse, error) {
	store, err := s.member(req.ClusterId)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &nodepb.StandingResponse{Removed: store.RemovalReason(req.Name, req.Incarnation)}, nil
}

// RemovalCheck finds out from other nodes whether this node was removed from its cluster.
type RemovalCheck struct {
	Self    datadir.Identity
	DataDir string
	Peers   *Peers
}

// Check fails if another node reports that this one is no longer a member. It must
// be called before metadata and partitions are opened, since the replicas of removed nodes
// may be a majority among themselves. Nodes that do not respond are ignored, so that the
// nodes of a cluster can start at the same time.
func (c *RemovalCheck) Check(ctx context.Context, layout *metadata.Layout, seeds []string) error {
	addresses := map[string]bool{}
	for _, seed := range seeds {
		addresses[seed] = true
	}
	for _, node := range layout.Nodes {
		if address := config.HostPort(node.FabricAddress); node.Name != c.Self.Node && address != "" {
			addresses[address] = true
		}
	}
	return c.requestAll(ctx, layout.Cluster.ID, slices.Collect(maps.Keys(addresses)))
}

// requestAll sends a request to the nodes at some addresses. It returns an error only if one of
// them reports that this node was removed.
func (c *RemovalCheck) requestAll(ctx context.Context, cluster string, addresses []string) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	var mu sync.Mutex
	var removed error
	var wg sync.WaitGroup
	for _, address := range addresses {
		wg.Go(func() {
			if err := c.request(ctx, cluster, address); errors.Is(err, metadata.ErrNodeRemoved) {
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

// request sends a request to the node at an address. The error is ErrNodeRemoved if
// this node was removed.
func (c *RemovalCheck) request(ctx context.Context, cluster, address string) error {
	peer, err := c.Peers.At(address)
	if err != nil {
		return err
	}
	resp, err := peer.Standing(ctx, &nodepb.StandingRequest{ClusterId: cluster, Name: c.Self.Node, Incarnation: c.Self.Incarnation})
	if err != nil {
		return err
	}
	if resp.Removed != "" {
		return c.removed(resp.Removed)
	}
	return nil
}

// removed is the error of a node that is no longer a member.
func (c *RemovalCheck) removed(reason string) error {
	return &metadata.RemovedError{Node: c.Self.Node, Reason: reason, Data: c.DataDir}
}

// Watch returns an error when another node reports that this one was removed. It sends
// requests to the nodes that are missing from this node's metadata, and to those that are no longer
// alive in its view: a cluster that was recovered without this node refuses its gossip. While the
// metadata has no leader, it sends them to all.
func (c *RemovalCheck) Watch(ctx context.Context, store *metadata.Store, members *membership.Members) error {
	tick := time.NewTicker(removalTick)
	defer tick.Stop()
	for {
		layout, _ := store.Layout()
		if err := c.requestAll(ctx, layout.Cluster.ID, c.candidates(layout, members.Nodes(), store.Group().Leader().ID == "")); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// candidates returns the addresses of nodes that are alive and missing from the metadata, or in the
// metadata and not alive; those of all nodes if all is set.
func (c *RemovalCheck) candidates(layout *metadata.Layout, members []membership.Member, all bool) (addresses []string) {
	alive := map[string]string{} // addresses
	for _, m := range members {
		if m.State == membership.Alive && !m.Self && m.ClusterID == layout.Cluster.ID {
			alive[string(ServerID(m.Name, m.Incarnation))] = m.Address
		}
	}
	for _, node := range layout.Nodes {
		id := string(node.ServerID())
		if _, reached := alive[id]; (all || !reached) && node.Name != c.Self.Node && node.FabricAddress != "" {
			addresses = append(addresses, config.HostPort(node.FabricAddress))
		}
		delete(alive, id)
	}
	return slices.AppendSeq(addresses, maps.Values(alive))
}
