package fabric

import (
	"context"
	"iter"

	"github.com/hashicorp/raft"

	"platform/internal/ids"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Replica is the interface of the replica that leads a partition. Other replicas return an
// error that wraps partition.ErrNotLeader. The methods are safe for concurrent use and
// documented at partition.Partition. Arguments must not be modified afterwards.
type Replica interface {
	Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error)
	Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error)
	Await(ctx context.Context, id ids.Invocation) (partition.Ending, error)
	Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error)
	Deliver(ctx context.Context, d *machine.Deliver) error
	// Ingest is understood by nodes of feature level 4.
	Ingest(ctx context.Context, c *machine.Ingest) (machine.Outcome, error)

	Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error)
	Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error)
	Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error]
	State(ctx context.Context, o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error)
	Scan(ctx context.Context, s *partition.Scan) (partition.Page, error)
	// List is understood by nodes of feature level 4.
	List(ctx context.Context, q *partition.List) (partition.Listed, error)
}

// Local is a replica on this node.
type Local interface {
	Replica
	// Leading reports whether the replica leads and is ready to serve.
	Leading() bool
	// Leader returns the leader as known by the replica.
	Leader() raftgroup.Leader
	// Changed returns a channel that is closed when Leading or Leader changes.
	Changed() <-chan struct{}
	// Moment returns the current moment of the leadership, zero if the replica does not lead.
	Moment() machine.Moment
	// Backlog returns how many proposed commands have no outcome yet, and whether large commands
	// occupy the partition, so that small ones are likely to wait for them; 0 if the replica does
	// not lead.
	Backlog() (commands int, occupied bool)
}

var (
	_ Local   = (*partition.Partition)(nil)
	_ Replica = (*Handle)(nil)
	_ Replica = (*Remote)(nil)
)

// Identity identifies a node to other nodes.
type Identity struct {
	nodelink.Identity
	// ReplicaID is the node's ID in the Raft configurations.
	ReplicaID string
}

// owns reports whether a replica belongs to this node.
func (i Identity) owns(id raft.ServerID) bool {
	node, _ := metadata.ReplicaNode(id)
	return string(node) == i.ReplicaID
}
