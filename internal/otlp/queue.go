package otlp

import (
	"context"
	"log/slog"
	"sync"
)

// batchSize is the number of items of one request.
const batchSize = 1024

// Queue passes items to a collector, in batches. It is safe for concurrent use.
type Queue[T any] struct {
	exporter
	upload func(context.Context, []T) error

	mu    sync.Mutex // covers the fields below
	queue []T
	items int // in the queue, or being exported
	size  int // of these, in bytes
}

// NewQueue returns a queue whose items upload sends. Failures are logged once a minute.
func NewQueue[T any](signal Signal, upload func(context.Context, []T) error, log *slog.Logger) *Queue[T] {
	q := &Queue[T]{exporter: newExporter(signal, log), upload: upload}
	q.start(q.flush)
	return q
}

// Add queues an item of about size bytes. It never blocks: what does not fit is dropped.
func (q *Queue[T]) Add(item T, size int) {
	q.mu.Lock()
	if q.items >= MaxQueued || q.size+size > MaxQueuedSize {
		q.mu.Unlock()
		q.dropped.Add(1)
		return
	}
	q.queue = append(q.queue, item)
	q.items++
	q.size += size
	full := len(q.queue) == batchSize
	q.mu.Unlock()
	if full {
		q.full()
	}
}

// Counts returns the counts of a queue; of a nil *Queue all are 0.
func (q *Queue[T]) Counts() Counts {
	if q == nil {
		return Counts{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts(q.items, q.size)
}

// flush exports what is queued.
func (q *Queue[T]) flush(ctx context.Context) {
	q.mu.Lock()
	queued, items, size := q.queue, q.items, q.size
	q.queue = nil
	q.mu.Unlock()
	for len(queued) > 0 {
		batch := queued[:min(len(queued), batchSize)]
		q.export(ctx, len(batch), func(ctx context.Context) error { return q.upload(ctx, batch) })
		queued = queued[len(batch):]
	}
	q.mu.Lock()
	q.items, q.size = q.items-items, q.size-size
	q.mu.Unlock()
}
