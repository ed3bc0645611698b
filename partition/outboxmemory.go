package partition

import "sync/atomic"

// outboxBytes bounds the bytes of messages that the outboxes of a node hold in memory. When
// it is used up, messages are read from the table when they are due, a few at a time.
const outboxBytes = 64 << 20

// OutboxMemory accounts for the messages that the outboxes of a node hold in memory. The
// zero value is ready to use.
type OutboxMemory struct{ used atomic.Int64 }

// Used returns the bytes of messages in memory.
func (m *OutboxMemory) Used() int64 { return m.used.Load() }

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
