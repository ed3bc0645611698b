package invoker

import (
	"net/http"

	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// plan is what is decided before an attempt starts.
type plan struct {
	pin           machine.Pin
	version       protocol.Version
	route         *route
	options       metadata.EffectiveOptions
	bidirectional bool
	stateLimit    int // bytes of state to send; 0: none
}

// plan chooses the deployment (that of the first stored progress, otherwise the latest) and
// the protocol version.
func (iv *Invoker) plan(inv *machine.Invocation, pin machine.Pin) (*plan, error) {
	schemas := iv.registry.Schemas()
	d, service, err := deploymentOf(schemas, inv, pin)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if p.version, err = chooseVersion(protocol.ServerRange(iv.cfg.EnableV7), d, pin); err != nil {
		return nil, err
	}
	p.pin = machine.Pin{Deployment: d.ID, Protocol: uint8(p.version)}
	if p.route, err = iv.routes.get(d); err != nil {
		return nil, errcode.New(errcode.RT0010, "deployment %s: %w", d.ID, err)
	}
	p.options = metadata.Effective(service.Handler(inv.Target.Handler), service, iv.defaults.Load())
	p.bidirectional = d.Bidirectional && p.options.InactivityTimeout > 0
	if inv.Target.Type.Keyed() && !p.options.EnableLazyState {
		p.stateLimit = iv.cfg.EagerStateLimit
	}
	return p, nil
}

func deploymentOf(schemas *metadata.Schemas, inv *machine.Invocation, pin machine.Pin) (*metadata.Deployment, *metadata.Service, error) {
	if pin.Deployment != "" {
		return schemas.Pinned(pin.Deployment, inv.Target.Service)
	}
	return schemas.Latest(inv.Target.Service)
}

func chooseVersion(server protocol.Range, d *metadata.Deployment, pin machine.Pin) (protocol.Version, error) {
	offered := protocol.Range{Min: d.MinProtocol, Max: d.MaxProtocol}
	if pin.Protocol == 0 {
		v, err := protocol.Choose(server, offered)
		if err != nil {
			return 0, errcode.New(errcode.RT0013, "deployment %s: %w", d.ID, err)
		}
		return v, nil
	}
	v := protocol.Version(pin.Protocol)
	if !server.Contains(v) || !offered.Contains(v) {
		return 0, errcode.New(errcode.RT0014,
			"the invocation started with service protocol %d; deployment %s speaks %s, the server %s", v, d.ID, offered, server)
	}
	return v, nil
}

// smallPayload is the size up to which payloads are copied into one chunk; larger ones are
// sent without copying.
const smallPayload = 4 << 10

// replay encodes the start and the whole journal.
func (p *plan) replay(r *attempts.Replay, retry *retryState) [][]byte {
	inv := r.Invocation
	start := protocol.StartInfo{
		Version: p.version, ID: inv.ID, KnownEntries: uint32(len(r.Entries)), Key: inv.Target.Key,
		State: r.State, PartialState: r.Partial || p.stateLimit == 0,
		RandomSeed:     inv.RandomSeed(),
		RetryCount:     retry.sinceEntry,
		IdempotencyKey: inv.IdempotencyKey, Scope: inv.Target.Scope, LimitKey: inv.LimitKey,
	}
	if retry.sinceEntry > 0 { // only used after a failed attempt
		start.SinceLastEntry = sinceLastEntry(r)
	}
	b := protocol.AppendStart(make([]byte, 0, replaySize(r)), &start)
	var chunks [][]byte
	for i := range r.Entries {
		chunks, b = splitEntry(chunks, b, p.wire(&r.Entries[i]))
	}
	return append(chunks, b)
}

// wire converts an entry to the endpoint's protocol version.
func (p *plan) wire(e *journal.Entry) *journal.Entry {
	if p.version >= protocol.V6 || !e.Type.IsNotification() {
		return e
	}
	return &journal.Entry{Type: e.Type, AppendedAt: e.AppendedAt, Payload: protocol.ForVersion(p.version, e.Payload)}
}

// replaySize returns the size of the start and the copied entries.
func replaySize(r *attempts.Replay) int {
	n := 160 + len(r.Invocation.Target.Key)
	for i := range r.State {
		n += len(r.State[i].Key) + len(r.State[i].Value) + 16
	}
	for i := range r.Entries {
		n += protocol.HeaderLen
		if size := len(r.Entries[i].Payload); size <= smallPayload {
			n += size
		}
	}
	return n
}

// splitEntry appends an entry to b, or closes b and adds the payload as a chunk.
func splitEntry(chunks [][]byte, b []byte, e *journal.Entry) ([][]byte, []byte) {
	b = protocol.AppendHeader(b, e.Type, len(e.Payload))
	if len(e.Payload) <= smallPayload {
		return chunks, append(b, e.Payload...)
	}
	return append(chunks, b, e.Payload), b[len(b):]
}

// appendEntry appends an entry as chunks.
func appendEntry(b []byte, chunks [][]byte, e *journal.Entry) [][]byte {
	chunks, b = splitEntry(chunks, b, e)
	return append(chunks, b)
}

// sinceLastEntry returns the age of the journal's last change in milliseconds, 0 if it is unknown.
func sinceLastEntry(r *attempts.Replay) uint64 {
	changed := r.Invocation.ProgressAt
	if changed == 0 {
		changed = r.Entries[len(r.Entries)-1].AppendedAt
	}
	if changed == 0 {
		return 0
	}
	return uint64(max(r.ReadAt-changed, 0))
}

// maxHeaderKey is the length up to which keys are sent in a header, where they are only
// informational: the start contains them too. Endpoints reject long headers.
const maxHeaderKey = 1 << 10

// request returns the head of the attempt's request, with a trace context unless that is empty.
func (p *plan) request(inv *machine.Invocation, traceparent string) *endpoint.Request {
	static := p.route.headers[p.version]
	h := make(http.Header, len(static)+6)
	for name, values := range static {
		h[name] = values
	}
	p.route.add(h, "x-restate-invocation-id", inv.ID.String())
	if key := inv.Target.Key; inv.Target.Type.Keyed() && len(key) <= maxHeaderKey {
		p.route.add(h, "x-restate-service-key", escapeKey(key))
	}
	if traceparent != "" {
		p.route.add(h, "traceparent", traceparent)
		if inv.Trace.State != "" {
			p.route.add(h, "tracestate", inv.Trace.State)
		}
	}
	if inv.Trace.Baggage != "" {
		p.route.add(h, "baggage", inv.Trace.Baggage)
	}
	path := "/invoke/" + inv.Target.Service + "/" + inv.Target.Handler
	p.route.sign(h, path, inv.Target.Key)
	return &endpoint.Request{Address: p.route.addr, Method: http.MethodPost, Path: p.route.addr.Path(path), Header: h}
}

// escapeKey escapes all bytes of a key except letters, digits and "-_.~".
func escapeKey(key string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(key))
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
