package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/admin"
	"platform/internal/cluster"
	"platform/internal/cluster/membership"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// transferTimeout limits the wait until another node leads.
	transferTimeout = 10 * time.Second
	// transferPause is the time between two attempts.
	transferPause = 100 * time.Millisecond
)

// Nodes sends requests to the nodes of the cluster, including this one.
type Nodes interface {
	// Statuses returns the statuses of all nodes that respond in time. details adds what only
	// queries and recoveries need.
	Statuses(ctx context.Context, details bool) cluster.Statuses
	// StatusesWithin is Statuses with another timeout.
	StatusesWithin(ctx context.Context, timeout time.Duration, details bool) cluster.Statuses
	// Stats returns the time series of all nodes.
	Stats(ctx context.Context, q stats.Query) []cluster.NodeStats
	// Events returns the changes of the cluster that all nodes have observed.
	Events(ctx context.Context) []cluster.NodeEvents
	// LogLevels returns, and changes unless change is nil, the log levels of nodes.
	LogLevels(ctx context.Context, nodes []metadata.Node, change *cluster.LogLevelsChange) []cluster.NodeLogLevels
	// Transfer requests that the leader, node leader, transfers the leadership of a partition.
	Transfer(ctx context.Context, leader metadata.Node, partition uint32, to metadata.Node) error
	// Recover requests a node's part of the recovery of a partition. It may modify req.
	Recover(ctx context.Context, node metadata.Node, req *nodepb.RecoverRequest) error
}

// Cluster implements the cluster operations of the admin API and of SQL. It is safe for
// concurrent use.
type Cluster struct {
	Self    raft.ServerID
	Store   *metadata.Store
	Members *membership.Members
	Nodes   Nodes
	Log     *slog.Logger
}

var _ admin.Cluster = (*Cluster)(nil)

// State implements admin.Cluster.
func (c *Cluster) State(ctx context.Context) (*admin.ClusterState, error) {
	return c.facts(c.Nodes.Statuses(ctx, false)).view(), nil
}

// Activity implements admin.Cluster: the log entries that the partitions have applied, and the
// failed attempts, which are not in the log.
func (c *Cluster) Activity(ctx context.Context) (uint64, error) {
	applied, activity := map[uint32]uint64{}, uint64(0)
	for _, st := range c.Nodes.Statuses(ctx, false) {
		activity += st.FailedAttempts
		for _, r := range st.Replicas {
			applied[r.Partition] = max(applied[r.Partition], r.Applied)
		}
	}
	for _, index := range applied {
		activity += index
	}
	return activity, context.Cause(ctx)
}

// Stats implements admin.Cluster.
func (c *Cluster) Stats(ctx context.Context, q stats.Query) []admin.NodeStats {
	var list []admin.NodeStats
	for _, n := range c.Nodes.Stats(ctx, q) {
		list = append(list, admin.NodeStats{ID: ids.Node(n.Node.ID), Name: n.Node.Name, Result: n.Result, Reason: reasonOf(n.Err)})
	}
	return list
}

// Events implements admin.Cluster.
func (c *Cluster) Events(ctx context.Context) []admin.NodeEvents {
	var list []admin.NodeEvents
	for _, n := range c.Nodes.Events(ctx) {
		list = append(list, admin.NodeEvents{ID: ids.Node(n.Node.ID), Name: n.Node.Name, Events: n.Events, Reason: reasonOf(n.Err)})
	}
	return list
}

// reasonOf describes why a node has not done what was requested, "" if it has.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case status.Code(err) == codes.Unimplemented:
		return "its server is too old"
	case status.Code(err) == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return "it did not respond in time"
	case status.Code(err) == codes.Unavailable:
		return "it cannot be reached"
	}
	return err.Error()
}

// LogLevels implements admin.Cluster.
func (c *Cluster) LogLevels(ctx context.Context, nodes []metadata.Node, change *admin.LogLevelsChange) []admin.NodeLogLevels {
	var list []admin.NodeLogLevels
	for _, n := range c.Nodes.LogLevels(ctx, nodes, (*cluster.LogLevelsChange)(change)) {
		list = append(list, admin.NodeLogLevels{ID: ids.Node(n.Node.ID), Name: n.Node.Name, State: n.State, Reason: reasonOf(n.Err)})
	}
	return list
}

// facts collects what this node knows of the cluster and what nodes report about themselves.
func (c *Cluster) facts(statuses cluster.Statuses) *clusterFacts {
	layout, _ := c.Store.Layout()
	group := c.Store.Group()
	return &clusterFacts{
		self: c.Self, layout: layout, members: c.Members.Nodes(),
		leader: group.Leader().ID, servers: group.Servers(),
		statuses: statuses,
	}
}

// Transfer implements admin.Cluster. It changes the table first; otherwise the new leader would
// transfer the leadership back.
func (c *Cluster) Transfer(ctx context.Context, partition uint32, node ids.Node) error {
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
			return reject(http.StatusServiceUnavailable, "node %s has not taken over yet (%v), but will when it can", node, cmp.Or(last, context.Cause(ctx)))
		}
	}
}

// prefer makes a node the first of the partition's placement in the table.
func (c *Cluster) prefer(ctx context.Context, partition uint32, node ids.Node) error {
	for {
		layout, _ := c.Store.Layout()
		place := layout.Partitions[partition]
		if err := c.mayLead(layout, place, node); err != nil {
			return err
		}
		if place.Replicas[0] == uint32(node) {
			return nil
		}
		others := slices.DeleteFunc(slices.Clone(place.Replicas), func(id uint32) bool { return id == uint32(node) })
		place.Replicas = append([]uint32{uint32(node)}, others...)
		_, err := c.Store.SetPartition(ctx, place)
		if err == nil || !errors.Is(err, metadata.ErrVersionConflict) {
			return err
		}
	}
}

// mayLead returns an error for nodes that cannot lead a partition.
func (c *Cluster) mayLead(layout *metadata.Layout, place metadata.Partition, id ids.Node) error {
	node, member := layout.Node(uint32(id))
	if !member {
		return &metadata.NotFoundError{Node: uint32(id)}
	}
	if !slices.Contains(place.Replicas, node.ID) {
		var names []string
		for _, holder := range place.Replicas {
			if n, known := layout.Node(holder); known {
				names = append(names, n.Name)
			}
		}
		return reject(http.StatusConflict, "node %s has no replica of partition %d; there are some on %s", node.Name, place.ID, strings.Join(names, ", "))
	}
	if state := c.Members.State(node.Name, node.Incarnation); node.ServerID() != c.Self && state != membership.Alive {
		return reject(http.StatusConflict, "node %s cannot lead now, it is %s", node.Name, state)
	}
	if node.Draining {
		return reject(http.StatusConflict, "node %s is being drained; undrain it first", node.Name)
	}
	return nil
}

// transferOnce requests the transfer from the current leader; done means that the node already
// leads.
func (c *Cluster) transferOnce(ctx context.Context, partition uint32, to ids.Node) (done bool, err error) {
	layout, _ := c.Store.Layout()
	target, member := layout.Node(uint32(to))
	if !member {
		return false, &metadata.NotFoundError{Node: uint32(to)}
	}
	leader, leads := c.Nodes.Statuses(ctx, false).Leader(partition)
	if !leads {
		return false, fmt.Errorf("partition %d has no leader", partition)
	}
	if leader == uint32(to) {
		return true, nil
	}
	from, _ := layout.Node(leader)
	return false, c.Nodes.Transfer(ctx, from, partition, target)
}

// RaiseFeatureLevel implements admin.Cluster.
func (c *Cluster) RaiseFeatureLevel(ctx context.Context, level uint32) (metadata.Cluster, error) {
	layout, _ := c.Store.Layout()
	plan := metadata.PlanLevel(layout, c.Nodes.Statuses(ctx, false).Announcements())
	switch wanted := feature.Level(level); {
	case wanted == plan.Level:
		return layout.Cluster, nil
	case wanted < plan.Level:
		return metadata.Cluster{}, reject(http.StatusConflict, "the cluster is at feature level %d, which cannot be lowered", plan.Level)
	case wanted > plan.Highest:
		return metadata.Cluster{}, reject(http.StatusConflict, "no node supports feature level %d; the highest is %d", level, plan.Highest)
	case wanted > plan.Next:
		return metadata.Cluster{}, reject(http.StatusConflict, "feature level %d is not supported by all nodes: %s", level, strings.Join(plan.Waiting, "; "))
	default:
		plan.Next = wanted
	}
	cluster, err := c.Store.RaiseFeatureLevel(ctx, plan)
	if errors.Is(err, metadata.ErrMembersChanged) {
		return cluster, reject(http.StatusConflict, "nodes joined or left in the meantime; try again")
	}
	return cluster, err
}
