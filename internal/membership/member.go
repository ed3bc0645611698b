package membership

import (
	"strings"
	"time"
)

// State is what the gossip believes of a node.
type State uint8

// The states of a node.
const (
	// Unknown is a node that nobody has heard of, or not under this incarnation.
	Unknown State = iota
	// Alive is a node that answers, or that has been silent for too short a time to
	// be given up.
	Alive
	// Dead is a node that stopped answering.
	Dead
	// Left is a node that said that it stops.
	Left
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return "unknown"
}

// Meta is what a node tells the others about itself and may change while it runs.
type Meta struct {
	// ClusterID is the cluster that the node is part of, "" as long as it is fresh.
	ClusterID string
	// Version is the version of the server.
	Version string
	// NodeID is the id that the cluster gave the node, 0 while it has none.
	NodeID uint32
	// Draining is set while the node is about to stop and should get no new work.
	Draining bool
}

// Fresh tells whether the node is part of no cluster yet.
func (m Meta) Fresh() bool { return m.ClusterID == "" }

// Member is one node as this node sees it.
type Member struct {
	Meta
	// Name and Incarnation name the node and its data directory.
	Name        string
	Incarnation string
	// Address is the host:port of the node's port; the host may be a name.
	Address string
	// Started is when the node's process joined the gossip, by its own clock.
	Started time.Time
	// State is what the gossip believes, and Since when.
	State State
	Since time.Time
	// Self marks this node.
	Self bool
}

func (m Member) identity() identity { return identityOf(m.Name, m.Incarnation) }

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }

// outranks tells which of two nodes keeps a name that both use: the one that is part
// of a cluster, then the one that runs longer. Both nodes come to the same answer.
func (m Member) outranks(other Member) bool {
	if m.Fresh() != other.Fresh() {
		return other.Fresh()
	}
	if !m.Started.Equal(other.Started) {
		return m.Started.Before(other.Started)
	}
	if m.Incarnation != other.Incarnation {
		return m.Incarnation < other.Incarnation
	}
	return m.Address < other.Address
}
