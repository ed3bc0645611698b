package membership

import (
	"strings"
	"time"
)

// State is the liveness of a node according to gossip.
type State uint8

// The states of a node.
const (
	// Unknown is a node or incarnation that has never been seen.
	Unknown State = iota
	// Alive is a node that answers probes, or is suspected but not yet declared dead.
	Alive
	// Dead is a node that stopped answering probes.
	Dead
	// Left is a node that announced that it was stopping.
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

// Meta is the metadata that a node gossips and may change while it runs.
type Meta struct {
	// ClusterID identifies the node's cluster, "" while the node is fresh.
	ClusterID string
	// Version is the version of the server.
	Version string
	// NodeID is the ID assigned by the cluster, 0 while there is none.
	NodeID uint32
	// Draining is set while the node prepares to stop and should get no new work.
	Draining bool
}

// fresh reports whether the node does not belong to a cluster yet.
func (m Meta) fresh() bool { return m.ClusterID == "" }

// Member is this node's view of one node.
type Member struct {
	Meta
	// Name and Incarnation identify the node and its data directory.
	Name        string
	Incarnation string
	// Address is the advertised host:port of the node port; the host may be a name.
	Address string
	// Started is when the node's process joined the gossip, by its own clock.
	Started time.Time
	// State is the liveness according to gossip, and Since when it last changed.
	State State
	Since time.Time
	// Self marks this node.
	Self bool
}

func (m Member) identity() identity { return identityOf(m.Name, m.Incarnation) }

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }

// outranks reports whether m keeps a name that both nodes use: a node that belongs to a
// cluster wins, then the one that started earlier. Both nodes compute the same result.
func (m Member) outranks(other Member) bool {
	if m.fresh() != other.fresh() {
		return other.fresh()
	}
	if !m.Started.Equal(other.Started) {
		return m.Started.Before(other.Started)
	}
	if m.Incarnation != other.Incarnation {
		return m.Incarnation < other.Incarnation
	}
	return m.Address < other.Address
}
