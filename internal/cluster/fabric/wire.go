package fabric

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// The functions below convert between results of replicas and wire messages. Decoded
// values share memory with the message.

func leaderToWire(l raftgroup.Leader) *node.NodeReference {
	if l == (raftgroup.Leader{}) {
		return nil
	}
	return &node.NodeReference{Id: string(l.ID), Address: string(l.Address)}
}

func leaderFromWire(m *node.NodeReference) raftgroup.Leader {
	return raftgroup.Leader{ID: raft.ServerID(m.GetId()), Address: raft.ServerAddress(m.GetAddress())}
}

func outcomeToWire(o *machine.Outcome) *node.PartitionOutcome {
	m := &node.PartitionOutcome{
		Code: uint32(o.Code), Own: o.Own, Status: uint32(o.Status), ExpiresAt: o.ExpiresAt, StartAt: o.StartAt, Rule: o.Rule, Last: o.Last,
	}
	if o.Result != nil {
		m.Result = codec.AppendResult(nil, o.Result)
	}
	if !o.ID.IsZero() {
		m.Id = o.ID[:]
	}
	return m
}

func outcomeFromWire(m *node.PartitionOutcome) (o machine.Outcome, err error) {
	if m == nil {
		return o, nil
	}
	o = machine.Outcome{
		Code: machine.Code(m.Code), Own: m.Own, Status: machine.Status(m.Status), ExpiresAt: m.ExpiresAt, StartAt: m.StartAt, Rule: m.Rule, Last: m.Last,
	}
	if len(m.Id) == len(o.ID) {
		o.ID = ids.Invocation(m.Id)
	}
	if len(m.Result) > 0 {
		o.Result, err = codec.DecodeResult(m.Result)
	}
	return o, err
}

func endingToWire(e *partition.Ending) *node.PartitionEnding {
	return &node.PartitionEnding{
		Target:    codec.AppendTarget(nil, &e.Target),
		Result:    codec.AppendResult(make([]byte, 0, len(e.Result.Value)+16), &e.Result),
		ExpiresAt: e.ExpiresAt,
	}
}

func endingFromWire(m *node.PartitionEnding) (e partition.Ending, err error) {
	target, err := codec.DecodeTarget(m.GetTarget())
	if err != nil {
		return e, err
	}
	result, err := codec.DecodeResult(m.GetResult())
	if err != nil {
		return e, err
	}
	return partition.Ending{Target: *target, Result: *result, ExpiresAt: m.ExpiresAt}, nil
}

func recordToWire(r partition.Record) (*node.PartitionRecord, error) {
	m := &node.PartitionRecord{Invocation: codec.AppendInvocation(nil, r.Invocation)}
	var err error
	if r.Attempts != nil {
		m.Attempts, err = attemptsToWire(r.Attempts)
	}
	return m, err
}

func recordFromWire(m *node.PartitionRecord) (r partition.Record, err error) {
	if m == nil {
		return r, errors.New("malformed response: record is missing")
	}
	if r.Invocation, err = codec.DecodeInvocation(m.Invocation); err != nil {
		return r, err
	}
	if m.Attempts != nil {
		r.Attempts, err = attemptsFromWire(m.Attempts)
	}
	return r, err
}

func attemptsToWire(a *attempts.Status) (m *node.AttemptStatus, err error) {
	m = &node.AttemptStatus{
		InFlight: a.InFlight, RetryCount: uint32(a.RetryCount), Unreported: uint32(a.Unreported),
		LastStartAt: nanos(a.LastStartAt), NextRetryAt: nanos(a.NextRetryAt),
		NoResponseSince: nanos(a.NoResponseSince), AbortAt: nanos(a.AbortAt), LastFailureAt: nanos(a.LastFailureAt),
		ActiveAt: nanos(a.ActiveAt), SuspendAt: nanos(a.SuspendAt), ThrottledSince: nanos(a.ThrottledSince),
		Deployment: string(a.Deployment), Protocol: uint32(a.Protocol), Server: a.Server,
	}
	if a.LastFailure != nil {
		m.LastFailure = codec.AppendAttemptFailure(nil, a.LastFailure)
	}
	if a.Awaiting != nil {
		m.Awaiting, m.AwaitingExecuting = true, a.Awaiting.Executing
		if a.Awaiting.On != nil {
			m.AwaitingOn, err = codec.AppendFuture(nil, a.Awaiting.On)
		}
	}
	return m, err
}

func attemptsFromWire(m *node.AttemptStatus) (a *attempts.Status, err error) {
	a = &attempts.Status{
		InFlight: m.InFlight, RetryCount: int(m.RetryCount), Unreported: int(m.Unreported),
		LastStartAt: fromNanos(m.LastStartAt), NextRetryAt: fromNanos(m.NextRetryAt),
		NoResponseSince: fromNanos(m.NoResponseSince), AbortAt: fromNanos(m.AbortAt), LastFailureAt: fromNanos(m.LastFailureAt),
		ActiveAt: fromNanos(m.ActiveAt), SuspendAt: fromNanos(m.SuspendAt), ThrottledSince: fromNanos(m.ThrottledSince),
		Deployment: ids.Deployment(m.Deployment), Protocol: uint8(m.Protocol), Server: m.Server,
	}
	if len(m.LastFailure) > 0 {
		if a.LastFailure, err = codec.DecodeAttemptFailure(m.LastFailure); err != nil {
			return nil, err
		}
	}
	if m.Awaiting {
		a.Awaiting = &journal.Await{On: new(journal.Future), Executing: m.AwaitingExecuting}
		if len(m.AwaitingOn) > 0 {
			a.Awaiting.On, err = codec.DecodeFuture(m.AwaitingOn)
		}
	}
	return a, err
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func stateToWire(entries []machine.StateEntry) []*node.StatePair {
	values := make([]node.StatePair, len(entries))
	out := make([]*node.StatePair, len(entries))
	for i, e := range entries {
		values[i].Key, values[i].Value = e.Key, e.Value
		out[i] = &values[i]
	}
	return out
}

func stateFromWire(pairs []*node.StatePair) []machine.StateEntry {
	if len(pairs) == 0 {
		return nil
	}
	out := make([]machine.StateEntry, len(pairs))
	for i, p := range pairs {
		out[i] = machine.StateEntry{Key: p.Key, Value: p.Value}
	}
	return out
}

func entriesToWire(entries []journal.Entry) [][]byte {
	out := make([][]byte, len(entries))
	for i := range entries {
		out[i] = codec.AppendEntry(make([]byte, 0, codec.EntrySize(&entries[i])), &entries[i])
	}
	return out
}

func entriesFromWire(encoded [][]byte) (entries []journal.Entry, err error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	entries = make([]journal.Entry, len(encoded))
	for i, b := range encoded {
		if entries[i], err = codec.DecodeEntry(b); err != nil {
			return nil, err
		}
	}
	return entries, nil
}
