package tracing

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	export "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"platform/internal/ids"
	"platform/internal/otlp"
	"platform/internal/stats"
)

// collector is a client that keeps what is uploaded.
type collector struct {
	spans []*spans.Span
	keep  bool
}

func (*collector) Start(context.Context) error { return nil }
func (*collector) Stop(context.Context) error  { return nil }

func (c *collector) UploadTraces(_ context.Context, of []*spans.ResourceSpans) error {
	raw, err := proto.Marshal(&export.ExportTraceServiceRequest{ResourceSpans: of})
	if err != nil || !c.keep {
		return err
	}
	var read export.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &read); err != nil {
		return err
	}
	c.spans = append(c.spans, read.ResourceSpans[0].ScopeSpans[0].Spans...)
	return nil
}

func noEnvironment() otlp.Settings {
	return otlp.Settings{Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)}
}

// newTest returns a tracer, and a function that closes it and returns what was uploaded.
func newTest(t testing.TB, ratio float64) (*Tracer, func() []*spans.Span) {
	c := &collector{keep: true}
	tracer, err := newTracer(t.Context(), &Settings{
		Ratio: &ratio, KeepSlow: time.Minute, Export: noEnvironment(),
	}, c)
	require.NoError(t, err)
	return tracer, func() []*spans.Span {
		require.NoError(t, tracer.Close())
		return c.spans
	}
}

// TestWithoutATracerNothingHappens calls everything on nil.
func TestWithoutATracerNothingHappens(t *testing.T) {
	var tracer *Tracer
	tracer.StartRequest("", "").End(&Invocation{}, "", 200, "")
	tracer.Started(&Invocation{})
	tracer.Ended(&Invocation{}, time.Time{}, time.Time{}, 0, "")
	a := tracer.StartAttempt(&Invocation{}, Endpoint{}, 0, time.Now())
	a.Command("", "", 0)
	a.RunEnded(0)
	a.End(stats.Failed, time.Now(), "", "", "")
	require.NoError(t, tracer.Close())
}

func TestTraceparentsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := link{sampled: rapid.Bool().Draw(t, "sampled")}
		binary.BigEndian.PutUint64(l.trace[:8], rapid.Uint64().Draw(t, "high"))
		binary.BigEndian.PutUint64(l.trace[8:], rapid.Uint64Min(1).Draw(t, "low"))
		binary.BigEndian.PutUint64(l.span[:], rapid.Uint64Min(1).Draw(t, "span"))
		got, ok := parse(l.traceparent())
		require.True(t, ok)
		require.Equal(t, l, got)
	})
	l, ok := parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0b")
	require.True(t, ok)
	require.True(t, l.sampled) // other flags do not matter
	for _, text := range []string{"", "00-", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"} {
		_, ok := parse(text)
		require.False(t, ok, text)
	}
}

// TestAShareOfTracesIsRecorded decides by the trace, so that all nodes make the same decision.
func TestAShareOfTracesIsRecorded(t *testing.T) {
	quarter, _ := newTest(t, 0.25)
	none, _ := newTest(t, 0)
	all, _ := newTest(t, 1)
	recorded := 0
	for range 10_000 {
		id := newTraceID()
		if quarter.samples(id) {
			recorded++
		}
		require.False(t, none.samples(id))
		require.True(t, all.samples(id))
	}
	require.InDelta(t, 2500, recorded, 400)
}

// TestSlowInvocationsAreKept records the start and the end of an invocation of a trace that
// is not recorded.
func TestSlowInvocationsAreKept(t *testing.T) {
	tracer, uploaded := newTest(t, 0)
	begin := time.Now()
	for i, took := range []time.Duration{time.Second, time.Minute} {
		tracer.Ended(&Invocation{ID: ids.Invocation{byte(i)}, Service: "S", Handler: "h"}, begin, begin.Add(took), 0, "")
	}
	spans := uploaded()
	require.Len(t, spans, 2)
	require.Equal(t, "invocation-start S/h", spans[0].Name)
	require.Equal(t, spans[0].SpanId, spans[1].ParentSpanId)
	require.Equal(t, bytesOf(spanOf(ids.Invocation{1})), spans[0].SpanId)
}

// TestInvocationsWithoutATraceHaveTheirOwn derives the trace from the ID, also for the calls
// of such an invocation.
func TestInvocationsWithoutATraceHaveTheirOwn(t *testing.T) {
	tracer, uploaded := newTest(t, 1)
	root, child := ids.Invocation{1}, ids.Invocation{2}
	tracer.Started(&Invocation{ID: root, Service: "A", Handler: "a"})
	tracer.Started(&Invocation{ID: child, Service: "B", Handler: "b", Caller: root})
	spans := uploaded()
	require.Len(t, spans, 2)
	of := traceOf(root)
	require.Equal(t, of[:], spans[0].TraceId)
	require.Empty(t, spans[0].ParentSpanId)
	require.Equal(t, of[:], spans[1].TraceId)
	require.Equal(t, bytesOf(spanOf(root)), spans[1].ParentSpanId)
}

// TestRecordsAreParentsOfTheirInvocations reads a record twice, in the trace of its producer, and
// one without a trace.
func TestRecordsAreParentsOfTheirInvocations(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracer, uploaded := newTest(t, 1)
	inv := &Invocation{ID: ids.Invocation{1}, Service: "S", Handler: "h", Traceparent: parent}
	first := tracer.Received(inv, &Record{Topic: "orders", Partition: 2, Offset: 7})
	require.Equal(t, first, tracer.Received(inv, &Record{Topic: "orders", Partition: 2, Offset: 7}))
	require.NotEqual(t, first, tracer.Received(inv, &Record{Topic: "orders", Partition: 2, Offset: 8}))
	own := tracer.Received(&Invocation{ID: ids.Invocation{2}, Service: "S", Handler: "h"}, &Record{Topic: "orders"})
	tracer.Started(&Invocation{ID: inv.ID, Service: "S", Handler: "h", Traceparent: first})
	var none *Tracer
	require.Equal(t, parent, none.Received(inv, &Record{}))
	spans := uploaded()
	require.Len(t, spans, 5)
	require.Equal(t, "receive orders", spans[0].Name)
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(spans[0].ParentSpanId))
	require.Equal(t, spans[0].SpanId, spans[1].SpanId)
	require.Empty(t, spans[3].ParentSpanId)
	require.Equal(t, own[3:35], hex.EncodeToString(spans[3].TraceId))
	require.Equal(t, spans[0].SpanId, spans[4].ParentSpanId)
}

// TestEventsOfAnAttemptAreBounded counts what is left out.
func TestEventsOfAnAttemptAreBounded(t *testing.T) {
	tracer, uploaded := newTest(t, 1)
	a := tracer.StartAttempt(&Invocation{ID: ids.Invocation{1}, Service: "S", Handler: "h"}, Endpoint{}, 0, time.Now())
	for i := range uint32(maxEvents + 5) {
		a.Command("Run", strings.Repeat("x", 1<<20), i)
	}
	a.End(stats.Succeeded, time.Now(), "", "", "")
	a.End(stats.Abandoned, time.Now(), "", "", "") // has no effect
	spans := uploaded()
	require.Len(t, spans, 1)
	require.Len(t, spans[0].Events, maxEvents)
	for _, e := range spans[0].Events {
		require.LessOrEqual(t, len(e.Attributes[2].Value.GetStringValue()), maxText)
	}
	require.Equal(t, uint32(5), spans[0].DroppedEventsCount)
}

func BenchmarkInvocation(b *testing.B) {
	one := 1.0
	tracer, err := newTracer(b.Context(), &Settings{Ratio: &one, Export: noEnvironment()}, &collector{})
	require.NoError(b, err)
	inv := &Invocation{ID: ids.Invocation{1}, Service: "Service", Handler: "handler"}
	b.ReportAllocs()
	for b.Loop() {
		r := tracer.StartRequest("", "127.0.0.1:1234")
		inv.Traceparent = r.Traceparent()
		tracer.Started(inv)
		a := tracer.StartAttempt(inv, Endpoint{Deployment: "dp_1", Address: "http://127.0.0.1:9080", Protocol: 6}, 0, time.Now())
		_ = a.Traceparent()
		a.Command("Output", "", 1)
		a.End(stats.Succeeded, time.Now(), "", "", "")
		now := time.Now()
		tracer.Ended(inv, now, now, 0, "")
		r.End(inv, "", 200, "")
	}
}

func bytesOf(id trace.SpanID) []byte { return id[:] }

// TestASlowCollectorCostsSpansOnly fills the queue while an upload hangs.
func TestASlowCollectorCostsSpansOnly(t *testing.T) {
	one := 1.0
	c := &hanging{released: make(chan struct{})}
	tracer, err := newTracer(t.Context(), &Settings{Ratio: &one, Export: noEnvironment()}, c)
	require.NoError(t, err)
	inv := &Invocation{ID: ids.Invocation{1}, Keyed: true, Key: strings.Repeat("long/", 1000)}
	for range 3 * otlp.MaxQueued {
		tracer.Started(inv)
	}
	full := tracer.queue.Counts()
	require.Positive(t, full.Dropped)
	require.LessOrEqual(t, full.WaitingSize, otlp.MaxQueuedSize)
	close(c.released)
	require.NoError(t, tracer.Close())
	n := tracer.queue.Counts()
	require.Equal(t, uint64(3*otlp.MaxQueued), n.Exported+n.Failed+n.Dropped)
}

// hanging is a collector that responds once it is released.
type hanging struct{ released chan struct{} }

func (*hanging) Start(context.Context) error { return nil }
func (*hanging) Stop(context.Context) error  { return nil }
func (h *hanging) UploadTraces(ctx context.Context, _ []*spans.ResourceSpans) error {
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestValid(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for text, want := range map[string]bool{
		good: true, "cc" + good[2:] + "-what-comes-later": true,
		"": false, "x": false, good + "-x": false, "ff" + good[2:]: false, strings.ToUpper(good): false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":   false,
		strings.Replace(good, "-", "_", 1):                          false,
		"cc" + good[2:] + "-a\r\nx: b":                              false,
		"cc" + good[2:] + "-\xff":                                   false,
		"cc" + good[2:] + "-" + strings.Repeat("a", maxTraceparent): false,
	} {
		require.Equal(t, want, Valid(text), text)
	}
}

// A sampler that does not follow the caller decides about requests and records alike.
func TestTheSamplerDecidesAboutRequestsAndRecords(t *testing.T) {
	const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sampler, want := range map[string]int{"always_off": 0, "parentbased_always_off": 2, "always_on": 2} {
		settings, c := noEnvironment(), &collector{keep: true}
		settings.Getenv = func(name string) string { return map[string]string{"OTEL_TRACES_SAMPLER": sampler}[name] }
		tracer, err := newTracer(t.Context(), &Settings{Export: settings}, c)
		require.NoError(t, err)
		request := tracer.StartRequest(sampled, "")
		request.End(&Invocation{}, "", 200, "")
		record := tracer.Received(&Invocation{Traceparent: sampled}, &Record{})
		require.Equal(t, request.Traceparent()[53:], record[53:], sampler)
		require.NoError(t, tracer.Close())
		require.Len(t, c.spans, want, sampler)
	}
}

// An invocation may be due in a million years.
func TestACancelledInvocationEndsWhenItWasCancelled(t *testing.T) {
	tracer, uploaded := newTest(t, 1)
	now := time.UnixMilli(time.Now().UnixMilli())
	for _, due := range []time.Time{now.Add(time.Hour), time.UnixMilli(math.MaxInt64)} {
		tracer.Ended(&Invocation{ID: ids.Invocation{1}}, due, now, 409, "canceled")
	}
	all := uploaded()
	require.Len(t, all, 2)
	for _, s := range all {
		require.EqualValues(t, now.UnixNano(), s.StartTimeUnixNano)
		require.EqualValues(t, now.UnixNano(), s.EndTimeUnixNano)
	}
}
