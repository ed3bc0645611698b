package eventlog

import (
	"cmp"
	"slices"
	"time"
)

// Kind is what has happened.
type Kind string

// The kinds of events. They are only added to: nodes of several versions exchange them.
const (
	NodeStarted      Kind = "node_started"
	NodeStopped      Kind = "node_stopped" // announced its shutdown
	NodeDied         Kind = "node_died"    // no longer responds
	NodeJoined       Kind = "node_joined"  // is a member of the cluster
	NodeRemoved      Kind = "node_removed"
	NodeDraining     Kind = "node_draining"
	NodeUndrained    Kind = "node_undrained"
	DiskShort        Kind = "disk_short"
	DiskSufficient   Kind = "disk_sufficient"
	LeaderElected    Kind = "leader_elected"  // of a partition
	MetadataLeader   Kind = "metadata_leader" // was elected
	ReplicaAdded     Kind = "replica_added"
	ReplicaRemoved   Kind = "replica_removed"
	ReplicaDamaged   Kind = "replica_damaged" // is not served
	ReplicaRecovered Kind = "replica_recovered"
	LevelRaised      Kind = "feature_level_raised"
)

// Kinds are all kinds of events.
var Kinds = []Kind{
	NodeStarted, NodeStopped, NodeDied, NodeJoined, NodeRemoved, NodeDraining, NodeUndrained, DiskShort, DiskSufficient,
	LeaderElected, MetadataLeader, ReplicaAdded, ReplicaRemoved, ReplicaDamaged, ReplicaRecovered, LevelRaised,
}

// Event is a change of the cluster.
type Event struct {
	At   time.Time
	Kind Kind
	// Node is the name of the node that the event concerns; empty if it concerns none.
	Node string
	// Partition is the partition that the event concerns, NoPartition if it concerns none.
	Partition int
	// Detail is the term of a leader, the version of a started node, the new level, or the reason.
	Detail string
}

// NoPartition is the partition of an event that concerns none.
const NoPartition = -1

// sameWithin is how much later another node may observe the same change.
const sameWithin = 30 * time.Second

// shared reports whether other nodes observe events of this kind, too.
func (e *Event) shared() bool {
	switch e.Kind {
	case DiskShort, DiskSufficient, MetadataLeader, LeaderElected, ReplicaAdded, ReplicaRemoved, ReplicaDamaged, ReplicaRecovered:
		return false
	}
	return true
}

// same reports whether two nodes report the same change.
func (e *Event) same(other *Event) bool {
	return e.Kind == other.Kind && e.Node == other.Node && e.Partition == other.Partition &&
		(e.Kind != LevelRaised || e.Detail == other.Detail) && e.At.Sub(other.At).Abs() <= sameWithin
}

// Merge returns the events of several nodes, the latest first and at most limit. Of a change that
// several nodes have observed it keeps the earliest report.
func Merge(lists [][]Event, limit int) []Event {
	var all []Event
	for _, list := range lists {
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Partition, b.Partition))
	})
	kept := all[:0:0]
	for i := range all {
		if !all[i].shared() || !reported(kept, &all[i]) {
			kept = append(kept, all[i])
		}
	}
	slices.Reverse(kept)
	return kept[:min(len(kept), limit)]
}

// reported reports whether events, which are in ascending order of time, contain a change.
func reported(events []Event, e *Event) bool {
	for i := len(events) - 1; i >= 0 && e.At.Sub(events[i].At) <= sameWithin; i-- {
		if events[i].same(e) {
			return true
		}
	}
	return false
}
