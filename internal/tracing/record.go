package tracing

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/ids"
)

// Record is a record of a topic that becomes an invocation.
type Record struct {
	Subscription, Topic string
	Partition           int32
	Offset              int64
	Time                time.Time // according to the record
}

// Received records that a record was read, and returns the trace context of its invocation:
// inv.Traceparent, that of the record, on a nil Tracer. A record that is read again has the same
// span ID.
func (t *Tracer) Received(inv *Invocation, r *Record) (traceparent string) {
	if t == nil {
		return inv.Traceparent
	}
	parent := t.of(inv.ID, inv.Caller, inv.Traceparent)
	if !t.parentFirst {
		parent.sampled = t.samples(parent.trace)
	}
	self := link{trace: parent.trace, span: recordSpanOf(inv.ID, r), sampled: parent.sampled}
	if parent.sampled {
		now := time.Now()
		s, ok := t.begin(&head{kind: spans.Span_SPAN_KIND_CONSUMER, id: self.span, parent: parent, start: now, end: now, what: "receive", of: r.Topic})
		if !ok {
			return self.traceparent()
		}
		s.about(inv)
		s.linked() // to the producer, as well as below it
		s.text("messaging.system", "kafka")
		s.text("messaging.operation.type", "receive")
		s.text("messaging.destination.name", r.Topic)
		s.text("messaging.destination.partition.id", strconv.Itoa(int(r.Partition)))
		s.number("messaging.kafka.offset", r.Offset)
		s.number("messaging.kafka.timestamp", r.Time.UnixMilli())
		s.text("platform.subscription.id", r.Subscription)
		t.record(&s)
	}
	return self.traceparent()
}

// recordSpanOf is the ID of the span of a record. Records with the same key start the same
// workflow, so the ID of the invocation alone does not identify them.
func recordSpanOf(id ids.Invocation, r *Record) (s trace.SpanID) {
	b := binary.BigEndian.AppendUint32(append(id[:], r.Topic...), uint32(r.Partition))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Offset))
	binary.BigEndian.PutUint64(s[:], max(xxh3.HashSeed(b, recordSeed), 1))
	return s
}
