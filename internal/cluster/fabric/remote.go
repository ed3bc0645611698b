package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// Remote is the replica of a partition on another node.
type Remote struct {
	c       *Client
	address string
	id      uint32
	leader  leaderWatch
	relay   bool                            // the node sends requests on to the leader
	doubted bool                            // it may not lead, see propose
	moment  *atomic.Pointer[machine.Moment] // receives that of the leader; may be nil
}

// Remote returns the replica of a partition on the node at address, host and port.
func (c *Client) Remote(address string, partition uint32) *Remote {
	return &Remote{c: c, address: address, id: partition}
}

// withLeaderWatch makes requests fail when the local replica learns of another leader.
func (r *Remote) withLeaderWatch(w leaderWatch) *Remote {
	r.leader = w
	return r
}

// withMoment makes responses store the moment of the leader.
func (r *Remote) withMoment(m *atomic.Pointer[machine.Moment]) *Remote {
	r.moment = m
	return r
}

// learn stores the moment of the leader that is in a response.
func (r *Remote) learn(m *node.PartitionResponse) {
	if r.moment == nil || m.Leadership == 0 {
		return
	}
	now := machine.Moment{Leadership: m.Leadership, Number: m.Moment}
	if known := r.moment.Load(); known == nil || *known != now {
		r.moment.Store(&now)
	}
}

// relaying makes the node send requests on to the leader.
func (r *Remote) relaying() *Remote {
	r.relay = true
	return r
}

// roundTrip sends a request and returns its response, or the error in it.
func (r *Remote) roundTrip(ctx context.Context, req *node.PartitionRequest) (*node.PartitionResponse, error) {
	req.Partition, req.Relay = r.id, r.relay
	m, responsive, err := r.exchange(ctx, req)
	if err == nil && m.Code != node.PartitionCode_PARTITION_CODE_OK {
		err = remoteError(r.id, r.address, m.Code, m.Message, m.Leader)
	}
	if err != nil {
		return nil, markAccepted(err, responsive, r.c.timeouts.accepted)
	}
	return m, nil
}

// exchange sends a request and returns its response, which may contain an error, and for how
// long the node was responsive meanwhile.
func (r *Remote) exchange(ctx context.Context, req *node.PartitionRequest) (*node.PartitionResponse, time.Duration, error) {
	p, err := r.c.nodeConn(r.address)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	l, err := p.open()
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %s: %w", ErrUnreachable, r.address, err)
	}
	r.c.requests.inc(req.Method)
	begin := time.Now()
	m, sent, err := l.call(ctx, req, r.leader)
	if err != nil {
		err = r.transportError(ctx, req.Method, sent, err)
	}
	return m, l.responsiveSince(begin), err
}

// transportError returns the error of a request without a response. As with a local
// replica, a caller that stops waiting for the end of an invocation gets the bare cause.
func (r *Remote) transportError(ctx context.Context, m node.PartitionMethod, sent bool, err error) error {
	proposes := isProposal(m)
	cancelled := ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("partition %d: %w", r.id, err)
	case cancelled && (!sent || !proposes || m == node.PartitionMethod_PARTITION_METHOD_CALL):
		return err
	case sent && proposes:
		return fmt.Errorf("partition %d at %s: %w: %w", r.id, r.address, raftgroup.ErrUnknownOutcome, err)
	}
	err = fmt.Errorf("partition %d: %w: %w", r.id, ErrUnreachable, err)
	if sent {
		err = interruptedError{err}
	}
	return err
}

// doubt makes a small request precede each large one, so that only a leader receives that.
func (r *Remote) doubt() *Remote {
	r.doubted = true
	return r
}

// requireLeader returns the error with which a replica that does not lead rejects requests.
func (r *Remote) requireLeader(ctx context.Context) error {
	_, err := r.Find(ctx, ids.Invocation{})
	if errors.Is(err, partition.ErrNotFound) {
		return nil
	}
	return err
}

func (r *Remote) propose(ctx context.Context, method node.PartitionMethod, c machine.Command) (*node.PartitionResponse, error) {
	if r.doubted && codec.CommandSize(c) >= pieceBytes {
		if err := r.requireLeader(ctx); err != nil {
			return nil, err
		}
	}
	level := r.c.level()
	b, err := codec.EncodeCommand(level, codec.ForLevel(level, c))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", c, err)
	}
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: method, Command: b})
	if err == nil {
		r.learn(m)
	}
	return m, err
}

func (r *Remote) outcome(ctx context.Context, method node.PartitionMethod, c machine.Command) (machine.Outcome, error) {
	m, err := r.propose(ctx, method, c)
	if err != nil {
		return machine.Outcome{}, err
	}
	o, err := outcomeFromWire(m.Outcome)
	return o, r.decodeError(err)
}

// decodeError wraps an error in decoding a response.
func (r *Remote) decodeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("partition %d: decode response of %s: %w", r.id, r.address, err)
}

// Invoke implements Replica.
func (r *Remote) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	return r.outcome(ctx, node.PartitionMethod_PARTITION_METHOD_INVOKE, inv)
}

// Operate implements Replica.
func (r *Remote) Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error) {
	return r.outcome(ctx, node.PartitionMethod_PARTITION_METHOD_OPERATE, c)
}

// Deliver implements Replica.
func (r *Remote) Deliver(ctx context.Context, d *machine.Deliver) error {
	_, err := r.propose(ctx, node.PartitionMethod_PARTITION_METHOD_DELIVER, d)
	return err
}

// Ingest implements Replica.
func (r *Remote) Ingest(ctx context.Context, c *machine.Ingest) (machine.Outcome, error) {
	return r.outcome(ctx, node.PartitionMethod_PARTITION_METHOD_INGEST, c)
}

// Call implements Replica.
func (r *Remote) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	m, err := r.propose(ctx, node.PartitionMethod_PARTITION_METHOD_CALL, inv)
	if err != nil {
		return partition.Ending{}, machine.Outcome{}, err
	}
	o, err := outcomeFromWire(m.Outcome)
	if err != nil {
		return partition.Ending{}, machine.Outcome{}, r.decodeError(err)
	}
	e, err := endingFromWire(m.Ending)
	return e, o, r.decodeError(err)
}

// Await implements Replica.
func (r *Remote) Await(ctx context.Context, id ids.Invocation) (partition.Ending, error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_AWAIT, Id: id[:]})
	if err != nil {
		return partition.Ending{}, err
	}
	e, err := endingFromWire(m.Ending)
	return e, r.decodeError(err)
}

// Find implements Replica.
func (r *Remote) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_FIND, Id: id[:]})
	if err != nil {
		return nil, err
	}
	rec, err := recordFromWire(m.Record)
	return rec.Invocation, r.decodeError(err)
}

// Inspect implements Replica.
func (r *Remote) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_INSPECT, Id: id[:], Journal: withJournal})
	if err != nil {
		return partition.Record{}, nil, err
	}
	rec, err := recordFromWire(m.Record)
	if err != nil {
		return partition.Record{}, nil, r.decodeError(err)
	}
	entries, err := entriesFromWire(m.Entries)
	return rec, entries, r.decodeError(err)
}

// State implements Replica.
func (r *Remote) State(ctx context.Context, o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{
		Method: node.PartitionMethod_PARTITION_METHOD_STATE, Limit: uint64(limit),
		Object: &node.StateObject{Scope: o.Scope, Service: o.Service, Key: o.Key},
	})
	if err != nil {
		return nil, false, err
	}
	return stateFromWire(m.State), m.Complete, nil
}
