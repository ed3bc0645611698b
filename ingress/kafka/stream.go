package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// topicPartition names a topic partition.
type topicPartition struct {
	topic     string
	partition int32
}

// stream hands the records of one topic partition over, for one leadership of the partition
// that owns it.
type stream struct {
	r     *reader
	owner *owner
	at    topicPartition
	id    machine.Stream
	start int64 // offset at which the topic partition begins, for those without a start
	conv  converter
	log   *slog.Logger

	wake     chan struct{} // has capacity 1
	stopping chan struct{} // closed when what is in flight is to be finished
	stopOnce sync.Once
	done     chan struct{}
	lanesRun sync.WaitGroup

	mu sync.Mutex // covers the fields below

	position machine.StreamPosition // to be stored, apart from Next and LeaderEpoch
	saved    machine.StreamPosition // as stored; zero if none is
	route    routing
	routed   bool  // route is set
	oldUntil int64 // records up to this offset may have been sent with the old route

	fetching  bool  // the client fetches
	paused    bool  // the client is told not to
	fetchNext int64 // offset from which on records are expected
	queue     []*kgo.Record
	bytes     int64 // of the queue and of what is handed over
	failed    error // why fetching ended

	order    []*pending // handed over, in the order of offsets
	inFlight int        // not done yet
	next     int64      // everything before is done
	epoch    int32      // of the record before next
	lanes    map[uint32]*lane
	waits    context.Context // of those for the ends of invocations; ends with the session

	blocked *blockedRecord
	status  subscription.PartitionStatus
}

// pending is a record that is not known to be stored.
type pending struct {
	offset    int64
	epoch     int32
	timestamp time.Time
	outcome   outcome
	done      bool
	bytes     int64
}

// blockedRecord is the record that stops a stream.
type blockedRecord struct {
	rec      *kgo.Record
	why      *unusable
	decision chan decision // has capacity 1
	decided  bool          // covered by stream.mu
}

// decision is what an operator wants of a blocked record.
type decision uint8

const (
	retryRecord decision = iota + 1
	skipRecord
)

func newStream(r *reader, o *owner, at topicPartition, id machine.Stream, start int64) *stream {
	s := &stream{
		r: r, owner: o, at: at, id: id, start: start, conv: converter{&r.sub, &r.e.cfg},
		log:  r.log.With("topic", at.topic, "topic_partition", at.partition),
		wake: make(chan struct{}, 1), stopping: make(chan struct{}), done: make(chan struct{}),
		lanes: map[uint32]*lane{},
	}
	s.status = subscription.PartitionStatus{
		Topic: at.topic, Partition: at.partition, TopicID: id.TopicID, Owner: o.Partition(),
		State: subscription.Starting, Since: time.Now(), End: -1,
	}
	return s
}

// errStopped says that a stream is to end.
var errStopped = errors.New("stream is stopping")

// errAgain says that a stream continues from its position without delay.
var errAgain = errors.New("stream continues")

// run hands records over until ctx ends or finish is called.
func (s *stream) run(ctx context.Context) {
	defer close(s.done)
	defer s.lanesRun.Wait()
	s.r.e.memory.join()
	defer s.r.e.memory.leave()
	wait := minRetry
	for {
		began := time.Now()
		err := s.session(ctx)
		s.abandon()
		if ctx.Err() != nil || errors.Is(err, errStopped) {
			return
		}
		if errors.Is(err, errAgain) {
			continue
		}
		s.report(err)
		if time.Since(began) > maxRetry {
			wait = minRetry
		}
		select {
		case <-time.After(wait):
		case <-s.stopping:
			return
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, maxRetry)
	}
}

// Delays before a failed stream or client is tried again.
const (
	minRetry = 200 * time.Millisecond
	maxRetry = 15 * time.Second
)

// finish stops handing over; run returns once everything in flight is stored, or soon after.
func (s *stream) finish() { s.stopOnce.Do(func() { close(s.stopping) }) }

// signal wakes run.
func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// abandon stops fetching and drops what is not handed over.
func (s *stream) abandon() {
	s.mu.Lock()
	fetching := s.fetching
	s.fetching, s.paused, s.failed = false, false, nil
	released := s.bytes
	s.queue, s.bytes, s.order, s.inFlight, s.lanes = nil, 0, nil, 0, map[uint32]*lane{}
	s.mu.Unlock()
	s.r.e.memory.release(released)
	if fetching {
		s.r.unassign(s.at)
	}
}

// session hands records over until something prevents it.
func (s *stream) session(ctx context.Context) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.waits = waits
	s.mu.Unlock()
	if err := s.begin(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(storeDelay)
	defer tick.Stop()
	stopping := s.stopping
	var deadline <-chan time.Time
	for {
		if err := s.advance(ctx, stopping == nil); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case <-tick.C:
			s.store(ctx, false)
		case <-stopping:
			stopping, deadline = nil, time.After(drainTimeout)
		case <-deadline:
			return errStopped
		case <-ctx.Done():
			return errStopped
		}
	}
}

const (
	// storeDelay and storeRecords are how far the stored position may be behind.
	storeDelay   = time.Second
	storeRecords = 1000
	// drainTimeout is how long a stream that is to end waits for what is in flight.
	drainTimeout = 5 * time.Second
)

// begin finds the position and starts to fetch there.
func (s *stream) begin(ctx context.Context) error {
	stored, err := s.owner.Position(s.id)
	if err != nil {
		return err
	}
	next, epoch, err := s.resume(stored)
	if err != nil {
		return err
	}
	if next, err = s.r.checkRange(ctx, s.at, next, epoch); err != nil {
		return err
	}
	if err := s.resumeRouting(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.next, s.epoch, s.fetchNext, s.fetching, s.failed = next, epoch, next, true, nil
	s.status.Position = next
	s.setState(subscription.Running, "", "")
	s.mu.Unlock()
	s.r.assign(s.at, kgo.NewOffset().WithEpoch(epoch).At(next), s)
	return nil
}

// resume returns where to read on, from the stored position or the start of the incarnation.
func (s *stream) resume(stored *machine.StreamPosition) (next int64, epoch int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored != nil && stored.Stream.Incarnation > s.id.Incarnation {
		return 0, 0, fault(subscription.Starting, "", "a newer incarnation of the subscription exists; this node learns of it shortly")
	}
	if stored != nil && stored.Stream.Incarnation == s.id.Incarnation {
		if differ(stored.Stream.TopicID, s.id.TopicID) {
			return 0, 0, s.recreated(stored.Stream.TopicID)
		}
		s.position, s.saved = *stored, *stored
		s.status.Skipped, s.status.DeadLettered = stored.Skipped, stored.DeadLettered
		return stored.Next, int32(stored.LeaderEpoch), nil
	}
	known := false
	if next, known = s.r.sub.StartOf(s.at.topic, s.at.partition); !known {
		next = s.start
	}
	if known && differ(s.r.startID(s.at.topic), s.id.TopicID) {
		return 0, 0, s.recreated(s.r.startID(s.at.topic))
	}
	s.position, s.saved = machine.StreamPosition{Stream: s.id, Next: next, LeaderEpoch: -1}, machine.StreamPosition{}
	return next, -1, nil
}

func (s *stream) recreated(before [16]byte) error {
	return fault(subscription.Failed, subscription.TopicRecreated,
		"the topic was deleted and created again (its ID was %x and is now %x); seek to say where to start in the new one", before, s.id.TopicID)
}

// differ reports whether two topic IDs are known and different.
func differ(a, b [16]byte) bool {
	return a != b && a != [16]byte{} && b != [16]byte{}
}

// resumeRouting decides how records are assigned to partitions. Those that may have been sent
// already must go to the same partition again.
func (s *stream) resumeRouting(ctx context.Context) error {
	s.mu.Lock()
	text := s.position.Routing
	next := s.position.Next
	s.routed, s.oldUntil = false, machine.NoOffset
	s.mu.Unlock()
	if text == "" {
		return nil
	}
	old, err := parseRouting(text)
	if err != nil {
		return err
	}
	now, bad := s.conv.current()
	if bad == nil && now.samePartitions(&old) {
		return nil
	}
	last := int64(machine.NoOffset)
	for id := range s.r.e.cfg.Partitions.Count() {
		o, err := s.r.e.cfg.Partitions.Ingest(ctx, id, &machine.Ingest{Stream: s.id, Prev: machine.NoOffset})
		if err != nil {
			return fmt.Errorf("find the last record of partition %d: %w", id, err)
		}
		last = max(last, o.Last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last >= next {
		s.route, s.routed, s.oldUntil = old, true, last
	}
	return nil
}

// advance hands records over as far as possible. It returns errStopped once everything is
// stored after the stream was told to end.
func (s *stream) advance(ctx context.Context, ending bool) error {
	for {
		s.mu.Lock()
		switch {
		case s.failed != nil && s.inFlight == 0:
			err := s.failed
			s.mu.Unlock()
			s.store(ctx, true)
			return err
		case ending && s.inFlight == 0:
			s.mu.Unlock()
			s.store(ctx, true)
			return errStopped
		case ending || s.failed != nil:
			s.mu.Unlock()
			return nil
		}
		rec, why, changed := s.handOver(ctx)
		resume := s.paused && len(s.queue) < maxStreamRecords/2 && s.bytes < s.r.e.memory.share()/2
		if resume {
			s.paused = false
		}
		s.mu.Unlock()
		if resume {
			s.r.resume(s.at)
		}
		switch {
		case rec != nil:
			if err := s.unusable(ctx, rec, why); err != nil {
				return err
			}
		case changed:
			if !s.store(ctx, true) {
				return fault(subscription.Failed, "", "the position could not be stored")
			}
		default:
			s.storeIfDue(ctx)
			return nil
		}
	}
}

// handOver passes queued records to the lanes, until there are none, too many are in flight,
// or one cannot be converted and everything before it is stored: then it returns that one.
// changed says that the routing has changed, which must be stored before it is used.
func (s *stream) handOver(ctx context.Context) (rec *kgo.Record, why *unusable, changed bool) {
	limit := int(s.r.sub.MaxInFlight)
	if s.r.sub.Ordering == subscription.OrderByPartition {
		limit = 1
	}
	for len(s.queue) > 0 && s.inFlight < limit {
		rec := s.queue[0]
		if rec.Attrs.IsControl() || rec.Value == nil && s.r.sub.Tombstones == subscription.SkipTombstones {
			outcome := control
			if !rec.Attrs.IsControl() {
				outcome = tombstone
			}
			p := s.take()
			p.outcome, p.done = outcome, true
			s.inFlight--
			s.settle()
			continue
		}
		if !s.routed || rec.Offset > s.oldUntil {
			now, bad := s.conv.current()
			switch {
			case bad != nil && s.inFlight > 0:
				return nil, nil, false
			case bad != nil:
				return rec, bad, false
			}
			if !s.routed || !now.equal(&s.route) {
				if s.inFlight > 0 {
					return nil, nil, false
				}
				s.route, s.routed, s.oldUntil = now, true, machine.NoOffset
				if text := now.String(); s.position.Routing != text {
					s.position.Routing = text
					return nil, nil, true
				}
			}
		}
		to, ingest, bad := s.conv.convert(&s.id, &s.route, rec)
		if bad != nil {
			if s.inFlight > 0 {
				return nil, nil, false
			}
			return rec, bad, false
		}
		p := s.take()
		s.lane(to).add(ctx, s, item{p, ingest})
	}
	return nil, nil, false
}

// take moves the first queued record to those in flight.
func (s *stream) take() *pending {
	rec := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	p := &pending{offset: rec.Offset, epoch: rec.LeaderEpoch, timestamp: rec.Timestamp, bytes: recordBytes(rec)}
	s.order = append(s.order, p)
	s.inFlight++
	return p
}

// settle moves the position over records that are done.
func (s *stream) settle() {
	n := 0
	released := int64(0)
	for n < len(s.order) && s.order[n].done {
		p := s.order[n]
		s.order[n] = nil
		s.next, s.epoch = p.offset+1, p.epoch
		released += p.bytes
		s.r.e.cfg.Metrics.record(s.r.sub.ID, p.outcome)
		if p.outcome == delivered {
			s.status.Delivered++
			s.status.LastRecordAt = p.timestamp
		}
		n++
	}
	s.order = s.order[n:]
	s.bytes -= released
	s.status.Position = s.next
	if released > 0 {
		s.r.e.memory.release(released)
	}
}
