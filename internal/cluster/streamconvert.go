package cluster

import (
	"time"

	"platform/internal/subscription"
	nodepb "platform/proto/node"
)

func stateToProto(state subscription.State, reason subscription.Reason, message string, since time.Time) *nodepb.StreamState {
	return &nodepb.StreamState{State: string(state), Reason: string(reason), Message: message, SinceMs: unixMillis(since)}
}

func streamToProto(s *subscription.Status) *nodepb.SubscriptionStatus {
	out := &nodepb.SubscriptionStatus{
		Subscription: s.Subscription, Incarnation: s.Incarnation, State: stateToProto(s.State, s.Reason, s.Message, s.Since),
		DeadLetters: s.DeadLetters,
	}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		one := &nodepb.TopicPartitionStatus{
			Topic: p.Topic, Partition: p.Partition, TopicId: p.TopicID[:], Owner: p.Owner, State: stateToProto(p.State, p.Reason, p.Message, p.Since),
			Position: p.Position, End: p.End, LagSeconds: p.LagSeconds, InFlight: p.InFlight, LastRecordAtMs: unixMillis(p.LastRecordAt),
			LastError: p.LastError, LastErrorAtMs: unixMillis(p.LastErrorAt), Delivered: p.Delivered, Skipped: p.Skipped, DeadLettered: p.DeadLettered,
		}
		if b := p.Blocked; b != nil {
			one.Blocked = &nodepb.BlockedRecord{
				Offset: b.Offset, TimestampMs: unixMillis(b.Timestamp), Reason: string(b.Reason), Message: b.Message,
				KeyBytes: uint64(b.KeySize), ValueBytes: uint64(b.ValueSize),
			}
		}
		out.Partitions = append(out.Partitions, one)
	}
	return out
}

func streamFromProto(in *nodepb.SubscriptionStatus) subscription.Status {
	out := subscription.Status{
		Subscription: in.Subscription, Incarnation: in.Incarnation, State: subscription.State(in.State.GetState()),
		Reason: subscription.Reason(in.State.GetReason()), Message: in.State.GetMessage(), Since: timeOf(in.State.GetSinceMs()),
		DeadLetters: in.DeadLetters,
	}
	for _, p := range in.Partitions {
		one := subscription.PartitionStatus{
			Topic: p.Topic, Partition: p.Partition, Owner: p.Owner, State: subscription.State(p.State.GetState()),
			Reason: subscription.Reason(p.State.GetReason()), Message: p.State.GetMessage(), Since: timeOf(p.State.GetSinceMs()),
			Position: p.Position, End: p.End, LagSeconds: p.LagSeconds, InFlight: p.InFlight, LastRecordAt: timeOf(p.LastRecordAtMs),
			LastError: p.LastError, LastErrorAt: timeOf(p.LastErrorAtMs), Delivered: p.Delivered, Skipped: p.Skipped, DeadLettered: p.DeadLettered,
		}
		copy(one.TopicID[:], p.TopicId)
		if b := p.Blocked; b != nil {
			one.Blocked = &subscription.BlockedRecord{
				Offset: b.Offset, Timestamp: timeOf(b.TimestampMs), Reason: subscription.Reason(b.Reason), Message: b.Message,
				KeySize: int(b.KeyBytes), ValueSize: int(b.ValueBytes),
			}
		}
		out.Partitions = append(out.Partitions, one)
	}
	return out
}

func recordToProto(r *subscription.Record) *nodepb.StreamRecord {
	out := &nodepb.StreamRecord{
		TimestampMs: unixMillis(r.Timestamp), Key: r.Key, Value: r.Value, KeyBytes: uint64(r.KeySize), ValueBytes: uint64(r.ValueSize),
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, &nodepb.StreamRecordHeader{Name: h.Name, Value: h.Value})
	}
	return out
}

func recordFromProto(id subscription.RecordID, in *nodepb.StreamRecord) subscription.Record {
	out := subscription.Record{
		Topic: id.Topic, Partition: id.Partition, Offset: id.Offset, Timestamp: timeOf(in.GetTimestampMs()),
		Key: in.GetKey(), Value: in.GetValue(), KeySize: int(in.GetKeyBytes()), ValueSize: int(in.GetValueBytes()),
	}
	for _, h := range in.GetHeaders() {
		out.Headers = append(out.Headers, subscription.RecordHeader{Name: h.Name, Value: h.Value})
	}
	return out
}

// unixMillis returns 0 for the zero time.
func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
