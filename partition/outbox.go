package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
)

const (
	// maxDeliverMessages bounds the messages of one Deliver command, limits.DeliverBatch
	// their bytes.
	maxDeliverMessages = 128
	// maxQueuedMessages and maxQueuedBytes bound the messages per receiver in memory; the
	// rest stays in the table.
	maxQueuedMessages = 4096
	maxQueuedBytes    = 8 << 20
	// ackEvery is the number of delivered messages after which they are acknowledged in our
	// own log; ackDelay is the maximum delay of an acknowledgement.
	ackEvery = 512
	ackDelay = 50 * time.Millisecond
)

// outbox delivers the partition's messages to the other partitions, in order, until they
// are acknowledged. In memory it holds a window of the table.
type outbox struct {
	self uint32
	// read returns messages of the table for a receiver, from a sequence number on: up to
	// count, and as many as fit into bytes but at least one. They are contiguous. more says
	// that there may be further ones.
	read func(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error)
	// deliver passes messages to a receiver's leader and returns once they are committed
	// there.
	deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// acknowledge proposes to delete delivered messages.
	acknowledge func(to uint32, upto uint64)
	log         *slog.Logger
	memory      *OutboxMemory

	opened chan uint32 // receivers whose stream is to be started

	mu      sync.Mutex // covers streams
	streams []*stream  // by receiver, nil until first used
}

// Run delivers messages until ctx ends. Receivers with messages in the table are served
// from the start, the others from their first message on.
func (o *outbox) Run(ctx context.Context) error {
	for to := range o.streams {
		if uint32(to) != o.self {
			_, found, _, err := o.read(uint32(to), 0, 1, 0)
			if err != nil {
				return fmt.Errorf("read outbox: %w", err)
			}
			if len(found) > 0 {
				o.stream(uint32(to))
			}
		}
	}
	var g sync.WaitGroup
	defer g.Wait()
	for {
		select {
		case to := <-o.opened:
			g.Go(func() { o.run(ctx, to, o.stream(to)) })
		case <-ctx.Done():
			return nil
		}
	}
}

// stream is the queue of messages to one receiver.
type stream struct {
	mu       sync.Mutex        // covers the fields below
	first    uint64            // sequence number of queue[0]; 0 until known
	queue    []machine.Message // contiguous
	bytes    int               // of the queue, reserved in memory
	overflow bool              // the table holds further messages behind the queue
	memory   *OutboxMemory
	wake     chan struct{}
}

func newOutbox(self, count uint32) *outbox {
	return &outbox{self: self, streams: make([]*stream, count), opened: make(chan uint32, count), memory: NewOutboxMemory()}
}

// send queues a message that is in the table. It never blocks.
func (o *outbox) send(s *machine.Send) {
	l := o.stream(s.To)
	l.mu.Lock()
	if !l.overflow && !l.add(s) {
		l.overflow = true
	}
	l.mu.Unlock()
	signal(l.wake)
}

// stream returns the stream to a receiver, creating it at its first use. A new stream
// starts with the messages in the table, since earlier messages go first.
func (o *outbox) stream(to uint32) *stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.streams[to]; l != nil {
		return l
	}
	l := &stream{overflow: true, memory: o.memory, wake: make(chan struct{}, 1)}
	o.streams[to] = l
	o.opened <- to // has capacity for every receiver once
	return l
}

// add queues a message; false if it has to be read from the table.
func (l *stream) add(s *machine.Send) bool {
	size := codec.MessageSize(s.Message)
	switch {
	case len(l.queue) >= maxQueuedMessages, l.bytes+size > maxQueuedBytes:
		return false
	case len(l.queue) > 0 && s.Seq != l.first+uint64(len(l.queue)):
		return false
	case !l.memory.reserve(size):
		return false
	}
	if len(l.queue) == 0 {
		l.first = s.Seq
	}
	l.queue = append(l.queue, s.Message)
	l.bytes += size
	return true
}

// run delivers the messages of a stream until ctx ends.
func (o *outbox) run(ctx context.Context, to uint32, l *stream) {
	d := delivery{o: o, to: to, stream: l, delay: minRetryDelay, acks: ackBatcher{propose: func(upto uint64) { o.acknowledge(to, upto) }}}
	defer l.discardQueue()
	defer d.endLarge()
	for d.next(ctx) {
	}
}

// delivery delivers the messages of one stream.
type delivery struct {
	o      *outbox
	to     uint32
	stream *stream
	acks   ackBatcher
	delay  time.Duration // before the next attempt after a failed one
	large  int           // bytes of a large message for which there is room
}

func (d *delivery) endLarge() {
	d.o.memory.endLarge(d.large)
	d.large = 0
}

// next delivers the next messages or waits for some; false if ctx has ended.
func (d *delivery) next(ctx context.Context) bool {
	first, batch, err := d.o.next(d.to, d.stream)
	large := largeBytes(batch)
	if large != d.large { // another one than was waited for
		d.endLarge()
	}
	switch {
	case err != nil:
		d.o.log.Error("could not read outbox", "to_partition", d.to, "err", err)
		return pause(ctx, time.Second)
	case len(batch) == 0:
		return d.acks.wait(ctx, d.stream.wake)
	case large > d.large && !d.o.memory.tryLarge(large):
		d.stream.discardQueue() // the message must not be in memory while it waits
		if !d.o.memory.awaitLarge(ctx, large) {
			return false
		}
		d.large = large
		return true
	}
	d.large = large
	err = d.o.deliver(ctx, d.to, &machine.Deliver{From: d.o.self, FirstSeq: first, Messages: batch})
	d.endLarge()
	if err != nil {
		return d.failed(ctx, first, len(batch), err)
	}
	d.delay = minRetryDelay
	d.stream.removeDelivered(len(batch))
	d.acks.add(len(batch), first+uint64(len(batch))-1)
	return true
}

// failed waits after a failed delivery; false if ctx has ended.
func (d *delivery) failed(ctx context.Context, first uint64, messages int, err error) bool {
	d.o.log.Debug("could not deliver messages", "to_partition", d.to, "first_seq", first, "messages", messages, "err", err)
	d.stream.discardQueue()
	if refused(err) {
		d.acks.flush() // the oldest message is one that the receiver lacks
		d.o.reportOldest(ctx, d.to)
	}
	if !pause(ctx, d.delay) {
		return false
	}
	d.delay = min(2*d.delay, time.Second)
	return true
}

// largeBytes returns the bytes of a batch that has a single message because it is large, 0 for
// others.
func largeBytes(batch []machine.Message) int {
	if len(batch) != 1 {
		return 0
	}
	if size := codec.MessageSize(batch[0]); size > limits.DeliverBatch {
		return size
	}
	return 0
}

// refused reports whether a receiver's leader has refused messages, rather than not having
// been reached.
func refused(err error) bool {
	return !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome) && !errors.Is(err, raftgroup.ErrTooLarge)
}

// reportOldest tells a receiver which message is the oldest one left. A receiver that
// has lost data expects earlier ones, which it had acknowledged, and refuses all others.
func (o *outbox) reportOldest(ctx context.Context, to uint32) {
	first, found, _, err := o.read(to, 0, 1, 0)
	if err == nil && len(found) > 0 {
		err = o.deliver(ctx, to, &machine.Deliver{From: o.self, FirstSeq: first})
	}
	if err != nil {
		o.log.Debug("could not report the oldest message", "to_partition", to, "err", err)
	}
}

// minRetryDelay is the delay after the first failed delivery.
const minRetryDelay = 10 * time.Millisecond

// next returns the next messages to deliver, from memory or else from the table.
func (o *outbox) next(to uint32, l *stream) (uint64, []machine.Message, error) {
	l.mu.Lock()
	if len(l.queue) > 0 || !l.overflow {
		first, batch := l.first, l.batch()
		l.mu.Unlock()
		return first, batch, nil
	}
	from := l.first
	l.overflow = false // messages sent from here on are queued, or seen by the read
	l.mu.Unlock()

	o.memory.reading.Lock()
	defer o.memory.reading.Unlock()
	first, messages, more, err := o.read(to, from, maxQueuedMessages/2, min(maxQueuedBytes/2, o.memory.available()))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.release(l.bytes) // of messages queued meanwhile: those in the table go first
		l.first, l.queue, l.overflow = from, nil, true
		return 0, nil, fmt.Errorf("read outbox: %w", err)
	}
	if len(messages) == 0 {
		return l.first, l.batch(), nil // empty, or sent after the read
	}
	// Messages queued meanwhile are read from the table after these.
	l.overflow = l.overflow || len(l.queue) > 0 || more
	l.release(l.bytes)
	l.first, l.queue = first, messages
	for _, m := range messages {
		l.bytes += codec.MessageSize(m)
	}
	l.memory.overdraw(l.bytes)
	return first, l.batch(), nil
}

// batch returns the messages at the front of the queue that fit into one Deliver command.
func (l *stream) batch() []machine.Message {
	n, bytes := 0, 0
	for n < min(len(l.queue), maxDeliverMessages) {
		size := codec.MessageSize(l.queue[n])
		if n > 0 && bytes+size > limits.DeliverBatch {
			break
		}
		bytes += size
		n++
	}
	return l.queue[:n:n]
}

// removeDelivered removes the first n messages, which the receiver has.
func (l *stream) removeDelivered(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.queue[:n] {
		l.release(codec.MessageSize(m))
	}
	clear(l.queue[:n])
	l.queue = l.queue[n:]
	l.first += uint64(n)
}

// discardQueue discards the queue, which is then read from the table again; nothing is queued until
// then. A stream keeps nothing while its receiver accepts nothing: a queued message also keeps the
// log entry that it is a part of, which may be much larger.
func (l *stream) discardQueue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(l.bytes)
	l.queue, l.overflow = nil, true
}

func (l *stream) release(bytes int) {
	l.bytes -= bytes
	l.memory.release(bytes)
}

// ackBatcher batches acknowledgements, so that most deliveries write nothing to our own
// log.
type ackBatcher struct {
	propose func(upto uint64)
	upto    uint64
	count   int
}

func (a *ackBatcher) add(delivered int, upto uint64) {
	a.count += delivered
	a.upto = upto
	if a.count >= ackEvery {
		a.flush()
	}
}

func (a *ackBatcher) flush() {
	if a.count > 0 {
		a.propose(a.upto)
		a.count = 0
	}
}

// wait waits for wake, and acknowledges after ackDelay; false if ctx ended.
func (a *ackBatcher) wait(ctx context.Context, wake <-chan struct{}) bool {
	if a.count == 0 {
		select {
		case <-wake:
			return true
		case <-ctx.Done():
			return false
		}
	}
	t := time.NewTimer(ackDelay)
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
		a.flush()
	case <-ctx.Done():
		return false
	}
	return true
}
