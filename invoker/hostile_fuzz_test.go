package invoker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/attempts"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// hostile is an invocation whose endpoint sends the bytes of a fuzzer. There is no network, and the
// partition applies proposals only on request, so that everything but the session's clock happens
// in a fixed order.
type hostile struct {
	t       testing.TB
	session *Session
	shards  []*hostileShard // of the cluster; nil until something is sent to one
	self    uint32          // the partition of the invocation
	tables  *machinetest.State
	now     int64
	id      ids.Invocation
	schemas *metadata.Schemas
	lines   []*line // of the attempts, in order

	mu    sync.Mutex // guards queue: timers propose too
	queue []pending
}

// hostileShard is a partition. Only the invocation's own has a session.
type hostileShard struct {
	machine *machine.Machine
	tables  *machinetest.State
}

// pending is a command that a partition is going to apply.
type pending struct {
	to uint32
	proposal
}

// line is one attempt's stream.
type line struct {
	h       *hostile
	a       *attempt
	written []byte
	ended   bool // the request
	over    bool // the response is no longer read
}

func (w *line) Write(chunks ...[]byte) {
	if w.ended {
		w.h.t.Errorf("something was written behind the end of the request: %x", chunks)
	}
	for _, c := range chunks {
		w.written = append(w.written, c...)
	}
}

func (w *line) CloseWrite() { w.ended = true }
func (w *line) Finish()     { w.ended, w.over = true, true }
func (w *line) Reset()      { w.ended, w.over = true, true }

var hostileID = ids.NewInvocation(7, [16]byte{15: 1})

// Kinds of a hostile invocation: a number chooses version, mode, target, and whether
// there are several partitions.
const (
	hostileVersions = 3
	hostileModes    = 2 // bidirectional, request-response

	// hostileSpread is added to a kind for a cluster of several partitions.
	hostileSpread     = 30
	hostilePartitions = 3
)

var hostileTargets = []machine.Target{
	greeter, counter("obj"),
	{Service: "Counter", Key: "obj", Handler: "get", Type: target.ObjectShared},
	{Service: "Flow", Key: "wf", Handler: "run", Type: target.WorkflowRun},
	{Service: "Flow", Key: "wf", Handler: "peek", Type: target.WorkflowShared},
}

// hostileKind is below hostileSpread.
func hostileKind(v protocol.Version, bidirectional bool, target int) uint8 {
	mode := 0
	if !bidirectional {
		mode = 1
	}
	return uint8(int(v-protocol.V5) + hostileVersions*(mode+hostileModes*target))
}

// newHostile starts an invocation of a kind.
func newHostile(t testing.TB, kind uint8) *hostile {
	n, count := int(kind)%hostileSpread, uint32(1)
	if kind/hostileSpread%2 == 1 {
		count = hostilePartitions
	}
	h := &hostile{
		t: t, shards: make([]*hostileShard, count), self: machine.PartitionOf(hostileID.PartitionKey(), count), now: 1_700_000_000_000, id: hostileID,
		schemas: testSchemas("http://127.0.0.1:1/"),
	}
	h.tables = h.shard(h.self).tables
	d := h.schemas.Deployments[testDeployment]
	d.MaxProtocol = int32(protocol.V5) + int32(n%hostileVersions)
	d.Bidirectional = n/hostileVersions%hostileModes == 0
	cfg := DefaultConfig()
	cfg.EnableV7 = true
	cfg.MessageSizeLimit, cfg.MessageSizeWarning, cfg.ConcurrentInvocations = 16<<10, 0, 0
	cfg.Defaults.Retry.InitialInterval, cfg.Defaults.Retry.MaxInterval = time.Hour, time.Hour // until hastened
	random := uint64(0)
	cfg.Random = func() uint64 { random++; return random }
	iv := New(cfg, h, slog.New(slog.DiscardHandler))
	iv.open = func(r endpoint.Receiver) Stream {
		w := &line{h: h, a: r.(*attempt)}
		h.lines = append(h.lines, w)
		return w
	}
	h.session = iv.openSession(h)
	h.apply(pending{h.self, proposal{c: &machine.Invoke{
		ID: h.id, Target: hostileTargets[n/hostileVersions/hostileModes], Input: journal.NewInput(nil, []byte(`"hi"`)),
		Retention: machine.Retention{Completion: 3_600_000, Journal: 3_600_000},
	}}})
	return h
}

// shard is a partition that has a leader.
func (h *hostile) shard(i uint32) *hostileShard {
	if h.shards[i] == nil {
		h.shards[i] = &hostileShard{machine.New(machine.Shards{Self: i, Count: uint32(len(h.shards))}), machinetest.NewStrict()}
		h.apply(pending{i, proposal{c: &machine.Lead{Epoch: 1, Node: "n"}}})
	}
	return h.shards[i]
}

func (h *hostile) Schemas() *metadata.Schemas { return h.schemas }

func (h *hostile) Confirm(context.Context) error { return nil }

func (h *hostile) Propose(p *machine.Progress, done func(machine.Outcome, error)) {
	h.submit(h.self, p, done)
}

func (h *hostile) submit(to uint32, c machine.Command, done func(machine.Outcome, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, pending{to, proposal{c, done}})
}

func (h *hostile) Load(id ids.Invocation, attempt uint64, most int, stateLimit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	inv, err := h.tables.Invocation(id)
	if err == nil && (inv == nil || inv.Status != machine.Invoked || inv.Attempt != attempt) {
		err = attempts.ErrGone
	}
	if err == nil {
		_, err = stateLimit(inv)
	}
	if err != nil {
		return nil, err
	}
	r := &attempts.Replay{Invocation: inv}
	for i := range inv.Length {
		e, err := h.tables.Entry(id, i)
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, e)
	}
	r.State, r.Partial, err = h.State(inv.Target.Object(), 0)
	return r, err
}

func (h *hostile) State(o machine.Object, _ int) (entries []machine.StateEntry, partial bool, err error) {
	for e, err := range h.tables.Values(o) {
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	return entries, false, nil
}

func (h *hostile) ValueSize(o machine.Object, key []byte) (int, error) {
	value, _, err := h.tables.Value(o, key)
	return len(value), err
}

func (h *hostile) StateSizes(o machine.Object, visit func(key []byte, size int)) error {
	for e, err := range h.tables.Values(o) {
		if err != nil {
			return err
		}
		visit(e.Key, len(e.Value))
	}
	return nil
}

// pump applies what has been proposed, which may lead to more.
func (h *hostile) pump() {
	for {
		h.mu.Lock()
		queue := h.queue
		h.queue = nil
		h.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, p := range queue {
			h.apply(p)
		}
	}
}

// apply passes a proposal through the log: it is encoded, decoded and applied.
func (h *hostile) apply(p pending) {
	encoded, err := codec.EncodeCommand(feature.Supported(), p.c)
	if err != nil {
		h.t.Fatalf("encode %T: %v", p.c, err)
	}
	header, decoded, err := codec.Decode(codec.Seal(feature.Level1, 1, h.now, [][]byte{encoded}))
	if err != nil {
		h.t.Fatalf("decode %T: %v", p.c, err)
	}
	s := h.shard(p.to)
	outcome, effects, err := s.machine.Apply(s.tables, header, decoded[0], nil)
	if err != nil {
		h.t.Fatalf("apply %+v: %v", p.c, err)
	}
	if outcome.Code == machine.Invalid {
		h.t.Fatalf("the attempt let pass what the machine refuses: %+v", p.c)
	}
	h.check(s.tables)
	for _, e := range effects {
		h.carryOut(p.to, e)
	}
	if p.done != nil {
		p.done(outcome, nil)
	}
}

func (h *hostile) carryOut(of uint32, e machine.Effect) {
	switch e := e.(type) {
	case *machine.Run:
		if e.Invocation.ID == h.id {
			h.session.Run(e)
		}
	case *machine.Notify:
		h.session.Notify(e)
	case *machine.Abort:
		h.session.Abort(e)
	case *machine.Send:
		h.submit(e.To, &machine.Deliver{From: of, FirstSeq: e.Seq, Messages: []machine.Message{e.Message}}, func(machine.Outcome, error) {
			h.submit(of, &machine.Acknowledge{To: e.To, Upto: e.Seq}, nil)
		})
	}
}

// confused are the violations of invariants that a handler causes when it reuses a
// completion ID, or proposes a result for a command that is not a run. It corrupts only its
// own journal, which nothing else depends on, so the server permits it.
var confused = []string{
	"two commands have the completion ID", "no command requested", "the count of pending sleeps", "waits twice", "already has its result",
}

// check verifies the tables.
func (h *hostile) check(tables *machinetest.State) {
	found := tables.Broken(machinetest.Names{h.id: "self"})
	if len(found) > 0 && h.confusing() {
		found = slices.DeleteFunc(found, func(s string) bool {
			return slices.ContainsFunc(confused, func(of string) bool { return strings.Contains(s, of) })
		})
	}
	if len(found) > 0 {
		h.t.Fatalf("tables: %s", strings.Join(found, "\n"))
	}
}

// confusing reports whether the handler has made that mistake.
func (h *hostile) confusing() bool {
	inv, err := h.tables.Invocation(h.id)
	if err != nil || inv == nil {
		return false
	}
	asked := map[uint32]journal.Type{}
	for i := range inv.Length {
		e := h.entry(i)
		if e.Type == journal.RunCompletion {
			if n, err := journal.ParseNotification(e.Payload); err == nil && asked[n.ID.Index] != journal.Run {
				return true
			}
		}
		for _, id := range journal.CompletionsOf(e) {
			if asked[id] != 0 {
				return true
			}
			asked[id] = e.Type
		}
	}
	return false
}

// elapse advances the time by an hour and runs everything that is due.
func (h *hostile) elapse() {
	h.now += 3_600_000
	var due []machine.Timer
	for _, timer := range h.tables.Timers() {
		if timer.At <= h.now && timer.Kind == machine.TimerSleep {
			due = append(due, timer)
		}
	}
	h.apply(pending{h.self, proposal{c: &machine.FireTimers{Timers: due}}})
}

// running is the line of the attempt that is open; nil if there is none.
func (h *hostile) running() *line {
	if len(h.lines) == 0 {
		return nil
	}
	if w := h.lines[len(h.lines)-1]; !w.over {
		return w
	}
	return nil
}

// settle resolves proposals until the task is stable: it runs, waits for its next attempt, or is
// gone.
func (h *hostile) settle() {
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		h.pump()
		t := h.session.task(h.id)
		if t == nil {
			return
		}
		t.mu.Lock()
		rests := !t.state.settling() && t.pending == 0
		t.mu.Unlock()
		if rests {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the attempt neither ended nor waits for its endpoint")
		}
	}
}

// again begins the next attempt if one is due, and returns the one that runs.
func (h *hostile) again() *line {
	h.settle()
	if t := h.session.task(h.id); t != nil && h.running() == nil {
		h.session.Hasten(&machine.Hasten{ID: h.id, Attempt: t.number})
	}
	w := h.running()
	if w == nil {
		return nil
	}
	if w.a.plan == nil {
		if w.a.Begin() == nil {
			h.t.Fatalf("no attempt was made")
		}
	}
	return w
}

// respond is the head of an ordinary response.
func (w *line) respond() {
	w.a.Response(endpoint.Head{Status: 200, Header: http.Header{"Content-Type": {w.a.plan.version.ContentType()}}})
}

// send passes bytes, which belong to the caller again afterwards.
func (w *line) send(p []byte) {
	p = bytes.Clone(p)
	w.a.Data(p)
	for i := range p {
		p[i] = 0xa5
	}
}

// finish ends the response and checks that the attempt has ended.
func (w *line) finish(err error) {
	if !w.over {
		w.a.End(err)
	}
	w.h.settle()
	if w.h.running() == w {
		w.h.t.Fatalf("the attempt goes on behind the end of the response")
	}
}

// close checks what the endpoint was sent, and ends the session.
func (h *hostile) close() {
	for i, w := range h.lines {
		if w.a.plan != nil {
			w.checkWritten(i)
		}
	}
	for _, s := range h.shards {
		if s == nil {
			continue
		}
		if faults := s.tables.Faults(); len(faults) > 0 {
			h.t.Errorf("tables: %s", strings.Join(faults, "\n"))
		}
	}
	h.session.Close()
	h.session.iv.Close()
}

// checkWritten: the endpoint gets a start, the journal as it was, and then all
// notifications in order, up to some point.
func (w *line) checkWritten(i int) {
	d := protocol.Decoder{}
	d.Feed(w.written)
	var start protocol.Message
	next, known := uint32(0), 0
	for n := 0; ; n++ {
		m, ok, _ := d.Next()
		switch {
		case !ok && d.Partial():
			w.h.t.Fatalf("attempt %d: part of a message was written: %x", i, w.written)
		case !ok:
			return
		case n == 0:
			if start = m; m.Type != protocol.Start {
				w.h.t.Fatalf("attempt %d begins with %s", i, protocol.Name(m.Type))
			}
			known = knownOf(start.Payload)
			continue
		}
		e := w.h.entry(next)
		for n > known && e.Type.IsCommand() {
			next++
			e = w.h.entry(next)
		}
		next++
		acked := m.Type == protocol.ProposeRunCompletionAck && n > known && e.Type == journal.RunCompletion
		if !acked && (m.Type != e.Type || !bytes.Equal(m.Payload, e.Payload)) {
			w.h.t.Fatalf("attempt %d, message %d: %s %x where %s %x follows", i, n, protocol.Name(m.Type), m.Payload, e.Type, e.Payload)
		}
	}
}

func knownOf(start []byte) int {
	n, _ := binary.Uvarint(start[2+24+2+38+1:])
	return int(n)
}

func (h *hostile) entry(i uint32) journal.Entry {
	e, err := h.tables.Entry(h.id, i)
	if err != nil {
		h.t.Fatal(fmt.Errorf("the endpoint was told more than the journal holds: %w", err))
	}
	return e
}

// concat joins texts of messages in hex.
func concat(t testing.TB, messages ...string) []byte { return unhex(t, strings.Join(messages, "")) }
