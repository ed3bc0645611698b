package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/cluster/membership"
	"platform/metadata"
	"platform/partition"
	"platform/partition/machine"
	nodepb "platform/proto/node"
)

const (
	// statusTimeout bounds a request for the statuses of nodes.
	statusTimeout = time.Second
	// digestTimeout bounds one request for the result of a digest round.
	digestTimeout = 2 * time.Second
	// followTimeout bounds how long a change of the registry or the rules waits for live
	// nodes to apply it. The others apply it later.
	followTimeout = time.Second
)

// Nodes sends requests about the cluster to its nodes, this one included. The metadata
// must be open. It is safe for concurrent use.
type Nodes struct {
	server    *Server
	peers     *Peers
	addresses *Addresses
}

// NewNodes returns a client for the nodes of the cluster that server belongs to.
func NewNodes(server *Server, peers *Peers, addresses *Addresses) *Nodes {
	return &Nodes{server: server, peers: peers, addresses: addresses}
}

func (n *Nodes) isSelf(node metadata.Node) bool {
	return node.ServerID() == raft.ServerID(n.server.self.ReplicaID())
}

// of returns a client for another node.
func (n *Nodes) of(node metadata.Node) (nodepb.NodeClusterClient, error) {
	return n.peers.At(string(n.addresses.Of(node.ServerID())))
}

// All returns the nodes of the cluster.
func (n *Nodes) All() []metadata.Node {
	layout, _ := n.server.Metadata().Layout()
	return layout.Nodes
}

// Partitions returns the partitions of the cluster.
func (n *Nodes) Partitions() []metadata.Partition {
	layout, _ := n.server.Metadata().Layout()
	return layout.Partitions
}

// Statuses returns the statuses of all nodes that respond in time, including this one.
// details adds the fields that only queries and recoveries need.
func (n *Nodes) Statuses(ctx context.Context, details bool) Statuses {
	return n.StatusesWithin(ctx, statusTimeout, details)
}

// StatusesWithin is Statuses with another timeout.
func (n *Nodes) StatusesWithin(ctx context.Context, timeout time.Duration, details bool) Statuses {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	layout, _ := n.server.Metadata().Layout()
	var mu sync.Mutex // covers all
	var wg sync.WaitGroup
	all := make(Statuses, len(layout.Nodes))
	for _, node := range layout.Nodes {
		if n.isSelf(node) {
			own := n.server.status()
			if details {
				n.server.detail(own)
			}
			mu.Lock()
			all[node.ID] = own
			mu.Unlock()
			continue
		}
		wg.Go(func() {
			if st, err := n.requestStatus(ctx, node, details); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[node.ID] = st
			}
		})
	}
	wg.Wait()
	return all
}

// Status returns the status of another node. It fails if another incarnation responds.
func (n *Nodes) Status(ctx context.Context, node metadata.Node) (*nodepb.StatusResponse, error) {
	st, err := n.requestStatus(ctx, node, false)
	if err == nil && ServerID(st.Name, st.Incarnation) != node.ServerID() {
		err = fmt.Errorf("%s/%s responds in its place", st.Name, st.Incarnation)
	}
	return st, err
}

func (n *Nodes) requestStatus(ctx context.Context, node metadata.Node, details bool) (*nodepb.StatusResponse, error) {
	st, err := send(ctx, n, node, nodepb.NodeClusterClient.Status, &nodepb.StatusRequest{ClusterId: n.server.ClusterID(), Details: details})
	return st, responseError(st, err)
}

// Transfer requests a transfer of the leadership of a partition from node leader.
func (n *Nodes) Transfer(ctx context.Context, leader metadata.Node, partition uint32, to metadata.Node) error {
	req := &nodepb.TransferRequest{ClusterId: n.server.ClusterID(), Partition: partition, To: string(to.ServerID())}
	resp, err := sendOrServe(ctx, n, leader, nodepb.NodeClusterClient.Transfer, n.server.Transfer, req)
	return responseError(resp, err)
}

// Recover requests a node's part in the recovery of a partition. It sets the cluster ID
// of req.
func (n *Nodes) Recover(ctx context.Context, node metadata.Node, req *nodepb.RecoverRequest) error {
	req.ClusterId = n.server.ClusterID()
	resp, err := sendOrServe(ctx, n, node, nodepb.NodeClusterClient.Recover, n.server.Recover, req)
	return responseError(resp, err)
}

// Digest returns another replica's result of a digest round of a partition.
func (n *Nodes) Digest(ctx context.Context, to raft.Server, id uint32, r partition.DigestRound) (partition.DigestResponse, error) {
	address := string(to.Address)
	if now := n.addresses.Of(to.ID); now != "" {
		address = string(now)
	}
	peer, err := n.peers.At(address)
	if err != nil {
		return partition.DigestResponse{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	resp, err := peer.Digest(ctx, &nodepb.DigestRequest{
		ClusterId: n.server.ClusterID(), Replica: string(to.ID), Partition: id, Epoch: r.Epoch, Round: r.Round,
	})
	if err := responseError(resp, err); err != nil {
		return partition.DigestResponse{}, fmt.Errorf("request a digest of partition %[2]d from %[1]s: %[3]w", address, id, err)
	}
	result := partition.DigestResponse{Missed: resp.Missed}
	if resp.Known {
		result.Result = &machine.DigestResult{Epoch: r.Epoch, Round: r.Round, Rows: resp.Rows, Next: resp.Next, Sum: resp.Sum}
	}
	return result, nil
}

// Propose forwards a change of the metadata to the node that leads them.
func (n *Nodes) Propose(ctx context.Context, leader raft.ServerAddress, entry []byte) ([]byte, uint64, error) {
	if address := n.addresses.Of(n.server.Metadata().Group().Leader().ID); address != "" {
		leader = address
	}
	peer, err := n.peers.At(string(leader))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
	}
	resp, err := peer.Propose(ctx, &nodepb.ProposeRequest{ClusterId: n.server.ClusterID(), Entry: entry})
	switch {
	case err != nil:
		return nil, 0, err
	case resp.NotLeader:
		return nil, 0, metadata.ErrNotLeader
	case resp.Unavailable:
		return nil, 0, metadata.ErrUnavailable
	case resp.Error != "":
		return nil, 0, errors.New(resp.Error)
	}
	return resp.Result, resp.Index, nil
}

// AwaitFollowers waits until the live nodes have applied the metadata's log up to index, so
// that a service that was registered on one node can be called on all of them.
func (n *Nodes) AwaitFollowers(ctx context.Context, index uint64) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	layout, _ := n.server.Metadata().Layout()
	alive := make(map[string]bool)
	for _, m := range n.server.cfg.Members().Nodes() {
		alive[m.Incarnation] = m.State == membership.Alive
	}
	var wg sync.WaitGroup
	for _, node := range layout.Nodes {
		if n.isSelf(node) || !alive[node.Incarnation] {
			continue
		}
		wg.Go(func() {
			if err := n.awaitFollower(ctx, node, index); err != nil {
				n.server.log.Warn("node has not applied a change of the metadata in time", "node", node.Name, "index", index, "error", err)
			}
		})
	}
	wg.Wait()
}

// awaitFollower waits until another node has applied the metadata's log up to index.
func (n *Nodes) awaitFollower(ctx context.Context, node metadata.Node, index uint64) error {
	_, err := send(ctx, n, node, nodepb.NodeClusterClient.Follow, &nodepb.FollowRequest{ClusterId: n.server.ClusterID(), Index: index})
	return err
}
