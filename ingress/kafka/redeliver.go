package kafka

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// DropDeadLetter deletes a dead letter. Errors can be subscription.ErrNotRead and ErrNoDeadLetter.
func (e *Engine) DropDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return e.onDeadLetter(ctx, id, nil)
}

// RetryDeadLetter delivers a dead letter with the current settings of its subscription, and deletes
// it. Errors can be those of DropDeadLetter and subscription.ErrUndeliverable.
func (e *Engine) RetryDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return e.onDeadLetter(ctx, id, e.deliver)
}

// onDeadLetter deletes a dead letter after an operation, if there is one.
func (e *Engine) onDeadLetter(ctx context.Context, id subscription.RecordID, do func(context.Context, *machine.DeadLetter) error) error {
	o := e.owner(e.ownerOf(id.Subscription, id.Topic, id.Partition))
	if o == nil {
		return subscription.ErrNotRead
	}
	defer o.streams.Done()
	l, err := findDeadLetter(o, id)
	if err != nil {
		return err
	}
	if do != nil {
		if err := do(ctx, l); err != nil {
			return err
		}
	}
	return o.DropDeadLetters(ctx, &machine.DropDeadLetters{Subscription: id.Subscription, Letters: []machine.DeadLetterID{l.ID()}})
}

// deliver makes an invocation of a dead letter, once. Its offset is behind what its stream has
// delivered, so it is the only record of a stream of its own. That has the incarnation in which the
// record was set aside, so that a retry after a seek repeats an earlier one of unknown outcome; when
// the partitions have forgotten that incarnation, it has the current one. The invocation has the same ID in both, so that
// it is not created again while it is retained.
func (e *Engine) deliver(ctx context.Context, l *machine.DeadLetter) error {
	sub, exists := e.subscription(l.Stream.Subscription)
	if !exists {
		return subscription.ErrNoDeadLetter
	}
	forgotten, err := e.deliverIn(ctx, l, &sub, l.Stream.Incarnation)
	if forgotten {
		_, err = e.deliverIn(ctx, l, &sub, sub.Incarnation)
	}
	return err
}

// deliverIn delivers a dead letter in an incarnation, unless that is forgotten.
func (e *Engine) deliverIn(ctx context.Context, l *machine.DeadLetter, sub *subscription.Subscription, incarnation uint64) (forgotten bool, err error) {
	stream := l.Stream
	stream.Incarnation = incarnation
	conv := converter{sub, &e.cfg}
	now, unusable := conv.current()
	var to uint32
	var record machine.IngestRecord
	if unusable == nil {
		to, record, unusable = conv.convert(&l.Stream, &now, recordOf(l))
	}
	if unusable != nil {
		return false, fmt.Errorf("%w: %s", subscription.ErrUndeliverable, unusable.Error())
	}
	o, err := e.cfg.Partitions.Ingest(ctx, to, &machine.Ingest{Stream: streamOf(stream, l.Offset), Prev: machine.NoOffset, Records: []machine.IngestRecord{record}})
	switch {
	case err != nil:
		return false, fmt.Errorf("partition %d does not accept records: %w", to, err)
	case o.Code == machine.OK, o.Code == machine.Existing:
		return false, nil
	case o.Code == machine.QueueFull:
		return false, errors.New("a queue is full: rule " + o.Rule + " limits it")
	}
	return o.Code == machine.Forgotten, fmt.Errorf("partition %d rejected the record: outcome %v", to, o.Code)
}

// subscription returns a subscription as this node knows it.
func (e *Engine) subscription(id string) (subscription.Subscription, bool) {
	all, _ := e.cfg.Source.Subscriptions()
	for i := range all {
		if all[i].ID == id {
			return all[i], true
		}
	}
	return subscription.Subscription{}, false
}

// streamOf returns the stream of which a single dead letter is the only record.
func streamOf(s machine.Stream, offset int64) machine.Stream {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("dead letter,"), s.TopicID[:]...), uint64(offset))) //nolint:gosec // not negative
	s.TopicID = [16]byte(sum[:16])
	return s
}

// recordOf returns the record that was set aside.
func recordOf(l *machine.DeadLetter) *kgo.Record {
	rec := &kgo.Record{Topic: l.Stream.Topic, Partition: int32(l.Stream.Partition), Offset: l.Offset, Timestamp: timeOf(l.Timestamp)} //nolint:gosec // came from an int32
	if !l.NoKey {
		rec.Key = append([]byte{}, l.Key...)
	}
	if !l.NoValue {
		rec.Value = append([]byte{}, l.Value...)
	}
	for _, h := range l.Headers {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return rec
}

func timeOf(millis int64) time.Time { return time.UnixMilli(millis) }
