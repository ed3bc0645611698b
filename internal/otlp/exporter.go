package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"platform/internal/logsample"
)

// Bounds of what waits to be exported.
const (
	MaxQueued     = 16384    // items
	MaxQueuedSize = 16 << 20 // bytes
	batchTime     = time.Second
	uploadTime    = 10 * time.Second
	closeTime     = 2 * time.Second
)

// Counts are the items so far by outcome, and those that wait or are being exported.
type Counts struct {
	Exported, Failed, Dropped uint64
	Waiting, WaitingSize      int
}

// exporter is the goroutine of a queue, which exports batches and counts their outcome.
type exporter struct {
	signal  Signal
	log     *slog.Logger
	sampler *logsample.Sampler[struct{}]

	exported, failed, dropped atomic.Uint64

	wake   chan struct{} // a batch is full
	cancel context.CancelFunc
	done   chan struct{}
}

func newExporter(signal Signal, log *slog.Logger) exporter {
	return exporter{
		signal: signal, log: log, sampler: logsample.New[struct{}](1, time.Minute, 1),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// start calls flush when a batch is full, every batchTime, and once more when it is closed. After
// that, the context of flush ends within closeTime.
func (e *exporter) start(flush func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	go func() {
		defer close(e.done)
		uploading, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(closeTime, stop) })()
		tick := time.NewTicker(batchTime)
		defer tick.Stop()
		for {
			select {
			case <-e.wake:
			case <-tick.C:
			case <-ctx.Done():
				flush(uploading)
				return
			}
			flush(uploading)
		}
	}()
}

// full tells the goroutine that there is a batch.
func (e *exporter) full() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// export uploads a batch of a number of items.
func (e *exporter) export(ctx context.Context, items int, upload func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	err := upload(ctx)
	if err == nil {
		e.exported.Add(uint64(items))
		return
	}
	e.failed.Add(uint64(items))
	if held, admitted := e.sampler.Admit(struct{}{}, time.Now()); admitted {
		e.log.Warn("data could not be exported and is lost", "signal", e.signal, "items", items, "similar_not_shown", held, "err", explained(err))
	}
}

// Close exports what is queued, within a short time, and ends.
func (e *exporter) Close() {
	e.cancel()
	<-e.done
}

// counts returns the counts, with what waits.
func (e *exporter) counts(items, size int) Counts {
	return Counts{Exported: e.exported.Load(), Failed: e.failed.Load(), Dropped: e.dropped.Load(), Waiting: items, WaitingSize: size}
}

// Texts of net/http for a server that sends data before the request, as HTTP/2 servers do: before and while the request is
// written.
const (
	unsolicited = "readLoopPeekFailLocked: %!w(<nil>)"
	ownClose    = "use of closed network connection"
)

// explained adds what errors mean that result from the wrong one of the two transports: a collector
// has a port for each.
func explained(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "error reading server preface"):
		return fmt.Errorf("%w; this port may expect OTLP over HTTP: see otlp+http in tracing-endpoint, or OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", err)
	case strings.Contains(text, "malformed HTTP response"), strings.Contains(text, unsolicited), strings.Contains(text, ownClose):
		return fmt.Errorf("%w; this port may expect OTLP over gRPC: see http in tracing-endpoint, or OTEL_EXPORTER_OTLP_PROTOCOL=grpc", err)
	default:
		return err
	}
}
