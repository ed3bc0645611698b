package partition

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

// outboxBytes bounds the bytes of messages that the outboxes of a node hold in memory. When
// it is used up, messages are read from the table when they are due, a few at a time.
const outboxBytes = 64 << 20

// OutboxMemory accounts for the messages that the outboxes of a node hold in memory. The
// zero value is ready to use.
type OutboxMemory struct{ used atomic.Int64 }

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
