package partition

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

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
)

// outboxConfig is what an outbox is built on. All fields are required.
type outboxConfig struct {
	self, count uint32 // the partition, and how many there are
	// read returns messages of the table for a receiver, from a sequence number on: up to
	// count, and as many as fit into bytes but at least one. They are contiguous. more says
	// that there may be further ones.
	read func(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error)
	// deliver passes messages to a receiver's leader and returns once they are committed
	// there.
	deliver func(ctx context.Context, to uint32, d *machine.Deliver) error
	// acknowledge proposes to delete delivered messages. It is repeated after an error.
	acknowledge func(to uint32, upto uint64) error
	log         *slog.Logger
	memory      *OutboxMemory
}

// outbox delivers the partition's messages to the other partitions, in order, until they
// are acknowledged. In memory it holds a window of the table.
type outbox struct {
	outboxConfig
	opened chan uint32 // receivers to which delivery is to be started

	mu     sync.Mutex       // covers queues
	queues []*receiverQueue // by receiver, nil until first used
}

func newOutbox(cfg outboxConfig) *outbox {
	return &outbox{outboxConfig: cfg, queues: make([]*receiverQueue, cfg.count), opened: make(chan uint32, cfg.count)}
}

// Run delivers messages until ctx ends. Receivers with messages in the table are served
// from the start, the others from their first message on.
func (o *outbox) Run(ctx context.Context) error {
	for to := range o.queues {
		if uint32(to) != o.self {
			_, found, _, err := o.read(uint32(to), 0, 1, 0)
			if err != nil {
				return fmt.Errorf("read outbox: %w", err)
			}
			if len(found) > 0 {
				o.queueTo(uint32(to))
			}
		}
	}
	var g sync.WaitGroup
	defer g.Wait()
	for {
		select {
		case to := <-o.opened:
			g.Go(func() { o.deliverTo(ctx, to, o.queueTo(to)) })
		case <-ctx.Done():
			return nil
		}
	}
}

// send queues a message that is in the table. It never blocks.
func (o *outbox) send(s *machine.Send) {
	q := o.queueTo(s.To)
	q.mu.Lock()
	if !q.overflow && !q.add(s) {
		q.overflow = true
	}
	q.mu.Unlock()
	signal(q.wake)
}

// queueTo returns the queue to a receiver, creating it at its first use. A new queue starts
// with the messages in the table, since earlier messages go first.
func (o *outbox) queueTo(to uint32) *receiverQueue {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.queues[to]; q != nil {
		return q
	}
	q := &receiverQueue{overflow: true, memory: o.memory, wake: make(chan struct{}, 1)}
	o.queues[to] = q
	o.opened <- to // has capacity for every receiver once
	return q
}
