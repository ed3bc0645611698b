package partition

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"platform/internal/metrics"
)

// outboxBytes bounds the bytes of messages that the outboxes of a node hold in memory. When
// it is used up, messages are read from the table when they are due, a few at a time. Those that
// do not fit into a delivery with others have the same bound, so that small ones do not wait for
// them.
const outboxBytes = 64 << 20

// OutboxMemory accounts for the messages that the outboxes of a node hold in memory.
type OutboxMemory struct {
	used atomic.Int64

	// reading is held while a table is read: it is known only then how large a message is.
	reading sync.Mutex
	large   *semaphore.Weighted // bytes of the large messages that are being delivered
	failing sync.Map            // receivers to which the last delivery failed
}

// NewOutboxMemory returns the memory of a node.
func NewOutboxMemory() *OutboxMemory {
	return &OutboxMemory{large: semaphore.NewWeighted(outboxBytes)}
}

// tryLarge counts the bytes of a large message that is being delivered; false if there are too
// many of these.
func (m *OutboxMemory) tryLarge(bytes int) bool { return m.large.TryAcquire(weight(bytes)) }

// awaitLarge is tryLarge, but waits, until ctx ends. The caller must not hold the message.
func (m *OutboxMemory) awaitLarge(ctx context.Context, bytes int) bool {
	return m.large.Acquire(ctx, weight(bytes)) == nil
}

func (m *OutboxMemory) endLarge(bytes int) { m.large.Release(weight(bytes)) }

// delivered records the outcome of a delivery to a receiver.
func (m *OutboxMemory) delivered(to uint32, err error) {
	if err != nil {
		m.failing.Store(to, nil)
	} else {
		m.failing.Delete(to)
	}
}

// isFailing reports whether the last delivery to a receiver failed, that of any outbox of the node.
func (m *OutboxMemory) isFailing(to uint32) bool {
	_, failing := m.failing.Load(to)
	return failing
}

func weight(bytes int) int64 { return int64(min(bytes, outboxBytes)) }

var descOutbox = metrics.Desc("outbox_memory_bytes", "Memory for messages to other partitions that are not acknowledged.")

// Collector returns the metric of the bytes in use.
func (m *OutboxMemory) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) { out.Gauge(descOutbox, float64(m.used.Load())) }, descOutbox)
}

// reserve counts bytes if they fit.
func (m *OutboxMemory) reserve(bytes int) bool {
	if m.used.Add(int64(bytes)) <= outboxBytes {
		return true
	}
	m.release(bytes)
	return false
}

// overdraw counts bytes even if they do not fit.
func (m *OutboxMemory) overdraw(bytes int) { m.used.Add(int64(bytes)) }

func (m *OutboxMemory) release(bytes int) { m.used.Add(-int64(bytes)) }

// available returns how many bytes fit.
func (m *OutboxMemory) available() int { return int(max(0, outboxBytes-m.used.Load())) }
