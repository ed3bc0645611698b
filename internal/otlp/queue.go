package otlp

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/logsample"
)

// Bounds of what waits to be exported.
const (
	MaxQueued     = 16384    // items
	MaxQueuedSize = 16 << 20 // bytes
	batchSize     = 1024     // items of one request
	batchTime     = time.Second
	uploadTime    = 10 * time.Second
	closeTime     = 2 * time.Second
)

// Queue passes items to a collector, in batches. It is safe for concurrent use.
type Queue[T any] struct {
	signal  Signal
	upload  func(context.Context, []T) error
	sampler *logsample.Sampler[struct{}]
	log     *slog.Logger

	exported, failed, dropped atomic.Uint64

	mu     sync.Mutex // covers the fields below
	queue  []T
	items  int           // in the queue, or being exported
	size   int           // of these, in bytes
	wake   chan struct{} // a batch is full
	cancel context.CancelFunc
	done   chan struct{}
}

// NewQueue returns a queue whose items upload sends. Failures are logged once a minute.
func NewQueue[T any](signal Signal, upload func(context.Context, []T) error, log *slog.Logger) *Queue[T] {
	q := &Queue[T]{
		signal: signal, upload: upload, log: log, sampler: logsample.New[struct{}](1, time.Minute, 1),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel = cancel
	go q.run(ctx)
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
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// Counts are the items so far by outcome, and those that wait or are being exported.
type Counts struct {
	Exported, Failed, Dropped uint64
	Waiting, WaitingSize      int
}

// Counts returns the counts of a queue; of a nil *Queue all are 0.
func (q *Queue[T]) Counts() Counts {
	if q == nil {
		return Counts{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{
		Exported: q.exported.Load(), Failed: q.failed.Load(), Dropped: q.dropped.Load(), Waiting: q.items, WaitingSize: q.size,
	}
}

// run exports until ctx ends, and then what is still queued.
func (q *Queue[T]) run(ctx context.Context) {
	defer close(q.done)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	for {
		select {
		case <-q.wake:
		case <-tick.C:
		case <-ctx.Done():
			q.flush(ctx)
			return
		}
		q.flush(ctx)
	}
}

// flush exports what is queued. Once ctx has ended it takes closeTime at most.
func (q *Queue[T]) flush(ctx context.Context) {
	q.mu.Lock()
	queued, items, size := q.queue, q.items, q.size
	q.queue = nil
	q.mu.Unlock()
	if len(queued) == 0 {
		return
	}
	uploading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeTime, cancel) })()
	for len(queued) > 0 {
		n := min(len(queued), batchSize)
		q.export(uploading, queued[:n])
		queued = queued[n:]
	}
	q.mu.Lock()
	q.items, q.size = q.items-items, q.size-size
	q.mu.Unlock()
}

func (q *Queue[T]) export(ctx context.Context, batch []T) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	err := q.upload(ctx, batch)
	if err == nil {
		q.exported.Add(uint64(len(batch)))
		return
	}
	q.failed.Add(uint64(len(batch)))
	if held, admitted := q.sampler.Admit(struct{}{}, time.Now()); admitted {
		q.log.Warn("data could not be exported and is lost", "signal", q.signal, "items", len(batch), "similar_not_shown", held, "err", err)
	}
}

// Close exports what is queued, within a short time, and ends.
func (q *Queue[T]) Close() {
	q.cancel()
	<-q.done
}
