package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/internal/subscription"
	"platform/partition/codec"
	"platform/partition/machine"
)

// lane sends the records of a stream to one partition: one command at a time, so that they arrive
// in order.
type lane struct {
	to      uint32
	prev    int64 // offset of the last record known to be stored there
	queue   []item
	sending bool
}

// item is a record that is queued or in flight.
type item struct {
	pending *pending
	record  machine.IngestRecord
}

// Bounds of one Ingest command, unless a single record exceeds them.
const (
	batchRecords = 128
	batchBytes   = 256 << 10
)

// lane returns the lane to a partition. A new one does not know what is stored there: it learns
// that when its first command is refused.
func (s *stream) lane(to uint32) *lane {
	l := s.lanes[to]
	if l == nil {
		l = &lane{to: to, prev: machine.NoOffset}
		s.lanes[to] = l
	}
	return l
}

// add queues a record and sends it, unless a command is in flight: then the next one
// includes it. The caller holds s.mu.
func (l *lane) add(ctx context.Context, s *stream, it item) {
	l.queue = append(l.queue, it)
	if !l.sending {
		l.sending = true
		s.lanesRun.Go(func() { l.run(ctx, s) })
	}
}

// run sends the queue until it is empty.
func (l *lane) run(ctx context.Context, s *stream) {
	wait := minLaneRetry
	for {
		c := l.next(s)
		if c == nil {
			return
		}
		o, err := s.r.e.cfg.Partitions.Ingest(ctx, l.to, c)
		again, err := l.apply(s, c, o, err)
		s.signal()
		if err != nil || ctx.Err() != nil {
			return
		}
		if !again {
			wait = minLaneRetry
			continue
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = longer(wait)
	}
}

// longer returns the next delay. It grows slowly, so that records are late by little more than a
// change of the leader takes: with doubled delays it would be up to twice as long.
func longer(wait time.Duration) time.Duration { return min(wait+wait/4, maxLaneRetry) }

// Delays before a command is repeated that was not accepted.
const (
	minLaneRetry = 10 * time.Millisecond
	maxLaneRetry = time.Second
)

// next returns the next command, nil if there is nothing to send: then the lane has stopped.
func (l *lane) next(s *stream) *machine.Ingest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[l.to] != l || len(l.queue) == 0 {
		l.sending = false
		return nil
	}
	c := &machine.Ingest{Stream: s.id, Generation: s.routes.Generation, Prev: l.prev}
	bytes := 0
	for i := range l.queue {
		rec := &l.queue[i].record
		size := codec.IngestRecordSize(rec)
		if i > 0 && (i == batchRecords || bytes+size > batchBytes) {
			break
		}
		bytes += size
		c.Records = append(c.Records, *rec)
	}
	return c
}

// apply evaluates the outcome of a command. again means that it is to be repeated after a
// pause; an error ends the lane.
func (l *lane) apply(s *stream, c *machine.Ingest, o machine.Outcome, err error) (again bool, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[l.to] != l {
		return false, errStopped
	}
	if err != nil {
		return l.failed(s, c, err)
	}
	switch o.Code {
	case machine.OK, machine.Existing:
		l.confirm(s, o.Last)
		s.setState(subscription.Running, "", "")
		return false, nil
	case machine.Gap:
		if o.Last < l.prev {
			return false, l.fail(s, fault(subscription.Failed, "", "partition %d has lost records of this stream up to offset %d, of which it stores %d", l.to, l.prev, o.Last))
		}
		l.confirm(s, o.Last) // another leader has stored these
		return false, nil
	case machine.Superseded:
		s.overtaken = true
		return false, l.fail(s, errRerouted)
	case machine.Forgotten:
		return false, l.fail(s, fault(subscription.Failed, "", "partition %d has forgotten this incarnation of the subscription, which has ended; seek to begin another one", l.to))
	case machine.QueueFull:
		l.confirm(s, o.Last)
		s.setState(subscription.Throttled, "", "a queue is full: rule "+o.Rule+" limits it")
		return true, nil
	}
	return false, l.fail(s, fmt.Errorf("partition %d rejected records from offset %d on: outcome %v", l.to, c.Records[0].Offset, o.Code))
}

// failed evaluates the error of a command. The outcome may be unknown: it can be repeated
// anyway, since each record is stored once.
func (l *lane) failed(s *stream, c *machine.Ingest, err error) (again bool, failure error) {
	var level *feature.Error
	switch {
	case errors.As(err, &level):
		return false, l.fail(s, fault(subscription.Failed, "", "%v", err))
	case errors.Is(err, raftgroup.ErrTooLarge) && len(c.Records) > 0:
		return false, l.fail(s, fault(subscription.Failed, subscription.RecordTooLarge, "the record at offset %d: %v", c.Records[0].Offset, err))
	}
	s.setState(subscription.Throttled, "", fmt.Sprintf("partition %d does not accept records: %v", l.to, err))
	return true, nil
}

// fail restarts the stream.
func (l *lane) fail(s *stream, err error) error {
	l.sending = false
	for _, it := range l.queue { // the position does not move past these
		if !it.pending.done {
			s.window.inFlight--
		}
	}
	l.queue = nil
	if s.failed == nil {
		s.failed = err
	}
	return err
}

// confirm records that everything up to an offset is stored.
func (l *lane) confirm(s *stream, last int64) {
	l.prev = last
	n := 0
	for n < len(l.queue) && l.queue[n].record.Offset <= last {
		it := l.queue[n]
		l.queue[n] = item{}
		n++
		s.accepted(l, it)
	}
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	s.settle()
}

// awaitEnd marks a record as done when its invocation has ended. The records of a topic partition
// are executed one after the other this way. It returns when ctx ends, which is when the session
// does: a stream that is to end does not wait for a long invocation.
func (s *stream) awaitEnd(ctx context.Context, l *lane, it item) {
	defer s.signal()
	for wait := minLaneRetry; ; wait = min(2*wait, maxLaneRetry) {
		err := s.r.e.cfg.Partitions.AwaitEnd(ctx, it.record.Invoke.ID)
		if err == nil {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[l.to] != l { // the stream has started again
		return
	}
	s.awaiting = time.Time{}
	s.window.end(it.pending, delivered)
	s.settle()
}
