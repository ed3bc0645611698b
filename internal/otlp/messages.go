package otlp

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// chunkSize is the size of the messages of one request. Collectors accept requests of up to 4 MiB by
// default.
const chunkSize = 512 << 10

// Bounds of chunks.
const (
	reserve  = 16 << 10 // a message is begun only in a chunk with so much room; a larger one makes it grow
	maxSpare = 2        // chunks kept for reuse: one is filled while another is exported
)

// Messages passes encoded messages to a collector, as elements of a repeated field. It has the bounds of
// a Queue, but messages are encoded into the request that sends them: nothing is allocated or copied per
// message, and what waits has no pointers for the garbage collector to follow. It is safe for concurrent use.
type Messages struct {
	exporter
	field  protowire.Number
	upload func(ctx context.Context, encoded []byte) error

	mu     sync.Mutex // covers the fields below, and is held between Begin and End
	chunks []chunk    // of which messages are added to the last one
	spare  [][]byte   // empty
	items  int        // in chunks, or being exported
	size   int        // of these, in bytes
}

// chunk is the content of one request.
type chunk struct {
	encoded []byte
	items   int
}

// NewMessages returns a queue of messages for a field below 16. Upload sends encoded ones, which are
// valid until it returns. Log tells about failures, once a minute.
func NewMessages(signal Signal, field protowire.Number, upload func(ctx context.Context, encoded []byte) error, log *slog.Logger) *Messages {
	m := &Messages{exporter: newExporter(signal, log), field: field, upload: upload}
	m.start(m.flush)
	return m
}

// Begin returns the buffer to which the caller appends a message, and must pass to End; no other
// message can be added in between. It is false if the message is dropped, because too much waits.
func (m *Messages) Begin() (b []byte, ok bool) {
	m.mu.Lock()
	if m.items >= MaxQueued || m.size > MaxQueuedSize-reserve {
		m.mu.Unlock()
		m.dropped.Add(1)
		return nil, false
	}
	last := m.last()
	return append(last.encoded, byte(m.field)<<3|byte(protowire.BytesType), 0, 0), true // with two bytes for the length
}

// End completes the message that Begin began.
func (m *Messages) End(b []byte) {
	last := &m.chunks[len(m.chunks)-1]
	start := len(last.encoded) + 1 // of the length
	n := len(b) - start - 2
	if want := protowire.SizeVarint(uint64(n)); want == 2 { // the usual case
		b[start], b[start+1] = byte(n)|0x80, byte(n>>7)
	} else {
		b = slices.Replace(b, start, start+2, protowire.AppendVarint(nil, uint64(n))...)
	}
	m.items++
	m.size += len(b) - len(last.encoded)
	last.items++
	last.encoded = b
	full := len(b) > chunkSize-reserve
	m.mu.Unlock()
	if full {
		m.full()
	}
}

// last returns the chunk for the next message. The caller holds m.mu.
func (m *Messages) last() *chunk {
	if n := len(m.chunks); n > 0 && len(m.chunks[n-1].encoded) <= chunkSize-reserve {
		return &m.chunks[n-1]
	}
	var room []byte
	if n := len(m.spare); n > 0 {
		room, m.spare = m.spare[n-1], m.spare[:n-1]
	} else {
		room = make([]byte, 0, chunkSize)
	}
	m.chunks = append(m.chunks, chunk{encoded: room})
	return &m.chunks[len(m.chunks)-1]
}

// Counts returns the counts.
func (m *Messages) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts(m.items, m.size)
}

// flush exports what is queued.
func (m *Messages) flush(ctx context.Context) {
	m.mu.Lock()
	chunks := m.chunks
	m.chunks = nil
	m.mu.Unlock()
	for _, c := range chunks {
		m.export(ctx, c.items, func(ctx context.Context) error { return m.upload(ctx, c.encoded) })
		m.mu.Lock()
		m.items, m.size = m.items-c.items, m.size-len(c.encoded)
		if cap(c.encoded) == chunkSize && len(m.spare) < maxSpare {
			m.spare = append(m.spare, c.encoded[:0])
		}
		m.mu.Unlock()
	}
}
