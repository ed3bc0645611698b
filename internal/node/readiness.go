package node

import (
	"errors"
	"fmt"
	"time"

	"platform/internal/diskspace"
)

const (
	// quorumGrace is for how long the metadata may have no leader before the node says
	// that it is not ready: longer than an election takes.
	quorumGrace = 5 * time.Second
	// settleGrace is how long a node that starts waits for news of the leaders of its
	// partitions before it calls itself ready.
	settleGrace = 15 * time.Second
)

// ready says why this node should get no requests, nil if it should.
func (n *Node) ready() error {
	if n.draining.Load() {
		return errors.New("the node is stopping")
	}
	if n.disk.Level() >= diskspace.Short {
		return fmt.Errorf("the disk is nearly full (%s free)", n.disk.Free())
	}
	if group := n.metadata.Group(); group.Leader().ID == "" {
		heard := group.Stats().LastContact
		if heard.IsZero() || time.Since(heard) > quorumGrace {
			return errors.New("the metadata has no leader; most of the nodes that vote on it have to be up and reach each other")
		}
	}
	return n.settledIn()
}

// settledIn reports whether the node has heard of the leader of each of its
// partitions since it started. Before, the next node should not be stopped: this one
// may be needed for a majority that it is not part of yet.
func (n *Node) settledIn() error {
	if n.settledOnce.Load() {
		return nil
	}
	if time.Since(n.cluster.started) < settleGrace {
		for p := range n.router.Replicas() {
			if p.Leader().ID == "" {
				return fmt.Errorf("the node is starting: partition %d has no leader yet", p.ID())
			}
		}
	}
	n.settledOnce.Store(true)
	return nil
}
