package partition

import (
	"fmt"
	"sync"

	"platform/internal/limits"
	"platform/partition/codec"
	"platform/partition/machine"
)

// receiverQueue holds the messages to one receiver that are in memory: without gaps, from the
// oldest message that is not delivered on. While it has overflowed, further messages are only
// in the table, so nothing is added before these are read.
type receiverQueue struct {
	wake   chan struct{} // capacity 1: there may be messages
	memory *OutboxMemory

	mu       sync.Mutex // covers the fields below
	first    uint64     // sequence number of messages[0]; 0 until known
	messages []machine.Message
	bytes    int // of messages, reserved in memory
	overflow bool
}

// add queues a message; false if it has to be read from the table.
func (q *receiverQueue) add(s *machine.Send) bool {
	if s.Seq < q.first+uint64(len(q.messages)) {
		return true // it was read from the table, before this call
	}
	size := codec.MessageSize(s.Message)
	switch {
	case len(q.messages) >= maxQueuedMessages, q.bytes+size > maxQueuedBytes:
		return false
	case len(q.messages) > 0 && s.Seq != q.first+uint64(len(q.messages)):
		return false
	case !q.memory.reserve(size):
		return false
	}
	if len(q.messages) == 0 {
		q.first = s.Seq
	}
	q.messages = append(q.messages, s.Message)
	q.bytes += size
	return true
}

// nextBatch returns the next messages to deliver, from memory or else from the table.
func (o *outbox) nextBatch(to uint32, q *receiverQueue) (uint64, []machine.Message, error) {
	q.mu.Lock()
	if len(q.messages) > 0 || !q.overflow {
		first, batch := q.first, q.batch()
		q.mu.Unlock()
		return first, batch, nil
	}
	from := q.first
	q.overflow = false // messages sent from here on are queued, or seen by the read
	q.mu.Unlock()

	o.memory.reading.Lock()
	defer o.memory.reading.Unlock()
	first, read, more, err := o.read(to, from, maxQueuedMessages/2, min(maxQueuedBytes/2, o.memory.available()))
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.release(q.bytes) // of messages queued meanwhile: those in the table go first
		q.first, q.messages, q.overflow = from, nil, true
		return 0, nil, fmt.Errorf("read outbox: %w", err)
	}
	if len(read) == 0 {
		return q.first, q.batch(), nil // empty, or sent after the read
	}
	// Messages queued meanwhile are read from the table after these.
	q.overflow = q.overflow || len(q.messages) > 0 || more
	q.release(q.bytes)
	q.first, q.messages = first, read
	for _, m := range read {
		q.bytes += codec.MessageSize(m)
	}
	q.memory.overdraw(q.bytes)
	return first, q.batch(), nil
}

// batch returns the messages at the front of the queue that fit into one Deliver command.
func (q *receiverQueue) batch() []machine.Message {
	n, bytes := 0, 0
	for n < min(len(q.messages), maxDeliverMessages) {
		size := codec.MessageSize(q.messages[n])
		if n > 0 && bytes+size > limits.DeliverBatch {
			break
		}
		bytes += size
		n++
	}
	return q.messages[:n:n]
}

// removeDelivered removes the first n messages, which the receiver has.
func (q *receiverQueue) removeDelivered(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages[:n] {
		q.release(codec.MessageSize(m))
	}
	clear(q.messages[:n])
	q.messages = q.messages[n:]
	q.first += uint64(n)
}

// discard removes all messages, which are then read from the table again; nothing is queued until
// then. It keeps nothing while its receiver accepts nothing: a queued message also keeps the
// log entry that it is a part of, which may be much larger.
func (q *receiverQueue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(q.bytes)
	q.messages, q.overflow = nil, true
}

func (q *receiverQueue) release(bytes int) {
	q.bytes -= bytes
	q.memory.release(bytes)
}
