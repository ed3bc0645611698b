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

// ErrUnreachable is returned when a request could not be sent to a node or, for reads,
// got no response. Nothing was proposed, so it wraps raftgroup.ErrNotLeader.
var ErrUnreachable = fmt.Errorf("node unreachable: %w", raftgroup.ErrNotLeader)

var (
	errClosed        = errors.New("client is closed")
	errUnresponsive  = errors.New("node is unresponsive")
	errLeaderChanged = errors.New("leader changed")

	// errTooLarge is returned for a request or response over the size limit.
	errTooLarge = fmt.Errorf("%w between nodes", raftgroup.ErrTooLarge)
)

// NotLeaderError is raftgroup.ErrNotLeader with an optional hint at the leader.
type NotLeaderError struct {
	Partition uint32
	Node      string           // address of the node that rejected the request; empty if none was tried
	Leader    raftgroup.Leader // zero if unknown
}

// Error names the partition, the node that rejected the request and the leader, if known.
func (e *NotLeaderError) Error() string {
	switch {
	case e.Node == "":
		return fmt.Sprintf("no leader of partition %d is known", e.Partition)
	case e.Leader == (raftgroup.Leader{}):
		return fmt.Sprintf("%s does not lead partition %d", e.Node, e.Partition)
	}
	return fmt.Sprintf("%s does not lead partition %d; the leader may be %s at %s", e.Node, e.Partition, e.Leader.ID, e.Leader.Address)
}

// Unwrap returns raftgroup.ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return raftgroup.ErrNotLeader }

// UnservedError is raftgroup.ErrNotLeader from a partition that no replica can lead before
// an operator acts.
type UnservedError struct {
	Err error // the reason, and what to do
}

// Error returns the reason.
func (e *UnservedError) Error() string { return e.Err.Error() }

// Unwrap returns raftgroup.ErrNotLeader and the reason.
func (e *UnservedError) Unwrap() []error { return []error{raftgroup.ErrNotLeader, e.Err} }

// overloadedError is raftgroup.ErrOverloaded with the message of the remote node.
type overloadedError struct{ message string }

func (e *overloadedError) Error() string { return e.message }

func (e *overloadedError) Unwrap() error { return raftgroup.ErrOverloaded }

// canRetryElsewhere reports whether the request may be sent to another replica, because
// this one certainly did not execute it.
func canRetryElsewhere(err error) bool {
	return errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrStopped)
}

// codeOf maps the error of a replica to a wire code. A context error means that this node
// is stopping, since a client that cancels gets no response.
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

// remoteError returns the error of a response from the node at address.
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
