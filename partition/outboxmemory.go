package partition

import "sync/atomic"

// outboxBytes is how many bytes of messages the outboxes of a node hold in memory. When
// it is used up, messages are read from the table when their turn comes, a few at a time.
const outboxBytes = 64 << 20

// OutboxMemory counts the messages that the outboxes of a node hold in memory. The zero
// value is ready for use.
type OutboxMemory struct{ used atomic.Int64 }

// take counts bytes if there is room for them.
func (m *OutboxMemory) take(bytes int) bool {
	if m.used.Add(int64(bytes)) <= outboxBytes {
		return true
	}
	m.release(bytes)
	return false
}

// overdraw counts bytes for which there need not be room.
func (m *OutboxMemory) overdraw(bytes int) { m.used.Add(int64(bytes)) }

func (m *OutboxMemory) release(bytes int) { m.used.Add(-int64(bytes)) }

// left is how many bytes there is room for.
func (m *OutboxMemory) left() int { return int(max(0, outboxBytes-m.used.Load())) }
