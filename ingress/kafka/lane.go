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
	most    int           // records in the next command
	wait    time.Duration // before it, if the last one was not accepted
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
		l = &lane{to: to, prev: machine.NoOffset, most: batchRecords, wait: minLaneRetry}
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
	for {
		c := l.next(s)
		if c == nil {
			return
		}
		o, err := s.r.e.cfg.Partitions.Ingest(ctx, l.to, c)
		wait, err := l.apply(s, c, o, err)
		s.signal()
		if err != nil || ctx.Err() != nil {
			return
		}
		if wait == 0 {
			continue
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// retry returns the delay before a command is repeated. The caller holds s.mu.
func (l *lane) retry() time.Duration {
	wait := l.wait
	l.wait = longer(wait)
	return wait
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
		if i > 0 && (i == l.most || bytes+size > batchBytes) {
			break
		}
		bytes += size
		c.Records = append(c.Records, *rec)
	}
	return c
}

// apply evaluates the outcome of a command, and returns how long to wait before the next one. An
// error ends the lane.
func (l *lane) apply(s *stream, c *machine.Ingest, o machine.Outcome, err error) (wait time.Duration, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[l.to] != l {
		return 0, errStopped
	}
	if err != nil {
		return l.failed(s, c, err)
	}
	switch o.Code {
	case machine.OK, machine.Existing:
		l.confirm(s, o.Last)
		l.shorten()
		l.most = min(2*l.most, batchRecords)
		s.setState(subscription.Running, "", "")
		return 0, nil
	case machine.Gap:
		if o.Last < l.prev {
			return 0, l.fail(s, fault(subscription.Failed, "", "partition %d has lost records of this stream up to offset %d, of which it stores %d", l.to, l.prev, o.Last))
		}
		l.confirm(s, o.Last) // another leader has stored these
		return 0, nil
	case machine.Superseded:
		s.overtaken = true
		return 0, l.fail(s, errRerouted)
	case machine.Forgotten:
		return 0, l.fail(s, fault(subscription.Failed, "", "partition %d has forgotten this incarnation of the subscription, which has ended; seek to begin another one", l.to))
	case machine.QueueFull:
		l.full(c, o.Last)
		l.confirm(s, o.Last)
		s.setState(subscription.Throttled, "", "a queue is full: rule "+o.Rule+" limits it")
		return l.retry(), nil
	}
	return 0, l.fail(s, fmt.Errorf("partition %d rejected records from offset %d on: outcome %v", l.to, c.Records[0].Offset, o.Code))
}

// full adapts the commands to a full queue that has accepted the records of c up to an offset. What
// it refuses is written to the log as well, and what it has room for while nothing is sent is lost.
func (l *lane) full(c *machine.Ingest, last int64) {
	accepted := 0
	for accepted < len(c.Records) && c.Records[accepted].Offset <= last {
		accepted++
	}
	l.most = max(accepted, 1)
	if accepted > 0 {
		l.shorten()
	}
}

// shorten reduces the next delay after progress: gradually while a queue is full, whose rate does
// not change much.
func (l *lane) shorten() {
	if l.wait /= 2; l.most == batchRecords || l.wait < minLaneRetry {
		l.wait = minLaneRetry
	}
}

// failed evaluates the error of a command. The outcome may be unknown: it can be repeated
// anyway, since each record is stored once.
func (l *lane) failed(s *stream, c *machine.Ingest, err error) (wait time.Duration, failure error) {
	var level *feature.Error
	switch {
	case errors.As(err, &level):
		return 0, l.fail(s, fault(subscription.Failed, "", "%v", err))
	case errors.Is(err, raftgroup.ErrTooLarge) && len(c.Records) > 0:
		return 0, l.fail(s, fault(subscription.Failed, subscription.RecordTooLarge, "the record at offset %d: %v", c.Records[0].Offset, err))
	}
	s.setState(subscription.Throttled, "", fmt.Sprintf("partition %d does not accept records: %v", l.to, err))
	return l.retry(), nil
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
