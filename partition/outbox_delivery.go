package partition

import (
	"context"
	"errors"
	"time"

	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
)

// minRetryDelay is the delay after the first failed delivery.
const minRetryDelay = 10 * time.Millisecond

// deliverTo delivers the messages of a queue until ctx ends.
func (o *outbox) deliverTo(ctx context.Context, to uint32, q *receiverQueue) {
	d := delivery{o: o, to: to, queue: q, delay: minRetryDelay, acks: ackBatcher{propose: func(upto uint64) error { return o.acknowledge(to, upto) }}}
	defer q.discard()
	defer d.endLarge()
	for d.step(ctx) {
	}
}

// delivery delivers the messages of one queue.
type delivery struct {
	o     *outbox
	to    uint32
	queue *receiverQueue
	acks  ackBatcher
	delay time.Duration // before the next attempt after a failed one
	large int           // bytes of a message that is delivered alone, reserved in the node's OutboxMemory
}

func (d *delivery) endLarge() {
	d.o.memory.endLarge(d.large)
	d.large = 0
}

// step delivers the next messages or waits for some; false if ctx has ended.
func (d *delivery) step(ctx context.Context) bool {
	first, batch, err := d.o.nextBatch(d.to, d.queue)
	large := largeBytes(batch)
	if large != d.large { // another one than was waited for
		d.endLarge()
	}
	switch {
	case err != nil:
		d.o.log.Error("could not read outbox", "to_partition", d.to, "err", err)
		return pause(ctx, time.Second)
	case len(batch) == 0:
		return d.acks.wait(ctx, d.queue.wake)
	case large > 0 && d.o.memory.isFailing(d.to):
		d.queue.discard()
		d.endLarge()
		return d.awaitReceiver(ctx)
	case large > d.large && !d.o.memory.tryLarge(large):
		d.queue.discard() // the message must not be in memory while it waits
		if !d.o.memory.awaitLarge(ctx, large) {
			return false
		}
		d.large = large
		return true
	}
	d.large = large
	err = d.o.deliver(ctx, d.to, &machine.Deliver{From: d.o.self, FirstSeq: first, Messages: batch})
	d.endLarge()
	d.o.memory.delivered(d.to, err)
	if err != nil {
		return d.backOff(ctx, first, len(batch), err)
	}
	d.delay = minRetryDelay
	d.queue.removeDelivered(len(batch))
	d.acks.add(len(batch), first+uint64(len(batch))-1)
	return true
}

// awaitReceiver waits until the receiver commits a delivery without messages, which changes nothing; false if ctx has
// ended. A large message is held in memory only then: receivers without a leader, which take seconds to fail, would
// delay the large messages to all others.
func (d *delivery) awaitReceiver(ctx context.Context) bool {
	for {
		err := d.o.deliver(ctx, d.to, &machine.Deliver{From: d.o.self, FirstSeq: 1})
		d.o.memory.delivered(d.to, err)
		if err == nil {
			return true
		}
		if !d.backOff(ctx, 1, 0, err) {
			return false
		}
	}
}

// backOff waits after a failed delivery; false if ctx has ended.
func (d *delivery) backOff(ctx context.Context, first uint64, messages int, err error) bool {
	d.o.log.Debug("could not deliver messages", "to_partition", d.to, "first_seq", first, "messages", messages, "err", err)
	d.queue.discard()
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

const (
	// ackEvery is the number of delivered messages after which they are acknowledged in our
	// own log; ackDelay is the maximum delay of an acknowledgement.
	ackEvery = 512
	ackDelay = 50 * time.Millisecond
)

// ackBatcher batches acknowledgements, so that most deliveries write nothing to our own
// log.
type ackBatcher struct {
	propose func(upto uint64) error
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

// flush acknowledges what was delivered, unless the partition is overloaded: then a later call does.
func (a *ackBatcher) flush() {
	if a.count > 0 && a.propose(a.upto) == nil {
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
