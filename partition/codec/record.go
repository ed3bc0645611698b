package codec

import (
	"fmt"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

// AppendInvocation appends the record of an invocation to b.
func AppendInvocation(b []byte, inv *machine.Invocation) []byte {
	w := writer{b: b}
	w.beforeResult(inv)
	if inv.Result != nil {
		w.result(29, inv.Result)
	}
	w.afterResult(inv)
	return w.b
}

// AppendCompleted is AppendInvocation for a record whose result is a value, without
// the bytes of the value, which belong between head and tail: large ones need not be
// copied.
func AppendCompleted(b []byte, inv *machine.Invocation) (head, tail []byte) {
	size := uint64(len(inv.Result.Value))
	w := writer{b: b}
	w.beforeResult(inv)
	w.tag(29, wireBytes)
	w.uvarint(1 + uint64(uvarintLen(size)) + size)
	w.tag(1, wireBytes)
	w.uvarint(size)
	cut := len(w.b)
	w.afterResult(inv)
	return w.b[:cut:cut], w.b[cut:]
}

// beforeResult writes the fields of a record up to its result.
func (w *writer) beforeResult(inv *machine.Invocation) {
	w.id(1, &inv.ID)
	w.target(2, &inv.Target)
	w.uint(3, uint64(inv.Status))
	w.source(4, &inv.Source)
	if inv.IdempotencyKey != nil {
		w.present(5, *inv.IdempotencyKey)
	}
	w.string(6, inv.LimitKey)
	w.trace(7, &inv.Trace)
	w.retention(8, inv.Retention)
	w.id(9, &inv.RestartedFrom)
	w.string(10, inv.ServerVersion)
	w.int(11, inv.CreatedAt)
	w.int(12, inv.ModifiedAt)
	w.int(13, inv.ScheduledAt)
	w.int(14, inv.InboxedAt)
	w.int(15, inv.RunningAt)
	w.int(16, inv.CompletedAt)
	w.int(17, inv.StartAt)
	w.int(18, inv.ProgressAt)
	w.uint(19, inv.Attempt)
	w.pin(20, &inv.Pin)
	w.uint(21, uint64(inv.Length))
	w.uint(22, uint64(inv.Commands))
	w.uint(23, uint64(inv.Output))
	w.uint(24, uint64(inv.Sleeps))
	if inv.Await != nil {
		w.future(25, inv.Await)
	}
	w.uint(26, inv.QueueSeq)
	w.bool(27, inv.HoldsLock)
	for i := range inv.Sinks {
		w.sink(28, &inv.Sinks[i])
	}
}

// afterResult writes the fields of a record behind its result.
func (w *writer) afterResult(inv *machine.Invocation) {
	w.bool(30, inv.Killed)
	if inv.Failure != nil {
		w.attemptFailure(31, inv.Failure)
	}
	w.int(32, inv.ExpiresAt)
	w.uint(33, inv.Request)
	w.uint(34, inv.Life)
	w.bool(35, inv.Signalled)
	w.uint(36, uint64(inv.Seen))
	w.uint(37, inv.Seed)
	for _, request := range inv.Requests {
		w.presentUint(38, request)
	}
	w.uint(39, uint64(inv.Priority))
	if inv.Flow != nil {
		w.flow(40, inv.Flow)
	}
	w.bool(41, inv.Pausing)
}

// DecodeInvocation reads the record of an invocation, which points into b.
func DecodeInvocation(b []byte) (*machine.Invocation, error) {
	inv := new(machine.Invocation)
	r := reader{b: b}
	for r.next() {
		switch {
		case r.field <= 10:
			readCaller(&r, inv)
		case r.field <= 18:
			readTimes(&r, inv)
		default:
			readProgressOf(&r, inv)
		}
	}
	return checked(inv, "invocation", r.err)
}

// readCaller reads what the invocation was made with.
func readCaller(r *reader, inv *machine.Invocation) {
	switch r.field {
	case 1:
		r.id(&inv.ID)
	case 2:
		into(r, &inv.Target, readTarget)
	case 3:
		inv.Status = machine.Status(r.u8())
	case 4:
		into(r, &inv.Source, readSource)
	case 5:
		inv.IdempotencyKey = new(r.string())
	case 6:
		inv.LimitKey = r.string()
	case 7:
		into(r, &inv.Trace, readTrace)
	case 8:
		into(r, &inv.Retention, readRetention)
	case 9:
		r.id(&inv.RestartedFrom)
	case 10:
		inv.ServerVersion = r.string()
	default:
		r.unknown("invocation")
	}
}

func readTimes(r *reader, inv *machine.Invocation) {
	switch r.field {
	case 11:
		inv.CreatedAt = r.i64()
	case 12:
		inv.ModifiedAt = r.i64()
	case 13:
		inv.ScheduledAt = r.i64()
	case 14:
		inv.InboxedAt = r.i64()
	case 15:
		inv.RunningAt = r.i64()
	case 16:
		inv.CompletedAt = r.i64()
	case 17:
		inv.StartAt = r.i64()
	case 18:
		inv.ProgressAt = r.i64()
	default:
		r.unknown("invocation")
	}
}

// readProgressOf reads how far the invocation has come.
func readProgressOf(r *reader, inv *machine.Invocation) {
	switch r.field {
	case 19:
		inv.Attempt = r.u64()
	case 20:
		into(r, &inv.Pin, readPin)
	case 21:
		inv.Length = r.u32()
	case 22:
		inv.Commands = r.u32()
	case 23:
		inv.Output = r.u32()
	case 24:
		inv.Sleeps = r.u32()
	case 25:
		inv.Await = one(r, readFuture)
	case 26:
		inv.QueueSeq = r.u64()
	case 27:
		inv.HoldsLock = r.bool()
	case 28:
		into(r, more(r, &inv.Sinks), readSink)
	case 29:
		inv.Result = one(r, readResult)
	case 30:
		inv.Killed = r.bool()
	case 31:
		inv.Failure = one(r, readAttemptFailure)
	case 32:
		inv.ExpiresAt = r.i64()
	case 33:
		inv.Request = r.u64()
	case 34:
		inv.Life = r.u64()
	case 35:
		inv.Signalled = r.bool()
	case 36:
		inv.Seen = r.u32()
	case 37:
		inv.Seed = r.u64()
	case 38:
		*more(r, &inv.Requests) = r.u64()
	case 39:
		inv.Priority = r.u8()
	case 40:
		inv.Flow = one(r, readFlow)
	case 41:
		inv.Pausing = r.bool()
	default:
		r.unknown("invocation")
	}
}

// AppendEntry appends a journal entry to b.
func AppendEntry(b []byte, e *journal.Entry) []byte {
	w := writer{b: b}
	w.uint(1, uint64(e.Type))
	w.int(2, e.AppendedAt)
	w.bytes(3, e.Payload)
	return w.b
}

// EntrySize is how many bytes AppendEntry adds.
func EntrySize(e *journal.Entry) int {
	var head [32]byte
	return len(AppendEntryHead(head[:0], e)) + len(e.Payload)
}

// AppendEntryHead appends what AppendEntry does but the bytes of the payload, which
// come behind it: large ones need not be copied.
func AppendEntryHead(b []byte, e *journal.Entry) []byte {
	w := writer{b: b}
	w.uint(1, uint64(e.Type))
	w.int(2, e.AppendedAt)
	if n := len(e.Payload); n != 0 {
		w.tag(3, wireBytes)
		w.uvarint(uint64(n))
	}
	return w.b
}

// DecodeEntry reads a journal entry, whose payload points into b.
func DecodeEntry(b []byte) (e journal.Entry, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			e.Type = journal.Type(r.u16())
		case 2:
			e.AppendedAt = r.i64()
		case 3:
			e.Payload = r.bytes()
		default:
			r.unknown("journal entry")
		}
	}
	return checked(e, "journal entry", r.err)
}

// AppendLock appends the record of a lock to b.
func AppendLock(b []byte, l machine.Lock) []byte {
	w := writer{b: b}
	w.id(1, &l.Holder)
	w.uint(2, l.Head)
	w.uint(3, l.Tail)
	return w.b
}

// DecodeLock reads the record of a lock.
func DecodeLock(b []byte) (l machine.Lock, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&l.Holder)
		case 2:
			l.Head = r.u64()
		case 3:
			l.Tail = r.u64()
		default:
			r.unknown("lock")
		}
	}
	return checked(l, "lock", r.err)
}

// AppendPromise appends the record of a promise to b.
func AppendPromise(b []byte, p machine.Promise) []byte {
	w := writer{b: b}
	if p.Result != nil {
		w.result(1, p.Result)
	}
	for i := range p.Waiting {
		w.sink(2, &p.Waiting[i])
	}
	return w.b
}

// DecodePromise reads the record of a promise, which points into b.
func DecodePromise(b []byte) (p machine.Promise, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			p.Result = one(&r, readResult)
		case 2:
			into(&r, more(&r, &p.Waiting), readSink)
		default:
			r.unknown("promise")
		}
	}
	return checked(p, "promise", r.err)
}

// AppendMessage appends a message between partitions to b.
func AppendMessage(b []byte, m machine.Message) ([]byte, error) {
	w := writer{b: b}
	err := w.message(m)
	return w.b, err
}

// DecodeMessage reads a message between partitions, which points into b.
func DecodeMessage(b []byte) (machine.Message, error) {
	var m machine.Message
	err := readMessage(b, &m)
	return checked(m, "message", err)
}

// Meta is the stored form of a partition's own record: what the machine keeps, and
// the log entry that the tables contain everything up to.
type Meta struct {
	machine.Meta
	Index, Term uint64
}

// AppendMeta appends a partition's own record to b.
func AppendMeta(b []byte, m *Meta) []byte {
	w := writer{b: b}
	w.uint(1, m.Epoch)
	w.int(2, m.Clock)
	w.uint(3, m.Attempt)
	w.uint(4, m.Index)
	w.uint(5, m.Term)
	w.uint(6, uint64(m.Rules))
	w.bool(7, m.Flow)
	w.uint(8, uint64(m.Level))
	return w.b
}

// DecodeMeta reads a partition's own record.
func DecodeMeta(b []byte) (m Meta, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			m.Epoch = r.u64()
		case 2:
			m.Clock = r.i64()
		case 3:
			m.Attempt = r.u64()
		case 4:
			m.Index = r.u64()
		case 5:
			m.Term = r.u64()
		case 6:
			m.Rules = r.u32()
		case 7:
			m.Flow = r.bool()
		case 8:
			m.Level = feature.Level(r.u32())
		default:
			r.unknown("meta")
		}
	}
	return checked(m, "meta", r.err)
}

// checked is the value, or the zero value and what was wrong with the record.
func checked[T any](v T, record string, err error) (T, error) {
	if err != nil {
		return *new(T), fmt.Errorf("decode %s: %w", record, err)
	}
	return v, nil
}
