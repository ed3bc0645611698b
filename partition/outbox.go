package partition

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"platform/internal/limits"
	"platform/partition/codec"
	"platform/partition/machine"
)

const (
	// shipBatch bounds the messages of one Deliver command, limits.DeliverBatch their
	// bytes.
	shipBatch = 128
	// shipQueue is how many messages per receiver are held in memory, laneBytes how many
	// bytes; the rest waits in the table.
	shipQueue = 4096
	laneBytes = 8 << 20
	// heldBytes is how many bytes a lane keeps in memory while its receiver does not
	// take them; larger windows are read from the table again.
	heldBytes = 64 << 10
	// ackEvery is how many delivered messages are acknowledged to our own log at
	// the latest; ackDelay how long an acknowledgement waits for company.
	ackEvery = 512
	ackDelay = 50 * time.Millisecond
)

// outbox ships the partition's messages to the other partitions, in order and
// until they have them. What it holds in memory is a window on the table.
type outbox struct {
	self uint32
	// read returns up to count messages of the table for a receiver, from a sequence
	// number on, and of them the first or as many as have no more than that many bytes.
	// They are contiguous. more says that there may be others behind them.
	read func(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error)
	// deliver hands messages to a receiver's leader and returns once they are
	// committed there.
	deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// acknowledge proposes to forget delivered messages.
	acknowledge func(to uint32, upto uint64)
	log         *slog.Logger
	memory      *OutboxMemory

	opened chan uint32 // receivers whose lane wants to run

	mu    sync.Mutex // covers lanes
	lanes []*lane    // by receiver, nil until first used
}

// Run ships messages until ctx ends. Receivers that the table holds messages for
// are served from the start, the others from their first message on.
func (o *outbox) Run(ctx context.Context) error {
	for to := range o.lanes {
		if uint32(to) != o.self {
			_, found, _, err := o.read(uint32(to), 0, 1, 0)
			if err != nil {
				return fmt.Errorf("read outbox: %w", err)
			}
			if len(found) > 0 {
				o.lane(uint32(to))
			}
		}
	}
	var g sync.WaitGroup
	defer g.Wait()
	for {
		select {
		case to := <-o.opened:
			g.Go(func() { o.ship(ctx, to, o.lane(to)) })
		case <-ctx.Done():
			return nil
		}
	}
}

// lane is the way to one receiver.
type lane struct {
	mu       sync.Mutex        // covers the fields below
	first    uint64            // sequence number of queue[0]; 0 until known
	queue    []machine.Message // contiguous
	bytes    int               // of the queue, taken from memory
	overflow bool              // the table holds more, behind the queue
	memory   *OutboxMemory
	wake     chan struct{}
}

func newOutbox(self, count uint32) *outbox {
	return &outbox{self: self, lanes: make([]*lane, count), opened: make(chan uint32, count), memory: new(OutboxMemory)}
}

// send queues a message that is in the table. It never blocks.
func (o *outbox) send(s *machine.Send) {
	l := o.lane(s.To)
	l.mu.Lock()
	if !l.overflow && !l.add(s) {
		l.overflow = true
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// lane is the way to a receiver, opened at its first use. A fresh lane starts with
// what the table holds, since earlier messages go first.
func (o *outbox) lane(to uint32) *lane {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.lanes[to]; l != nil {
		return l
	}
	l := &lane{overflow: true, memory: o.memory, wake: make(chan struct{}, 1)}
	o.lanes[to] = l
	o.opened <- to // has room for every receiver once
	return l
}

// add queues a message; false if it has to be read from the table.
func (l *lane) add(s *machine.Send) bool {
	size := codec.MessageSize(s.Message)
	switch {
	case len(l.queue) >= shipQueue, l.bytes+size > laneBytes:
		return false
	case len(l.queue) > 0 && s.Seq != l.first+uint64(len(l.queue)):
		return false
	case !l.memory.take(size):
		return false
	}
	if len(l.queue) == 0 {
		l.first = s.Seq
	}
	l.queue = append(l.queue, s.Message)
	l.bytes += size
	return true
}

// ship runs a lane until ctx ends.
func (o *outbox) ship(ctx context.Context, to uint32, l *lane) {
	defer l.forget(-1)
	wait := firstWait
	acks := lazyAck{propose: func(upto uint64) { o.acknowledge(to, upto) }}
	for {
		first, batch, err := o.next(to, l)
		if err != nil {
			o.log.Error("outbox unreadable", "to_partition", to, "err", err)
			if !pause(ctx, time.Second) {
				return
			}
			continue
		}
		if len(batch) == 0 {
			if !acks.wait(ctx, l.wake) {
				return
			}
			continue
		}
		d := &machine.Deliver{From: o.self, FirstSeq: first, Messages: batch}
		if err := o.deliver(ctx, to, d); err != nil {
			o.log.Debug("delivery failed", "to_partition", to, "first_seq", first, "messages", len(batch), "err", err)
			l.forget(heldBytes)
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, time.Second)
			continue
		}
		wait = firstWait
		l.drop(len(batch))
		acks.add(len(batch), first+uint64(len(batch))-1)
	}
}

// firstWait is the pause after the first delivery that failed.
const firstWait = 10 * time.Millisecond

// next is the run of messages to deliver next, from memory or else from the table.
func (o *outbox) next(to uint32, l *lane) (uint64, []machine.Message, error) {
	l.mu.Lock()
	if len(l.queue) > 0 || !l.overflow {
		first, batch := l.first, l.batch()
		l.mu.Unlock()
		return first, batch, nil
	}
	from := l.first
	l.overflow = false // what is sent from here on is queued, or seen by the read
	l.mu.Unlock()

	first, messages, more, err := o.read(to, from, shipQueue/2, min(laneBytes/2, o.memory.left()))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.overflow = true
		return 0, nil, fmt.Errorf("read outbox: %w", err)
	}
	if len(messages) == 0 {
		return l.first, l.batch(), nil // empty, or sent after the read
	}
	// Messages queued meanwhile are read again from the table after these.
	l.overflow = l.overflow || len(l.queue) > 0 || more
	l.release(l.bytes)
	l.first, l.queue = first, messages
	for _, m := range messages {
		l.bytes += codec.MessageSize(m)
	}
	l.memory.overdraw(l.bytes)
	return first, l.batch(), nil
}

// batch is the run at the front of the queue that makes up one Deliver command.
func (l *lane) batch() []machine.Message {
	n, bytes := 0, 0
	for n < min(len(l.queue), shipBatch) {
		size := codec.MessageSize(l.queue[n])
		if n > 0 && bytes+size > limits.DeliverBatch {
			break
		}
		bytes += size
		n++
	}
	return l.queue[:n:n]
}

// drop forgets the first n messages, which the receiver has.
func (l *lane) drop(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.queue[:n] {
		l.release(codec.MessageSize(m))
	}
	clear(l.queue[:n])
	l.queue = l.queue[n:]
	l.first += uint64(n)
}

// forget gives up the queue, which is read from the table again, if it has more than that
// many bytes. Nothing is queued until then.
func (l *lane) forget(bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes > bytes {
		l.release(l.bytes)
		l.queue, l.overflow = nil, true
	}
}

func (l *lane) release(bytes int) {
	l.bytes -= bytes
	l.memory.release(bytes)
}

// lazyAck collects acknowledgements, so that most deliveries cost our own log
// nothing.
type lazyAck struct {
	propose func(upto uint64)
	upto    uint64
	count   int
}

func (a *lazyAck) add(delivered int, upto uint64) {
	a.count += delivered
	a.upto = upto
	if a.count >= ackEvery {
		a.flush()
	}
}

func (a *lazyAck) flush() {
	if a.count > 0 {
		a.propose(a.upto)
		a.count = 0
	}
}

// wait waits for wake, acknowledging after a while; false when ctx ended.
func (a *lazyAck) wait(ctx context.Context, wake <-chan struct{}) bool {
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

// pause waits, or returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
