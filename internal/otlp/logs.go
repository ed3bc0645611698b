package otlp

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

// Bounds of one log record.
const (
	maxAttributes = 64
	maxText       = 8 << 10 // bytes of an attribute, as in the lines of the log
)

// traceIDKey is the attribute of log records that names the trace they belong to.
const traceIDKey = "trace_id"

// LogExport exports log records. A nil *LogExport exports none, and its methods may be called.
type LogExport struct {
	provider *sdk.LoggerProvider
	exporter sdk.Exporter
	queue    *queue[sdk.Record]
	log      *slog.Logger
}

// ExportLogs starts the export, or returns nil if the environment names no collector. It does
// not connect yet: if the collector cannot be reached, only exported records are lost.
func (s *Settings) ExportLogs(ctx context.Context) (*LogExport, error) {
	to, enabled, err := s.Transport(Logs)
	if err != nil || !enabled {
		return nil, err
	}
	about, err := s.Resource(ctx)
	if err != nil {
		return nil, err
	}
	exporter, err := newLogExporter(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("export logs: %w", err)
	}
	l := &LogExport{exporter: exporter, log: s.Log, queue: newQueue(Logs, exporter.Export, s.Log)}
	l.provider = sdk.NewLoggerProvider(sdk.WithResource(about), sdk.WithProcessor(processor{l.queue}),
		sdk.WithAttributeCountLimit(maxAttributes), sdk.WithAttributeValueLengthLimit(maxText))
	return l, nil
}

func newLogExporter(ctx context.Context, to Transport) (sdk.Exporter, error) {
	if to.HTTP {
		return otlploghttp.New(ctx)
	}
	return otlploggrpc.New(ctx)
}

// Handler returns what log records are passed to.
func (l *LogExport) Handler() slog.Handler {
	return otelslog.NewHandler("platform", otelslog.WithLoggerProvider(l.provider))
}

// Counts returns the records so far by outcome.
func (l *LogExport) Counts() Counts {
	if l == nil {
		return Counts{}
	}
	return l.queue.currentCounts()
}

// Close exports what is queued, within a short time, and ends.
func (l *LogExport) Close() {
	if l == nil {
		return
	}
	l.queue.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := l.exporter.Shutdown(ctx); err != nil {
		l.log.Warn("log records could not be exported when the server stopped", "err", err)
	}
}

// processor queues records. It replaces the SDK's batch processor, which neither bounds the
// bytes that wait nor reports how many records it drops.
type processor struct{ queue *queue[sdk.Record] }

// Enabled implements sdk.Processor: the logger filters records.
func (processor) Enabled(context.Context, sdk.EnabledParameters) bool { return true }

// OnEmit implements sdk.Processor.
func (p processor) OnEmit(_ context.Context, record *sdk.Record) error {
	size := 256 + len(record.Body().String())
	kept := record.Clone()
	record.WalkAttributes(func(a attribute.KeyValue) bool {
		size += 64 + len(a.Key) + len(a.Value.String())
		if a.Key == traceIDKey {
			if id, err := trace.TraceIDFromHex(a.Value.AsString()); err == nil {
				kept.SetTraceID(id)
			}
		}
		return true
	})
	p.queue.add(kept, size)
	return nil
}

// ForceFlush implements sdk.Processor. The queue is flushed by LogExport.Close.
func (processor) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdk.Processor.
func (processor) Shutdown(context.Context) error { return nil }
