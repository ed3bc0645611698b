package otlp

import (
	"context"
	"log/slog"
	"sync"
)

// batchSize is the number of items of one request.
const batchSize = 1024

// queue passes items to a collector, in batches. It is safe for concurrent use.
type queue[T any] struct {
	exporter
	upload func(context.Context, []T) error

	mu    sync.Mutex // covers the fields below
	queue []T
	items int // in the queue, or being exported
	size  int // of these, in bytes
}

// newQueue returns a queue whose items upload sends. Failures are logged once a minute.
func newQueue[T any](signal Signal, upload func(context.Context, []T) error, log *slog.Logger) *queue[T] {
	q := &queue[T]{exporter: newExporter(signal, log), upload: upload}
	q.start(q.flush)
	return q
}

// add queues an item of about size bytes. It never blocks: what does not fit is dropped.
func (q *queue[T]) add(item T, size int) {
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

// currentCounts returns the counts of a queue; of a nil *queue all are 0.
func (q *queue[T]) currentCounts() Counts {
	if q == nil {
		return Counts{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts(q.items, q.size)
}

// flush exports what is queued.
func (q *queue[T]) flush(ctx context.Context) {
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
