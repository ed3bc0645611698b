package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"platform/admin"
	"platform/internal/membership"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// transferTimeout bounds how long an operator waits until another node leads.
	transferTimeout = 10 * time.Second
	// transferPause is the time between two tries.
	transferPause = 100 * time.Millisecond
)

// clusterAdmin is the cluster for the admin API.
type clusterAdmin struct{ n *Node }

var _ admin.Cluster = clusterAdmin{}

// State implements admin.Cluster.
func (c clusterAdmin) State(ctx context.Context) (*admin.ClusterState, error) {
	return c.n.facts(c.n.statuses(ctx)).view(), nil
}

// facts are what this node knows of the cluster, with what nodes said about themselves.
func (n *Node) facts(statuses map[uint32]*nodepb.StatusResponse) *clusterFacts {
	layout, _ := n.metadata.Layout()
	group := n.metadata.Group()
	return &clusterFacts{
		self: n.replica().ID, layout: layout, members: n.members.Nodes(),
		leader: group.Leader().ID, servers: group.Servers(),
		statuses: statuses,
	}
}

// Transfer implements admin.Cluster. The table comes first: whoever leads else hands
// the leadership back.
func (c clusterAdmin) Transfer(ctx context.Context, partition, node uint32) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if err := c.prefer(ctx, partition, node); err != nil {
		return err
	}
	var last error
	for {
		done, err := c.transferOnce(ctx, partition, node)
		if done {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(transferPause):
		case <-ctx.Done():
			return refuse(http.StatusServiceUnavailable, "node %d has not taken over yet (%v), but will when it can", node, cmp.Or(last, context.Cause(ctx)))
		}
	}
}

// prefer puts a node in front of the partition's place in the table.
func (c clusterAdmin) prefer(ctx context.Context, partition, node uint32) error {
	for {
		layout, _ := c.n.metadata.Layout()
		place := layout.Partitions[partition]
		if err := c.mayLead(layout, place, node); err != nil {
			return err
		}
		if place.Replicas[0] == node {
			return nil
		}
		others := slices.DeleteFunc(slices.Clone(place.Replicas), func(id uint32) bool { return id == node })
		place.Replicas = append([]uint32{node}, others...)
		_, err := c.n.metadata.SetPartition(ctx, place)
		if err == nil || !errors.Is(err, metadata.ErrVersionConflict) {
			return err
		}
	}
}

// mayLead refuses nodes that cannot lead a partition.
func (c clusterAdmin) mayLead(layout *metadata.Layout, place metadata.Partition, id uint32) error {
	node, member := layout.Node(id)
	if !member {
		return &metadata.NotFoundError{Node: id}
	}
	if !slices.Contains(place.Replicas, id) {
		var names []string
		for _, holder := range place.Replicas {
			if n, known := layout.Node(holder); known {
				names = append(names, n.Name)
			}
		}
		return refuse(http.StatusConflict, "node %s has no replica of partition %d; there are some on %s", node.Name, place.ID, strings.Join(names, ", "))
	}
	if state := c.n.members.State(node.Name, node.Incarnation); node.ServerID() != c.n.replica().ID && state != membership.Alive {
		return refuse(http.StatusConflict, "node %s cannot lead now, it is %s", node.Name, state)
	}
	if node.Draining {
		return refuse(http.StatusConflict, "node %s is being drained; undrain it first", node.Name)
	}
	return nil
}

// transferOnce asks who leads a partition to hand it over; done says that the node
// leads already.
func (c clusterAdmin) transferOnce(ctx context.Context, partition, to uint32) (done bool, err error) {
	layout, _ := c.n.metadata.Layout()
	target, member := layout.Node(to)
	if !member {
		return false, &metadata.NotFoundError{Node: to}
	}
	leader, leads := leaderOf(c.n.statuses(ctx), partition)
	if !leads {
		return false, fmt.Errorf("partition %d has no leader", partition)
	}
	if leader == to {
		return true, nil
	}
	cluster, _ := c.n.metadata.Cluster()
	req := &nodepb.TransferRequest{ClusterId: cluster.ID, Partition: partition, To: string(target.ServerID())}
	from, _ := layout.Node(leader)
	resp, err := c.askTransfer(ctx, from, req)
	if err == nil && resp.Error != "" {
		err = errors.New(resp.Error)
	}
	return false, err
}

func (c clusterAdmin) askTransfer(ctx context.Context, leader metadata.Node, req *nodepb.TransferRequest) (*nodepb.TransferResponse, error) {
	if leader.ServerID() == c.n.replica().ID {
		return c.n.cluster.Transfer(ctx, req)
	}
	peer, err := c.n.peers.at(string(c.n.addresses.of(leader.ServerID())))
	if err != nil {
		return nil, err
	}
	return peer.Transfer(ctx, req)
}

// leaderOf is the node that leads a partition and serves, of those that answered.
func leaderOf(statuses map[uint32]*nodepb.StatusResponse, partition uint32) (leader uint32, leads bool) {
	term := uint64(0)
	for id, st := range statuses {
		for _, r := range st.Replicas {
			if r.Partition == partition && r.Leading && (!leads || r.Term > term) {
				leader, term, leads = id, r.Term, true
			}
		}
	}
	return leader, leads
}
