package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"platform/internal/raftgroup"
	"platform/partition"
	"platform/proto/node"
)

// ErrUnreachable says that a node could not be asked, or, for what only reads, did
// not answer. Nothing was proposed, so it is raftgroup.ErrNotLeader too.
var ErrUnreachable = fmt.Errorf("node unreachable: %w", raftgroup.ErrNotLeader)

// ErrForeign says that a node is not of this cluster.
var ErrForeign = errors.New("node is of another cluster")

var (
	errClosed = errors.New("connections to other nodes are closed")
	errSilent = errors.New("no sign of life")
	errMoved  = errors.New("another replica leads meanwhile")

	// errTooLarge says that a request or response is too large to be sent.
	errTooLarge = fmt.Errorf("%w between nodes", raftgroup.ErrTooLarge)
)

// NotLeaderError is raftgroup.ErrNotLeader from a node that may know who leads.
type NotLeaderError struct {
	Partition uint32
	Node      string           // the address that was asked; empty: none was
	Leader    raftgroup.Leader // zero: not known
}

// Error names the partition, who was asked and who is said to lead.
func (e *NotLeaderError) Error() string {
	switch {
	case e.Node == "":
		return fmt.Sprintf("no leader of partition %d is known", e.Partition)
	case e.Leader == (raftgroup.Leader{}):
		return fmt.Sprintf("%s does not lead partition %d", e.Node, e.Partition)
	}
	return fmt.Sprintf("%s does not lead partition %d, %s at %s may", e.Node, e.Partition, e.Leader.ID, e.Leader.Address)
}

// Unwrap returns raftgroup.ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return raftgroup.ErrNotLeader }

// overloadedError is raftgroup.ErrOverloaded with the reason that a node gave.
type overloadedError struct{ message string }

func (e *overloadedError) Error() string { return e.message }

func (e *overloadedError) Unwrap() error { return raftgroup.ErrOverloaded }

// elsewhere reports whether another replica may be asked instead: this one certainly
// did nothing.
func elsewhere(err error) bool {
	return errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrStopped)
}

// codeOf sorts the error of a replica. A context that ends here ends because this
// node stops, since a caller that gives up gets no response.
func codeOf(err error) node.PartitionCode {
	switch {
	case err == nil:
		return node.PartitionCode_PARTITION_CODE_OK
	case errors.Is(err, raftgroup.ErrUnknownOutcome), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME
	case errors.Is(err, raftgroup.ErrNotLeader):
		return node.PartitionCode_PARTITION_CODE_NOT_LEADER
	case errors.Is(err, raftgroup.ErrOverloaded):
		return node.PartitionCode_PARTITION_CODE_OVERLOADED
	case errors.Is(err, raftgroup.ErrStopped):
		return node.PartitionCode_PARTITION_CODE_STOPPED
	case errors.Is(err, raftgroup.ErrTooLarge):
		return node.PartitionCode_PARTITION_CODE_TOO_LARGE
	case errors.Is(err, partition.ErrNotFound):
		return node.PartitionCode_PARTITION_CODE_NOT_FOUND
	}
	return node.PartitionCode_PARTITION_CODE_FAILED
}

// remoteError is the error that a response of the node at address tells of.
func remoteError(id uint32, address string, code node.PartitionCode, message string, leader *node.NodeReference) error {
	switch code {
	case node.PartitionCode_PARTITION_CODE_OK:
		return nil
	case node.PartitionCode_PARTITION_CODE_NOT_LEADER:
		return &NotLeaderError{Partition: id, Node: address, Leader: leaderFromWire(leader)}
	case node.PartitionCode_PARTITION_CODE_OVERLOADED:
		return &overloadedError{fmt.Sprintf("partition %d at %s: %s", id, address, cmp.Or(message, raftgroup.ErrOverloaded.Error()))}
	case node.PartitionCode_PARTITION_CODE_STOPPED:
		return fmt.Errorf("partition %d at %s: %w", id, address, raftgroup.ErrStopped)
	case node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME:
		return fmt.Errorf("partition %d at %s: %w: %s", id, address, raftgroup.ErrUnknownOutcome, message)
	case node.PartitionCode_PARTITION_CODE_TOO_LARGE:
		return fmt.Errorf("partition %d at %s: %w: %s", id, address, raftgroup.ErrTooLarge, message)
	case node.PartitionCode_PARTITION_CODE_NOT_FOUND:
		return partition.ErrNotFound
	}
	return fmt.Errorf("partition %d at %s: %s", id, address, message)
}
