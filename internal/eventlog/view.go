package eventlog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// View is what a node sees of itself and of the cluster at one time.
type View struct {
	At   time.Time
	Self string // name of the node
	// Nodes are the members of the cluster, by name.
	Nodes map[string]Node
	// Replicas are the replicas of this node, by partition.
	Replicas map[uint32]Replica
	// LeadsMetadata reports that this node leads the metadata.
	LeadsMetadata bool
	// Disk describes a shortage of space on the disk of this node; empty if there is none.
	Disk string
	// Level is the feature level of the cluster.
	Level uint32
}

// Node is a member of the cluster as another one sees it.
type Node struct {
	State    State
	Since    time.Time // when the state last changed
	Started  time.Time // of the process; zero if it is not known
	Version  string
	Draining bool
}

// State is the liveness of a node.
type State uint8

// The states of a node.
const (
	Unknown State = iota
	Alive
	Dead
	Left
)

// Replica is a replica of this node.
type Replica struct {
	Leading bool
	Term    uint64
	Damage  string // why it is not served; empty if it is
}

// changesBetween returns what has changed between two views of a node, in ascending order of time. Without
// an earlier view, the node itself has started, and what it leads is new.
func changesBetween(before, after *View) []Event {
	c := changes{at: after.At}
	if before == nil {
		c.add(Event{At: after.Nodes[after.Self].Started, Kind: NodeStarted, Node: after.Self, Detail: after.Nodes[after.Self].Version})
		before = &View{Nodes: after.Nodes}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Nodes)) {
		known, old := before.Nodes[name]
		now := after.Nodes[name]
		if !old && len(before.Nodes) > 0 {
			c.add(Event{Kind: NodeJoined, Node: name})
		}
		if old {
			c.node(name, known, now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Nodes)) {
		if _, still := after.Nodes[name]; !still {
			c.add(Event{Kind: NodeRemoved, Node: name})
		}
	}
	c.replicas(before, after)
	if after.LeadsMetadata && !before.LeadsMetadata {
		c.add(Event{Kind: MetadataLeader, Node: after.Self})
	}
	if was, is := before.Disk != "", after.Disk != ""; is && !was {
		c.add(Event{Kind: DiskShort, Node: after.Self, Detail: after.Disk})
	} else if was && !is {
		c.add(Event{Kind: DiskSufficient, Node: after.Self})
	}
	if before.Level != 0 && after.Level > before.Level {
		c.add(Event{Kind: LevelRaised, Detail: strconv.FormatUint(uint64(after.Level), 10)})
	}
	slices.SortStableFunc(c.events, func(a, b Event) int { return a.At.Compare(b.At) })
	return c.events
}

// changes collects events.
type changes struct {
	at     time.Time
	events []Event
}

// add adds an event that concerns no partition; its time is that of the view unless it has one.
func (c *changes) add(e Event) {
	e.Partition = NoPartition
	if e.At.IsZero() {
		e.At = c.at
	}
	c.events = append(c.events, e)
}

func (c *changes) node(name string, before, after Node) {
	if before.Draining != after.Draining {
		kind := NodeUndrained
		if after.Draining {
			kind = NodeDraining
		}
		c.add(Event{Kind: kind, Node: name})
	}
	restarted := !after.Started.IsZero() && after.Started.After(before.Started)
	switch {
	case after.State == Alive && (restarted || before.State != Alive):
		at := after.Since
		if restarted {
			at = after.Started
		}
		c.add(Event{At: at, Kind: NodeStarted, Node: name, Detail: after.Version})
	case after.State == before.State:
	case after.State == Dead:
		c.add(Event{At: after.Since, Kind: NodeDied, Node: name})
	case after.State == Left:
		c.add(Event{At: after.Since, Kind: NodeStopped, Node: name})
	}
}

func (c *changes) replicas(before, after *View) {
	add := func(kind Kind, partition uint32, detail string) {
		c.events = append(c.events, Event{At: c.at, Kind: kind, Node: after.Self, Partition: int(partition), Detail: detail})
	}
	for _, p := range slices.Sorted(maps.Keys(after.Replicas)) {
		known, old := before.Replicas[p]
		now := after.Replicas[p]
		if !old && len(before.Replicas) > 0 {
			add(ReplicaAdded, p, "")
		}
		if now.Leading && (!known.Leading || now.Term > known.Term) {
			add(LeaderElected, p, term(now.Term))
		}
		if now.Damage != "" && known.Damage == "" {
			add(ReplicaDamaged, p, now.Damage)
		} else if now.Damage == "" && known.Damage != "" {
			add(ReplicaRecovered, p, "")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(before.Replicas)) {
		if _, still := after.Replicas[p]; !still {
			add(ReplicaRemoved, p, "")
		}
	}
}

func term(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("term %d", n)
}
