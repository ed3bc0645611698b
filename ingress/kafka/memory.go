package kafka

import (
	"context"
	"sync"
	"time"

	"platform/internal/subscription"
)

// memory bounds the bytes of records that this node holds. Readers wait until there is room before
// they fetch, and then keep what one poll returns, so the bound can be exceeded by one poll of each
// subscription.
type memory struct {
	limit int64

	mu      sync.Mutex // covers the fields below
	used    int64
	streams int
	freed   chan struct{} // closed when there is room again; nil without waiters
}

func newMemory(limit int64) *memory { return &memory{limit: max(limit, 1<<20)} }

func (m *memory) take(n int64) {
	m.mu.Lock()
	m.used += n
	m.mu.Unlock()
}

func (m *memory) release(n int64) {
	m.mu.Lock()
	m.used -= n
	if m.freed != nil && m.used < m.limit {
		close(m.freed)
		m.freed = nil
	}
	m.mu.Unlock()
}

// full reports whether readers wait for room.
func (m *memory) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used >= m.limit
}

// Errors that end a session which holds records that cannot be handed over soon.
var (
	errYielded  = fault(subscription.Throttled, "", "the target accepts no more records now, and other topic partitions need the memory")
	errAwaiting = fault(subscription.Throttled, "", "the invocation of the previous record has not ended, and other topic partitions need the memory")
)

// yields returns an error if a stream must release its records: its target does not accept them, or
// they wait for the end of a long invocation, and others wait for room.
func (s *stream) yields() error {
	s.mu.Lock()
	holds := s.bytes > 0
	throttled := s.status.State == subscription.Throttled
	awaiting := !s.awaiting.IsZero() && time.Since(s.awaiting) > storeDelay
	s.mu.Unlock()
	switch {
	case !holds || !throttled && !awaiting || !s.r.e.memory.full():
		return nil
	case throttled:
		return errYielded
	}
	return errAwaiting
}

// wait returns when there is room, or when ctx ends.
func (m *memory) wait(ctx context.Context) {
	for {
		m.mu.Lock()
		if m.used < m.limit {
			m.mu.Unlock()
			return
		}
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return
		}
	}
}

// join counts a stream, and leave ends that. The streams share half of the memory, so that those
// whose targets accept nothing do not stop the others. If these are so many that their shares are
// too small, they release their records while the memory is full (stream.yields).
func (m *memory) join() {
	m.mu.Lock()
	m.streams++
	m.mu.Unlock()
}

func (m *memory) leave() {
	m.mu.Lock()
	m.streams--
	m.mu.Unlock()
}

// share returns the bytes from which a stream pauses fetching.
func (m *memory) share() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(maxStreamBytes, max(minStreamBytes, m.limit/2/int64(max(1, m.streams))))
}

// Bounds of the records of one stream that wait to be handed over.
const (
	maxStreamRecords = 2000
	maxStreamBytes   = 4 << 20
	minStreamBytes   = 16 << 10
)
