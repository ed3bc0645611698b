package node

import (
	"context"
	"sync"
	"time"

	"platform/internal/membership"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// spreadTimeout bounds how long a change of the registry or the rules waits for nodes
// that are known as alive and do not follow. They get the change later.
const spreadTimeout = time.Second

// spread waits until the nodes that are alive have applied the metadata's log up to
// index, so that a service that was registered on one can be called on all.
func (n *Node) spread(ctx context.Context, index uint64) {
	ctx, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	store := n.cluster.store.Load()
	layout, _ := store.Layout()
	alive := make(map[string]bool)
	for _, m := range n.members.Nodes() {
		alive[m.Incarnation] = m.State == membership.Alive
	}
	var wg sync.WaitGroup
	for _, node := range layout.Nodes {
		if node.ServerID() == n.replica().ID || !alive[node.Incarnation] {
			continue
		}
		wg.Go(func() {
			if err := n.awaitFollower(ctx, store, node, index); err != nil {
				n.log.Warn("node does not know of a change yet", "node", node.Name, "index", index, "error", err)
			}
		})
	}
	wg.Wait()
}

// awaitFollower waits until another node has applied the metadata's log up to index.
func (n *Node) awaitFollower(ctx context.Context, store *metadata.Store, node metadata.Node, index uint64) error {
	peer, err := n.peers.at(string(n.addresses.of(node.ServerID())))
	if err != nil {
		return err
	}
	cluster, _ := store.Cluster()
	_, err = peer.Follow(ctx, &nodepb.FollowRequest{ClusterId: cluster.ID, Index: index})
	return err
}

// Follow answers when this node has applied the metadata's log up to a place.
func (s *clusterServer) Follow(ctx context.Context, req *nodepb.FollowRequest) (*nodepb.FollowResponse, error) {
	store, err := s.member(req.ClusterId)
	if err == nil {
		err = store.Follow(ctx, req.Index)
	}
	return &nodepb.FollowResponse{}, err
}
