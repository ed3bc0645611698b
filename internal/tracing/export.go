package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/logsample"
)

// Bounds of what waits to be exported: what does not fit is dropped and counted.
const (
	maxQueued     = 16384    // spans
	maxQueuedSize = 16 << 20 // bytes of their names, attributes and events
	batchSize     = 1024     // spans of one request
	batchTime     = time.Second
	uploadTime    = 10 * time.Second
	closeTime     = 2 * time.Second
)

// exporter sends spans to a collector, in batches.
type exporter struct {
	client  otlptrace.Client
	about   *resource.Resource
	sampler *logsample.Sampler[struct{}]
	log     *slog.Logger

	exported, failed, dropped atomic.Uint64 // spans

	mu     sync.Mutex // guards queue and size
	queue  []*spans.Span
	size   int
	wake   chan struct{} // a batch is full
	cancel context.CancelFunc
	done   chan struct{}
}

func newExporter(client otlptrace.Client, about *resource.Resource, log *slog.Logger) *exporter {
	e := &exporter{
		client: client, about: about, log: log, sampler: logsample.New[struct{}](1, time.Minute, 1),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	go e.run(ctx)
	return e
}

// add queues a span of about size bytes. It never blocks.
func (e *exporter) add(s *spans.Span, size int) {
	e.mu.Lock()
	if len(e.queue) >= maxQueued || e.size+size > maxQueuedSize {
		e.mu.Unlock()
		e.dropped.Add(1)
		return
	}
	e.queue = append(e.queue, s)
	e.size += size
	full := len(e.queue) == batchSize
	e.mu.Unlock()
	if full {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// run exports until ctx ends, and then what is still queued.
func (e *exporter) run(ctx context.Context) {
	defer close(e.done)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	for {
		select {
		case <-e.wake:
		case <-tick.C:
		case <-ctx.Done():
			e.flush(ctx)
			return
		}
		e.flush(ctx)
	}
}

// flush exports what is queued. Once ctx has ended it takes closeTime at most.
func (e *exporter) flush(ctx context.Context) {
	e.mu.Lock()
	queued := e.queue
	e.queue, e.size = nil, 0
	e.mu.Unlock()
	if len(queued) == 0 {
		return
	}
	uploading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeTime, cancel) })()
	for len(queued) > 0 {
		n := min(len(queued), batchSize)
		e.upload(uploading, queued[:n])
		queued = queued[n:]
	}
}

func (e *exporter) upload(ctx context.Context, batch []*spans.Span) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	err := e.client.UploadTraces(ctx, []*spans.ResourceSpans{{
		Resource:   e.about,
		ScopeSpans: []*spans.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "platform"}, Spans: batch}},
	}})
	if err == nil {
		e.exported.Add(uint64(len(batch)))
		return
	}
	e.failed.Add(uint64(len(batch)))
	if held, admitted := e.sampler.Admit(struct{}{}, time.Now()); admitted {
		e.log.Warn("spans could not be exported and are lost", "spans", len(batch), "similar_not_shown", held, "err", err)
	}
}

// close exports what is queued, within closeTime, and ends.
func (e *exporter) close() error {
	e.cancel()
	<-e.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return e.client.Stop(ctx)
}
