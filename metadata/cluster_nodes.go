package metadata

import (
	"context"
	"errors"
	"fmt"

	"platform/internal/feature"
)

// MaxPartitions bounds the number of partitions of a cluster.
const MaxPartitions = 65535

// Provision creates the cluster with a name and a number of partitions; an empty ID means a
// new one. The first caller decides: the result is the existing cluster.
func (s *Store) Provision(ctx context.Context, c Cluster) (Cluster, error) {
	if c.Name == "" || c.Partitions == 0 || c.Partitions > MaxPartitions {
		return Cluster{}, fmt.Errorf("provision cluster %q with %d partitions: a name and 1 to %d partitions are needed", c.Name, c.Partitions, MaxPartitions)
	}
	if c.FeatureLevel == feature.Level1 {
		c.FeatureLevel = 0
	}
	if c.ID == "" {
		c.ID = formatID(s.newID())
	}
	return propose[Cluster](ctx, s, &provision{c})
}

// RegisterNode registers a node, or its new addresses and incarnation. ID 0 keeps the
// node's ID, or assigns the next one. The result has the ID. The error can be
// ErrNodeConflict or ErrNodeRemoved.
func (s *Store) RegisterNode(ctx context.Context, n Node) (Node, error) {
	return s.AddNode(ctx, n, false)
}

// AddNode is RegisterNode for a joining node. nameInUse means that a node with
// that name is alive, or may be: then only the same incarnation may have the name, and the
// error can also be ErrNodeInUse. Otherwise a node that lost its data replaces its
// predecessor. The error can be ErrNodeTooOld. Draining and Removed are ignored.
//
// The controller adds the node to the metadata group.
func (s *Store) AddNode(ctx context.Context, n Node, nameInUse bool) (Node, error) {
	if n.Name == "" {
		return Node{}, errors.New("register node: the name is empty")
	}
	n.Draining, n.Removed = false, false
	announced := n.FeatureLevel
	if s.FeatureLevel() < feature.Level2 {
		n.FeatureLevel = 0 // old members cannot read it
	}
	node, err := propose[Node](ctx, s, &registerNode{n, nameInUse})
	if errors.Is(err, ErrNodeTooOld) && n.FeatureLevel != announced {
		n.FeatureLevel = announced // the level has risen, and is now known here
		return propose[Node](ctx, s, &registerNode{n, nameInUse})
	}
	return node, err
}

// RemoveNode removes a node from the cluster; it can rejoin only as a new one, with an
// empty data directory. A node with replicas in the partition table has to be drained
// first, unless force says that they are dispensable. The error can be a *NotFoundError,
// ErrLastNode or ErrNodeHoldsData.
func (s *Store) RemoveNode(ctx context.Context, id uint32, force bool) (Node, error) {
	return propose[Node](ctx, s, &removeNode{id, force})
}

// DrainNode makes the controller move a node's replicas away, or, with draining false, use
// the node again. The error can be a *NotFoundError.
func (s *Store) DrainNode(ctx context.Context, id uint32, draining bool) (Node, error) {
	return propose[Node](ctx, s, &drainNode{id, draining})
}

// SetPartition replaces the table entry of a partition if that still has the version of p.
// The result has the new version. The error can be ErrVersionConflict, a *NotFoundError or
// an *InvalidError.
func (s *Store) SetPartition(ctx context.Context, p Partition) (Partition, error) {
	return propose[Partition](ctx, s, &setPartition{Partition{ID: p.ID, Replicas: p.Replicas}, p.Version})
}

// EnableFlowControl records that flow control is enabled on all partitions, so that none
// checks again whether it may be. Members of an older version cannot read the entry.
func (s *Store) EnableFlowControl(ctx context.Context) error {
	_, err := propose[Cluster](ctx, s, &enableFlowControl{})
	return err
}

// SetReplication changes the desired number of replicas per partition. The error can be an
// *InvalidError.
func (s *Store) SetReplication(ctx context.Context, replicas int) (Cluster, error) {
	if err := CheckReplication(replicas); err != nil {
		return Cluster{}, err
	}
	return propose[Cluster](ctx, s, &setReplication{uint32(replicas)})
}

// CheckReplication returns an *InvalidError for a number of replicas that partitions cannot have.
func CheckReplication(replicas int) error {
	if replicas < 1 || replicas > MaxReplication {
		return &InvalidError{fmt.Sprintf("replication is 1 to %d, not %d", MaxReplication, replicas)}
	}
	return nil
}

// MaxReplication bounds the replicas of a partition. It is higher than useful: each write
// waits for a majority.
const MaxReplication = 9
