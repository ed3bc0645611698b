package kafka

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/subscription"
	"platform/internal/target"
	"platform/internal/tracing"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// unusable describes why a record cannot become an invocation.
type unusable struct {
	reason  subscription.Reason
	message string
	room    *room // the space among the dead letters that it waits for; nil if it does not wait
}

func (u *unusable) Error() string { return string(u.reason) + ": " + u.message }

func bad(reason subscription.Reason, format string, args ...any) *unusable {
	return &unusable{reason: reason, message: fmt.Sprintf(format, args...)}
}

// converter makes invocations from records of a subscription.
type converter struct {
	sub *subscription.Subscription
	cfg *Config
}

// current returns the routing according to the subscription and the registry.
func (c *converter) current() (routing, *unusable) {
	_, handler, err := c.cfg.Source.Schemas().Resolve(c.sub.Service, c.sub.Handler)
	if err != nil {
		return routing{}, bad(subscription.HandlerNotFound, "%v", err)
	}
	return routing{
		Service: c.sub.Service, Handler: c.sub.Handler, Type: handler.Type, Scope: c.sub.Scope.String(), LimitKey: c.sub.LimitKey.String(),
		scope: c.sub.Scope, limitKey: c.sub.LimitKey,
	}, nil
}

// runLength is the number of consecutive offsets of a service without keys that go to the same
// partition: few large commands instead of many small ones.
const runLength = 32

// convert returns the partition that a record goes to, and its invocation.
func (c *converter) convert(stream *machine.Stream, r *routing, rec *kgo.Record) (uint32, machine.IngestRecord, *unusable) {
	out := machine.IngestRecord{Offset: rec.Offset}
	options, u := c.handler(r.Service, r.Handler)
	if u != nil {
		return 0, out, u
	}
	if len(rec.Value) > c.cfg.RecordSize {
		return 0, out, bad(subscription.RecordTooLarge, "the value has %d bytes, the limit is %d", len(rec.Value), c.cfg.RecordSize)
	}
	if len(rec.Headers) > limits.Pairs {
		return 0, out, bad(subscription.RecordTooLarge, "the record has %d headers, the limit is %d", len(rec.Headers), limits.Pairs)
	}
	inv := &out.Invoke
	inv.Target = machine.Target{Service: r.Service, Handler: r.Handler, Type: r.Type}
	if u := c.key(inv, rec); u != nil {
		return 0, out, u
	}
	if u := c.scope(inv, r, rec); u != nil {
		return 0, out, u
	}
	inv.ID = invocationID(stream, &inv.Target, rec.Offset)
	inv.Input = journal.NewInput(c.headers(inv, rec), rec.Value)
	if len(inv.Input) > limits.Message+1<<20 {
		return 0, out, bad(subscription.RecordTooLarge, "value, key and headers have %d bytes together, the limit is %d", len(inv.Input), limits.Message+1<<20)
	}
	inv.Source = machine.Source{Kind: machine.FromSubscription, Subscription: c.sub.ID}
	inv.Retention = machine.RetentionOf(options.Retention(r.Type, false))
	inv.ServerVersion = c.cfg.Version
	c.trace(inv, rec)
	return machine.PartitionOf(inv.ID.PartitionKey(), c.cfg.Partitions.Count()), out, nil
}

// handler returns the settings of a handler, if it can be called.
func (c *converter) handler(service, name string) (options metadata.EffectiveOptions, u *unusable) {
	schemas := c.cfg.Source.Schemas()
	svc, handler, err := schemas.Resolve(service, name)
	if err != nil {
		return options, bad(subscription.HandlerNotFound, "%v", err)
	}
	options = metadata.Effective(handler, svc, c.cfg.Defaults())
	if !options.Public {
		return options, bad(subscription.HandlerNotFound, "the handler %s/%s is not public: only other services can call it", service, name)
	}
	if d := schemas.Deployments[svc.Deployment]; d != nil && d.Deprecated() {
		return options, bad(subscription.HandlerNotFound, "service %s is served by a deployment that speaks a deprecated version of the service protocol: upgrade its SDK and register it again", service)
	}
	return options, nil
}

// trace records the span of a record, which becomes the parent of the invocation.
func (c *converter) trace(inv *machine.Invoke, rec *kgo.Record) {
	t := &inv.Target
	inv.Trace.Parent = c.cfg.Tracer.Received(
		&tracing.Invocation{ID: inv.ID, Service: t.Service, Handler: t.Handler, Keyed: t.Type.Keyed(), Key: t.Key, Traceparent: inv.Trace.Parent},
		&tracing.Record{Subscription: c.sub.ID, Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Time: rec.Timestamp})
}

// key sets the key of an object or workflow.
func (c *converter) key(inv *machine.Invoke, rec *kgo.Record) *unusable {
	if !inv.Target.Type.Keyed() {
		return nil
	}
	switch {
	case len(rec.Key) == 0:
		return bad(subscription.KeyMissing, "the record has no key, which would be the key of %s", inv.Target.Service)
	case len(rec.Key) > limits.Key:
		return bad(subscription.KeyTooLarge, "the key has %d bytes, the limit is %d", len(rec.Key), limits.Key)
	case !utf8.Valid(rec.Key):
		return bad(subscription.KeyNotUTF8, "the key is not UTF-8, as the keys of %s are", inv.Target.Service)
	}
	inv.Target.Key = string(rec.Key)
	return nil
}

// scope sets scope and limit key.
func (c *converter) scope(inv *machine.Invoke, r *routing, rec *kgo.Record) *unusable {
	if r.scope.IsZero() {
		return nil
	}
	if !c.cfg.FlowControl {
		return bad(subscription.InvalidScope, "the subscription has a scope, but flow control is off on this cluster: see experimental-enable-vqueues")
	}
	text := recordText{rec}
	scope, err := r.scope.Expand(text)
	if err != nil {
		return bad(subscription.InvalidScope, "%v", err)
	}
	if flowcontrol.CheckScope(scope) != nil {
		return bad(subscription.InvalidScope, "what %s stands for is not a scope: it has %d bytes, expected 1 to %d of A-Z, a-z, 0-9, '_', '.' and '-'", r.Scope, len(scope), flowcontrol.MaxPartBytes)
	}
	inv.Target.Scope = scope
	if r.limitKey.IsZero() {
		return nil
	}
	limitKey, err := r.limitKey.Expand(text)
	if err != nil {
		return bad(subscription.InvalidLimitKey, "%v", err)
	}
	if _, err := flowcontrol.ParseLimitKey(limitKey); err != nil {
		return bad(subscription.InvalidLimitKey, "what %s stands for is not a limit key: it has %d bytes, expected one or two parts, separated by '/', of 1 to %d of A-Z, a-z, 0-9, '_', '.' and '-'", r.LimitKey, len(limitKey), flowcontrol.MaxPartBytes)
	}
	inv.LimitKey = limitKey
	return nil
}

// invocationID returns the ID of the invocation of a record, the same at each attempt.
func invocationID(stream *machine.Stream, t *machine.Target, offset int64) ids.Invocation {
	if t.Type == target.WorkflowRun {
		return ids.OfWorkflow(t.Scope, t.Service, t.Key)
	}
	b := make([]byte, 0, 128)
	b = append(append(b, "record,"...), stream.Subscription...)
	b = binary.BigEndian.AppendUint64(append(b, 0), stream.Incarnation)
	b = append(b, stream.TopicID[:]...)
	b = append(append(b, stream.Topic...), 0)
	b = binary.BigEndian.AppendUint32(b, stream.Partition)
	route := uint64(0)
	if t.Scope != "" || t.Type.Keyed() {
		route = ids.Route(t.Scope, t.Key)
	} else {
		run := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(offset/runLength)))
		route = binary.BigEndian.Uint64(run[:])
	}
	unique := sha256.Sum256(binary.BigEndian.AppendUint64(append(b, 1), uint64(offset)))
	return ids.NewInvocation(route, [16]byte(unique[:16]))
}

// headers returns the headers that the handler receives, and copies the trace context to the
// invocation.
func (c *converter) headers(inv *machine.Invoke, rec *kgo.Record) []journal.Header {
	headers := make([]journal.Header, 0, 8+len(rec.Headers))
	add := func(name, value string) { headers = append(headers, journal.Header{Key: name, Value: value}) }
	add(subscription.TopicHeader, rec.Topic)
	add(subscription.PartHeader, itoa(int64(rec.Partition)))
	add(subscription.OffsetHeader, itoa(rec.Offset))
	add(subscription.TimeHeader, itoa(rec.Timestamp.UnixMilli()))
	if rec.Key != nil {
		add(subscription.KeyHeader, base64.URLEncoding.EncodeToString(rec.Key))
	}
	if rec.Value == nil {
		add(subscription.NullHeader, "true")
	}
	add(subscription.IDHeader, c.sub.ID)
	add(subscription.IDHeaderPeer, c.sub.ID)
	var baggage []string
	for i := range rec.Headers {
		h := &rec.Headers[i]
		switch {
		case strings.EqualFold(h.Key, "baggage"):
			baggage = append(baggage, string(h.Value[:min(len(h.Value), maxBaggageRead)]))
		case len(h.Value) > maxTrace: // the limit of the input does not cover the trace
		case strings.EqualFold(h.Key, "traceparent") && tracing.Valid(string(h.Value)):
			inv.Trace.Parent = string(h.Value)
		case strings.EqualFold(h.Key, "tracestate") && printable(h.Value):
			inv.Trace.State = string(h.Value)
		}
		name, ok := subscription.HeaderName(h.Key)
		if !ok || !c.sub.WantsHeader(h.Key) {
			continue
		}
		if printable(h.Value) {
			add(name, string(h.Value))
		} else {
			add(name+base64Suffix, base64.URLEncoding.EncodeToString(h.Value))
		}
	}
	if inv.Trace.Parent == "" {
		inv.Trace.State = ""
	}
	inv.Trace.Baggage = tracing.Baggage(baggage)
	return headers
}

// maxTrace bounds traceparent and tracestate; 512 bytes are what W3C trace context requires.
const maxTrace = 2 << 10

// maxBaggageRead bounds what is parsed of a header with baggage; less of it is kept.
const maxBaggageRead = 64 << 10

// base64Suffix ends the name of a header whose value is encoded because it is not printable.
const base64Suffix = ".base64"

// printable reports whether a value can be that of a header: UTF-8 without control characters.
func printable(value []byte) bool {
	return utf8.Valid(value) && bytes.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}

// recordText is a record for templates.
type recordText struct{ rec *kgo.Record }

func (t recordText) Topic() string    { return t.rec.Topic }
func (t recordText) Partition() int32 { return t.rec.Partition }
func (t recordText) Key() []byte      { return t.rec.Key }

// Header returns the value of the last header with a name.
func (t recordText) Header(name string) (value []byte, ok bool) {
	for i := range t.rec.Headers {
		if strings.EqualFold(t.rec.Headers[i].Key, name) {
			value, ok = t.rec.Headers[i].Value, true
		}
	}
	return value, ok
}

// detached returns a copy of a record that does not share memory with the batch it came in.
func detached(rec *kgo.Record) *kgo.Record {
	c := *rec
	c.Key, c.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
	c.Headers = make([]kgo.RecordHeader, len(rec.Headers))
	for i, h := range rec.Headers {
		c.Headers[i] = kgo.RecordHeader{Key: strings.Clone(h.Key), Value: bytes.Clone(h.Value)}
	}
	return &c
}

// recordBytes is the memory that a record takes.
func recordBytes(rec *kgo.Record) int64 {
	n := 256 + len(rec.Key) + len(rec.Value)
	for i := range rec.Headers {
		n += 48 + len(rec.Headers[i].Key) + len(rec.Headers[i].Value)
	}
	return int64(n)
}
