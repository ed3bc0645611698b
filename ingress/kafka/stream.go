package kafka

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// topicPartition names a topic partition.
type topicPartition struct {
	topic     string
	partition int32
}

// stream hands over the records of one topic partition, for one leadership of the partition that
// owns it.
type stream struct {
	r     *reader
	owner *owner
	at    topicPartition
	topic [16]byte // ID of the topic
	start int64    // offset at which the topic partition begins, for those without a start
	conv  converter
	log   *slog.Logger
	// client fetches the topic partition.
	client fetcher

	wake     chan struct{} // has capacity 1
	stopping chan struct{} // closed when what is in flight is to be finished
	stopOnce sync.Once
	done     chan struct{}
	lanesRun sync.WaitGroup

	mu sync.Mutex // covers the fields below

	id        machine.Stream         // of the rows
	position  machine.StreamPosition // to be stored, apart from Next and LeaderEpoch
	saved     machine.StreamPosition // as stored; zero if none is
	routes    routes                 // position.Routing is the text of it
	overtaken bool                   // a partition knows a later generation of the routing

	fetched fetched
	window  window
	bytes   int64 // of the records in both
	failed  error // why the session ends, once nothing is in flight

	lanes    map[uint32]*lane
	waits    context.Context //nolint:containedctx // of the waits for ends of invocations; ends with the session
	awaiting time.Time       // since when the end of an invocation is awaited; zero if none is

	blocked *blockedRecord
	status  subscription.PartitionStatus
}

// fetcher is the part of a Kafka client that a stream uses.
type fetcher interface {
	PauseFetchPartitions(map[string][]int32) map[string][]int32
	ResumeFetchPartitions(map[string][]int32)
}

func newStream(r *reader, o *owner, at topicPartition, topic [16]byte, start int64) *stream {
	s := &stream{
		r: r, owner: o, at: at, topic: topic, start: start, conv: converter{&r.sub, &r.e.cfg}, client: r.kafka,
		log:  r.log.With("topic", at.topic, "topic_partition", at.partition),
		wake: make(chan struct{}, 1), stopping: make(chan struct{}), done: make(chan struct{}),
		lanes: map[uint32]*lane{},
		id: machine.Stream{
			Subscription: r.sub.ID, Incarnation: r.sub.Incarnation, Topic: at.topic, TopicID: topic, Partition: uint32(at.partition), //nolint:gosec // not negative
		},
	}
	s.status = subscription.PartitionStatus{
		Topic: at.topic, Partition: at.partition, TopicID: topic, Owner: o.Partition(),
		State: subscription.Starting, Since: time.Now(), End: -1,
	}
	return s
}

// errStopped means that a stream is to end.
var errStopped = errors.New("stream is stopping")

// errAgain means that a stream continues from its position without delay.
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
		if asFault(err).reason == subscription.TopicRecreated {
			s.r.notify() // it checks whether there is another topic
		}
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

// Delays before a failed stream or client is retried.
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
	fetching := s.fetched.end()
	s.window.drop()
	released := s.bytes
	s.bytes, s.failed, s.lanes, s.awaiting = 0, nil, map[uint32]*lane{}, time.Time{}
	s.mu.Unlock()
	s.r.e.memory.release(released)
	if fetching {
		s.r.unassign(s.at)
	}
}

// session hands over records until an error or a change ends it.
func (s *stream) session(ctx context.Context) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.waits = waits
	s.mu.Unlock()
	if err := s.begin(ctx); err != nil {
		return err
	}
	stopping := s.stopping
	var deadline, tick <-chan time.Time
	for {
		if err := s.advance(ctx, stopping == nil); err != nil {
			return err
		}
		if tick == nil && s.active() {
			tick = time.After(storeDelay)
		}
		select {
		case <-s.wake:
		case <-tick:
			tick = nil
			s.store(ctx, false)
			if err := s.yields(); err != nil {
				return err
			}
		case <-stopping:
			stopping, deadline = nil, time.After(drainTimeout)
		case <-deadline:
			return errStopped
		case <-ctx.Done():
			return errStopped
		}
	}
}

// active reports whether there is something to do without a signal: thousands of topic partitions may
// have no records.
func (s *stream) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.next != s.saved.Next || s.bytes > 0
}

const (
	// storeDelay and storeRecords are how far the stored position may be behind.
	storeDelay   = time.Second
	storeRecords = 1000
	// drainTimeout is how long a stream that is to end waits for what is in flight.
	drainTimeout = 5 * time.Second
)

// advance hands over as many records as possible. It returns errStopped once everything is stored
// and the stream is to end.
func (s *stream) advance(ctx context.Context, ending bool) error {
	for {
		s.mu.Lock()
		switch {
		case s.failed != nil && s.window.inFlight == 0:
			err := s.failed
			s.mu.Unlock()
			s.store(ctx, true)
			return err
		case ending && s.window.inFlight == 0:
			s.mu.Unlock()
			s.store(ctx, true)
			return errStopped
		case ending || s.failed != nil:
			s.mu.Unlock()
			return nil //nolint:nilerr // it is returned once nothing is in flight
		}
		stop := s.handOver(ctx)
		if s.fetched.paused && len(s.fetched.records) < maxStreamRecords/2 && s.bytes < s.r.e.memory.share()/2 {
			s.setPaused(false)
		}
		s.mu.Unlock()
		if stop == nil {
			s.storeIfDue(ctx)
			return nil
		}
		if err := s.overcome(ctx, stop); err != nil {
			return err
		}
	}
}
