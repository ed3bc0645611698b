package kafka

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// Statuses returns what this node reads of one subscription, or of all if id is empty. brief
// leaves out topic partitions.
func (e *Engine) Statuses(id string, brief bool) []subscription.Status {
	e.mu.Lock()
	readers := make([]*reader, 0, len(e.readers))
	for _, r := range e.readers {
		if id == "" || r.sub.ID == id {
			readers = append(readers, r)
		}
	}
	e.mu.Unlock()
	all := make([]subscription.Status, len(readers))
	for i, r := range readers {
		all[i] = r.status()
		if brief {
			all[i] = summary(all[i])
		} else {
			all[i].Partitions = r.withUnread(&all[i])
		}
	}
	slices.SortFunc(all, func(a, b subscription.Status) int { return cmp.Compare(a.Subscription, b.Subscription) })
	return all
}

// summary returns a status without its topic partitions, with the most severe of their states.
func summary(st subscription.Status) subscription.Status {
	for i := range st.Partitions {
		if p := &st.Partitions[i]; p.State.MoreSevere(st.State) {
			st.State, st.Reason, st.Message, st.Since = p.State, p.Reason, p.Message, p.Since
		}
	}
	st.Partitions = nil
	return st
}

func (r *reader) status() subscription.Status {
	r.mu.Lock()
	st := subscription.Status{
		Subscription: r.sub.ID, Incarnation: r.sub.Incarnation, State: r.state, Reason: r.reason, Message: r.message, Since: r.since,
	}
	streams := make([]*stream, 0, len(r.streams))
	for _, s := range r.streams {
		if s.owner.ctx.Err() == nil { // otherwise another node reads it, or will
			streams = append(streams, s)
		}
	}
	if st.Message == "" && r.warning != "" {
		st.Message = "positions are not committed for the consumer group: " + r.warning
	}
	r.mu.Unlock()
	for _, s := range streams {
		st.Partitions = append(st.Partitions, s.snapshot())
	}
	st.DeadLetters = r.e.countDeadLetters(r.sub.ID)
	slices.SortFunc(st.Partitions, byTopicPartition)
	return st
}

// withUnread returns the topic partitions of a status, and those that this node would read if
// the subscription was not paused or in error.
func (r *reader) withUnread(st *subscription.Status) []subscription.PartitionStatus {
	if st.State == subscription.Running {
		return st.Partitions
	}
	all := st.Partitions
	read := make(map[topicPartition]bool, len(all))
	for i := range all {
		read[topicPartition{all[i].Topic, all[i].Partition}] = true
	}
	r.mu.Lock()
	topics := r.topics
	r.mu.Unlock()
	for _, o := range r.e.leaderships() {
		positions, err := o.Positions(r.sub.ID)
		o.streams.Done()
		if err != nil {
			continue
		}
		for _, p := range positions {
			if read[topicPartition{p.Stream.Topic, int32(p.Stream.Partition)}] { //nolint:gosec // came from an int32
				continue
			}
			if one, ok := r.unread(p, topics); ok {
				one.Owner, one.State, one.Reason, one.Message, one.Since = o.Partition(), st.State, st.Reason, st.Message, st.Since
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, byTopicPartition)
	return all
}

// unread returns where a topic partition that is not read would continue, from its stored position;
// false if there is none for this incarnation.
func (r *reader) unread(p *machine.StreamPosition, topics map[string]topicInfo) (subscription.PartitionStatus, bool) {
	at := int32(p.Stream.Partition) //nolint:gosec // came from an int32
	st := subscription.PartitionStatus{
		Topic: p.Stream.Topic, Partition: at, TopicID: p.Stream.TopicID,
		Position: p.Next, End: -1, Skipped: p.Skipped, DeadLettered: p.DeadLettered,
	}
	if p.Stream.Incarnation > r.sub.Incarnation {
		return st, false
	}
	if p.Stream.Incarnation < r.sub.Incarnation { // a seek since then
		next, known := r.sub.StartOf(st.Topic, at)
		if !known {
			return st, false
		}
		st.Position, st.Skipped, st.DeadLettered = next, 0, 0
	}
	if end, ok := topics[st.Topic].ends[at]; ok {
		st.End = max(end, st.Position)
	}
	return st, true
}

func byTopicPartition(a, b subscription.PartitionStatus) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// Retry retries a record that blocks its topic partition, and returns when that is stored. Errors can
// be subscription.ErrNotRead and subscription.ErrNotBlocked.
func (e *Engine) Retry(ctx context.Context, id subscription.RecordID) error {
	return e.decide(ctx, id, false)
}

// Skip skips a record that blocks its topic partition, and returns when that is stored. The errors are
// those of Retry.
func (e *Engine) Skip(ctx context.Context, id subscription.RecordID) error {
	return e.decide(ctx, id, true)
}

func (e *Engine) decide(ctx context.Context, id subscription.RecordID, skip bool) error {
	s := e.stream(id)
	if r := e.reader(id.Subscription); s == nil && r != nil && r.lacks(topicPartition{id.Topic, id.Partition}) {
		return subscription.ErrNotBlocked
	} else if s == nil {
		return subscription.ErrNotRead
	}
	return s.decide(ctx, id.Offset, skip)
}

func (e *Engine) stream(id subscription.RecordID) *stream {
	r := e.reader(id.Subscription)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.streams[topicPartition{id.Topic, id.Partition}]
	if s != nil && s.owner.ctx.Err() != nil {
		return nil // another node reads it, or will
	}
	return s
}

// view returns what operators see of a record.
func view(rec *kgo.Record) subscription.Record {
	v := subscription.Record{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Timestamp: shown(rec.Timestamp),
		Key: cut(rec.Key), Value: cut(rec.Value), KeySize: len(rec.Key), ValueSize: len(rec.Value),
	}
	for i := range rec.Headers {
		v.Headers = append(v.Headers, subscription.RecordHeader{Name: string(cut([]byte(rec.Headers[i].Key))), Value: cut(rec.Headers[i].Value)})
	}
	return v
}

func cut(b []byte) []byte { return bytes.Clone(b[:min(len(b), subscription.MaxRecordView)]) }
