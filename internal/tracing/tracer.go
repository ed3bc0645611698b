package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/ids"
	"platform/internal/otlp"
)

// Bounds of the time of an export.
const (
	uploadTime = 10 * time.Second
	closeTime  = 2 * time.Second
)

// Bounds of one span.
const (
	maxText   = 2 << 10 // bytes of an attribute
	maxEvents = 64
)

// Tracer records spans. A nil *Tracer records none, and all methods may be called on it.
type Tracer struct {
	client      otlptrace.Client
	queue       *otlp.Messages // encoded spans
	threshold   uint64         // of the random part of a trace ID, below which new traces are recorded
	all         bool           // record all new traces
	parentFirst bool           // the decision of the caller takes precedence
	keepFailed  bool
	keepSlow    time.Duration
}

// New returns a tracer, or nil if no endpoint is set. It does not connect yet: if the collector
// cannot be reached, only spans are lost.
func New(ctx context.Context, s Settings) (*Tracer, error) {
	where, enabled, err := s.transport()
	if err != nil || !enabled {
		return nil, err
	}
	client := newClient(where, s.Headers)
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("tracing-endpoint: export spans to %s: %w", s.Endpoint, err)
	}
	return newTracer(ctx, &s, client)
}

func newClient(to otlp.Transport, headers map[string]string) otlptrace.Client {
	if to.HTTP {
		options := []otlptracehttp.Option{otlptracehttp.WithTimeout(uploadTime)}
		if to.Endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(to.Endpoint))
		}
		if len(headers) > 0 {
			options = append(options, otlptracehttp.WithHeaders(headers))
		}
		return otlptracehttp.NewClient(options...)
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithTimeout(uploadTime)}
	if to.Endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(to.Endpoint))
	}
	if len(headers) > 0 {
		options = append(options, otlptracegrpc.WithHeaders(headers))
	}
	return otlptracegrpc.NewClient(options...)
}

func newTracer(ctx context.Context, s *Settings, client otlptrace.Client) (*Tracer, error) {
	ratio, parentFirst, err := s.sampler()
	if err != nil {
		return nil, err
	}
	about, err := s.Export.Resource(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tracer{parentFirst: parentFirst, keepFailed: s.KeepFailed, keepSlow: s.KeepSlow, all: ratio >= 1}
	if !t.all {
		t.threshold = uint64(ratio * math.MaxInt64)
	}
	t.client = client
	described, scope := resourceOf(about), &common.InstrumentationScope{Name: "platform"}
	t.queue = otlp.NewMessages(otlp.Traces, fieldScopeSpans, func(ctx context.Context, encoded []byte) error {
		of := &spans.ScopeSpans{Scope: scope}
		of.ProtoReflect().SetUnknown(encoded) // unknown fields of a message are sent as they are
		return client.UploadTraces(ctx, []*spans.ResourceSpans{{Resource: described, ScopeSpans: []*spans.ScopeSpans{of}}})
	}, s.Export.Log)
	return t, nil
}

// resourceOf converts the description of this node to that of the export protocol.
func resourceOf(r *sdk.Resource) *resource.Resource {
	about := &resource.Resource{}
	for _, a := range r.Attributes() {
		about.Attributes = append(about.Attributes, &common.KeyValue{
			Key: string(a.Key), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(a.Value.String())}},
		})
	}
	return about
}

// Close exports what is queued, within a short time.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	t.queue.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := t.client.Stop(ctx); err != nil {
		return fmt.Errorf("export the last spans: %w", err)
	}
	return nil
}

// samples decides whether to record a trace that begins here. All nodes make the same decision.
func (t *Tracer) samples(id trace.TraceID) bool {
	return t.all || binary.BigEndian.Uint64(id[8:])>>1 < t.threshold
}

// of returns the trace that an invocation belongs to, and the span that caused it: the
// invocation that called it, or the request that its traceparent names.
func (t *Tracer) of(id, caller ids.Invocation, traceparent string) link {
	l, ok := parse(traceparent)
	if !ok {
		origin := id
		if !caller.IsZero() {
			origin = caller
		}
		l = link{trace: traceOf(origin)}
		l.sampled = t.samples(l.trace)
	}
	if !caller.IsZero() {
		l.span = spanOf(caller)
	}
	return l
}

// keeps decides whether to record a span.
func (t *Tracer) keeps(sampled, failed bool, took time.Duration) bool {
	return sampled || failed && t.keepFailed || t.keepSlow > 0 && took >= t.keepSlow
}

func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], max(rand.Uint64(), 1))
	return id
}

func newTraceID() (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], max(rand.Uint64(), 1))
	return id
}
