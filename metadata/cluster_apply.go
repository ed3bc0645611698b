package metadata

import (
	"errors"
	"fmt"
	"slices"
)

// Reasons for rejecting a change of nodes or of the partition table. Their texts are stored.
var (
	// ErrNodeInUse means that a node with that name is running, or may be.
	ErrNodeInUse = errors.New("node name is in use")
	// ErrNodeRemoved means that a removed node tries to rejoin with its old data.
	ErrNodeRemoved = errors.New("node was removed from the cluster")
	// ErrLastNode means that the only node cannot be removed.
	ErrLastNode = errors.New("the last node cannot be removed")
	// ErrNodeHoldsData means that a node has to be drained before it is removed.
	ErrNodeHoldsData = errors.New("node has replicas of partitions")
	// ErrVersionConflict means that the partition table has changed meanwhile.
	ErrVersionConflict = errors.New("partition table has changed")
)

func rejected(reason error, format string, args ...any) outcome {
	return outcome{rejection: &rejection{reason, reason.Error() + ": " + fmt.Sprintf(format, args...)}}
}

// admit returns why a node may not be registered under the name of a known one, nil if it
// may.
func admit(known, node Node, nameInUse bool) *outcome {
	var no outcome
	switch {
	case known.Removed && known.Incarnation == node.Incarnation:
		no = rejected(ErrNodeRemoved, "node %s can only rejoin with an empty data directory", node.Name)
	case nameInUse && known.Incarnation != node.Incarnation && !known.Removed:
		no = rejected(ErrNodeInUse, "node %s runs with another data directory; choose another name", node.Name)
	default:
		return nil
	}
	return &no
}

// storeTable writes the implicit partition table, unless it is already stored. This is
// necessary before a second node joins: then the location of data no longer follows from
// the nodes.
func (d *draft) storeTable() error {
	if d.cluster.ID == "" || len(d.partitions) > 0 || len(d.members()) == 0 {
		return nil
	}
	table := d.layout().Partitions
	for i := range table {
		table[i].Version = 1
		if err := d.put(tablePartitions, partitionKey(table[i].ID), partitionToProto(table[i])); err != nil {
			return err
		}
	}
	d.partitions = table
	return nil
}

// applyRemoveNode returns the removed Node.
func applyRemoveNode(d *draft, cmd *removeNode) (outcome, error) {
	node, known := d.member(cmd.id)
	switch {
	case !known:
		return outcome{rejection: &NotFoundError{Node: cmd.id}}, nil
	case len(d.members()) == 1:
		return rejected(ErrLastNode, "node %s is the only one", node.Name), nil
	}
	if replicaCount := d.replicaCount(cmd.id); replicaCount > 0 && !cmd.force {
		return rejected(ErrNodeHoldsData, "node %s has %d; drain it first", node.Name, replicaCount), nil
	}
	node.Removed, node.Draining = true, false
	return outcome{value: node}, d.putNode(node)
}

// applyDrainNode returns the Node.
func applyDrainNode(d *draft, cmd *drainNode) (outcome, error) {
	node, known := d.member(cmd.id)
	if !known {
		return outcome{rejection: &NotFoundError{Node: cmd.id}}, nil
	}
	if node.Draining == cmd.draining {
		return outcome{value: node}, nil
	}
	node.Draining = cmd.draining
	return outcome{value: node}, d.putNode(node)
}

// applySetPartition returns the Partition with its version.
func applySetPartition(d *draft, cmd *setPartition) (outcome, error) {
	p := cmd.partition
	if d.cluster.ID == "" || p.ID >= d.cluster.Partitions {
		return outcome{rejection: &InvalidError{fmt.Sprintf("there is no partition %d", p.ID)}}, nil
	}
	if len(p.Replicas) == 0 {
		return outcome{rejection: &InvalidError{fmt.Sprintf("partition %d needs a replica", p.ID)}}, nil
	}
	had := d.partition(p.ID)
	if had.Version != cmd.expected {
		return rejected(ErrVersionConflict, "partition %d is at version %d, not %d", p.ID, had.Version, cmd.expected), nil
	}
	for i, id := range p.Replicas {
		if slices.Contains(p.Replicas[:i], id) {
			return outcome{rejection: &InvalidError{fmt.Sprintf("partition %d has two replicas on node %d", p.ID, id)}}, nil
		}
		// A removed node may remain until it is replaced.
		if _, member := d.member(id); !member && !slices.Contains(had.Replicas, id) {
			return outcome{rejection: &NotFoundError{Node: id}}, nil
		}
	}
	p.Version = had.Version + 1
	return outcome{value: p}, d.putPartition(p)
}

// applySetReplication returns the Cluster.
func applySetReplication(d *draft, cmd *setReplication) (outcome, error) {
	if d.cluster.ID == "" {
		return outcome{rejection: &InvalidError{"the cluster is not provisioned"}}, nil
	}
	if d.cluster.Replication == cmd.replication {
		return outcome{value: d.cluster}, nil
	}
	cluster := d.cluster
	cluster.Replication = cmd.replication
	return outcome{value: cluster}, d.setCluster(cluster)
}

// applyEnableFlowControl returns the Cluster.
func applyEnableFlowControl(d *draft) (outcome, error) {
	if d.cluster.ID == "" {
		return outcome{rejection: &InvalidError{"the cluster is not provisioned"}}, nil
	}
	if d.cluster.FlowControl {
		return outcome{value: d.cluster}, nil
	}
	cluster := d.cluster
	cluster.FlowControl = true
	return outcome{value: cluster}, d.setCluster(cluster)
}

func (s *state) member(id uint32) (Node, bool) {
	at := slices.IndexFunc(s.nodes, func(n Node) bool { return n.ID == id && !n.Removed })
	if at < 0 {
		return Node{}, false
	}
	return s.nodes[at], true
}

// replicaCount returns the number of partitions that the table assigns to a node.
func (s *state) replicaCount(id uint32) (replicaCount int) {
	for p := range s.cluster.Partitions {
		if slices.Contains(s.partition(p).Replicas, id) {
			replicaCount++
		}
	}
	return replicaCount
}
