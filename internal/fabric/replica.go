package fabric

import (
	"context"
	"iter"

	"github.com/hashicorp/raft"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Replica is what may be asked of the replica that leads a partition. Others answer
// with an error that wraps partition.ErrNotLeader. The methods may be called
// concurrently; what they mean is said at those of partition.Partition. What is
// handed in must not change afterwards.
type Replica interface {
	Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error)
	Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error)
	Await(ctx context.Context, id ids.Invocation) (partition.Ending, error)
	Operate(ctx context.Context, c machine.Command) (machine.Outcome, error)
	Deliver(ctx context.Context, d *machine.Deliver) error

	Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error)
	Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error)
	Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error]
	State(ctx context.Context, o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error)
	Scan(ctx context.Context, s *partition.Scan) (partition.Page, error)
}

// Local is a replica on this node.
type Local interface {
	Replica
	// Leading reports whether it leads and serves.
	Leading() bool
	// Leader is who leads as far as the replica knows.
	Leader() raftgroup.Leader
	// Changed returns a channel that is closed when Leading or Leader change.
	Changed() <-chan struct{}
}

var (
	_ Local   = (*partition.Partition)(nil)
	_ Replica = (*Handle)(nil)
	_ Replica = (*Remote)(nil)
)

// Identity is what a node says about itself to other nodes.
type Identity struct {
	// ClusterID keeps nodes of different clusters apart. While it is empty, the node
	// belongs to none, and neither asks nor answers.
	ClusterID func() string
	// Node and Incarnation name the node and its data directory.
	Node, Incarnation string
	// ReplicaID is the node's id in the Raft configurations.
	ReplicaID string
	// Address is where other nodes reach it, host and port.
	Address string
}

// owns reports whether a replica is this node's.
func (i Identity) owns(id raft.ServerID) bool {
	node, _ := metadata.ReplicaNode(id)
	return string(node) == i.ReplicaID
}
