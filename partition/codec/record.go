package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

// AppendInvocation appends the record of an invocation to b.
func AppendInvocation(b []byte, inv *machine.Invocation) []byte {
	w := writer{b: b}
	w.fieldsBeforeResult(inv)
	if inv.Result != nil {
		w.result(fieldInvocationResult, inv.Result)
	}
	w.fieldsAfterResult(inv)
	return w.b
}

// AppendCompleted is like AppendInvocation, for a record whose result is a value: it
// returns what precedes and what follows the value, so that a large one is not copied.
func AppendCompleted(b []byte, inv *machine.Invocation) (head, tail []byte) {
	size := uint64(len(inv.Result.Value))
	w := writer{b: b}
	w.fieldsBeforeResult(inv)
	w.tag(fieldInvocationResult, protowire.BytesType)
	w.uvarint(1 + uint64(protowire.SizeVarint(size)) + size)
	w.tag(fieldResultValue, protowire.BytesType)
	w.uvarint(size)
	cut := len(w.b)
	w.fieldsAfterResult(inv)
	return w.b[:cut:cut], w.b[cut:]
}

// fieldsBeforeResult writes the fields of a record that precede its result.
func (w *writer) fieldsBeforeResult(inv *machine.Invocation) {
	w.id(fieldInvocationID, &inv.ID)
	w.target(fieldInvocationTarget, &inv.Target)
	w.uint(fieldInvocationStatus, uint64(inv.Status))
	w.source(fieldInvocationSource, &inv.Source)
	if inv.IdempotencyKey != nil {
		w.explicitString(fieldInvocationIdempotencyKey, *inv.IdempotencyKey)
	}
	w.string(fieldInvocationLimitKey, inv.LimitKey)
	w.trace(fieldInvocationTrace, &inv.Trace)
	w.retention(fieldInvocationRetention, inv.Retention)
	w.id(fieldInvocationRestartedFrom, &inv.RestartedFrom)
	w.string(fieldInvocationServerVersion, inv.ServerVersion)
	w.int(fieldInvocationCreatedAt, inv.CreatedAt)
	w.int(fieldInvocationModifiedAt, inv.ModifiedAt)
	w.int(fieldInvocationScheduledAt, inv.ScheduledAt)
	w.int(fieldInvocationInboxedAt, inv.InboxedAt)
	w.int(fieldInvocationRunningAt, inv.RunningAt)
	w.int(fieldInvocationCompletedAt, inv.CompletedAt)
	w.int(fieldInvocationStartAt, inv.StartAt)
	w.int(fieldInvocationProgressAt, inv.ProgressAt)
	w.uint(fieldInvocationAttempt, inv.Attempt)
	w.pin(fieldInvocationPin, &inv.Pin)
	w.uint(fieldInvocationLength, uint64(inv.Length))
	w.uint(fieldInvocationCommands, uint64(inv.Commands))
	w.uint(fieldInvocationOutput, uint64(inv.Output))
	w.uint(fieldInvocationSleeps, uint64(inv.Sleeps))
	if inv.Await != nil {
		w.future(fieldInvocationAwait, inv.Await)
	}
	w.uint(fieldInvocationQueueSeq, inv.QueueSeq)
	w.bool(fieldInvocationHoldsLock, inv.HoldsLock)
	for i := range inv.Sinks {
		w.sink(fieldInvocationSinks, &inv.Sinks[i])
	}
}

// fieldsAfterResult writes the fields of a record that follow its result.
func (w *writer) fieldsAfterResult(inv *machine.Invocation) {
	w.bool(fieldInvocationKilled, inv.Killed)
	if inv.Failure != nil {
		w.attemptFailure(fieldInvocationFailure, inv.Failure)
	}
	w.int(fieldInvocationExpiresAt, inv.ExpiresAt)
	w.uint(fieldInvocationRequest, inv.Request)
	w.uint(fieldInvocationLife, inv.Life)
	w.bool(fieldInvocationSignalled, inv.Signalled)
	w.uint(fieldInvocationSeen, uint64(inv.Seen))
	w.uint(fieldInvocationSeed, inv.Seed)
	for _, request := range inv.Requests {
		w.explicitUint(fieldInvocationRequests, request)
	}
	w.uint(fieldInvocationPriority, uint64(inv.Priority))
	if inv.Flow != nil {
		w.flow(fieldInvocationFlow, inv.Flow)
	}
	w.bool(fieldInvocationPausing, inv.Pausing)
	if inv.LastPause != nil {
		w.pauseRecord(fieldInvocationLastPause, inv.LastPause)
	}
	w.int(fieldInvocationCancelRequestedAt, inv.CancelRequestedAt)
	if inv.History != (machine.History{}) {
		w.history(fieldInvocationHistory, &inv.History)
	}
	for i := range inv.Causes {
		w.cause(fieldInvocationCauses, &inv.Causes[i])
	}
	w.uint(fieldInvocationSignalBytes, inv.SignalBytes)
	w.bool(fieldInvocationAwaitReduced, inv.AwaitReduced)
	w.bool(fieldInvocationResultInJournal, inv.ResultInJournal)
	if inv.Failed != (machine.FailedAttempts{}) {
		w.failedAttempts(fieldInvocationFailed, &inv.Failed)
	}
}

// DecodeInvocation decodes the record of an invocation, which aliases b.
func DecodeInvocation(b []byte) (*machine.Invocation, error) {
	inv := new(machine.Invocation)
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldInvocationID:
			r.id(&inv.ID)
		case fieldInvocationTarget:
			decodeInto(&r, &inv.Target, readTarget)
		case fieldInvocationStatus:
			inv.Status = machine.Status(r.u8())
		case fieldInvocationSource:
			decodeInto(&r, &inv.Source, readSource)
		case fieldInvocationIdempotencyKey:
			inv.IdempotencyKey = new(r.string())
		case fieldInvocationLimitKey:
			inv.LimitKey = r.string()
		case fieldInvocationTrace:
			decodeInto(&r, &inv.Trace, readTrace)
		case fieldInvocationRetention:
			decodeInto(&r, &inv.Retention, readRetention)
		case fieldInvocationRestartedFrom:
			r.id(&inv.RestartedFrom)
		case fieldInvocationServerVersion:
			inv.ServerVersion = r.string()
		case fieldInvocationCreatedAt:
			inv.CreatedAt = r.i64()
		case fieldInvocationModifiedAt:
			inv.ModifiedAt = r.i64()
		case fieldInvocationScheduledAt:
			inv.ScheduledAt = r.i64()
		case fieldInvocationInboxedAt:
			inv.InboxedAt = r.i64()
		case fieldInvocationRunningAt:
			inv.RunningAt = r.i64()
		case fieldInvocationCompletedAt:
			inv.CompletedAt = r.i64()
		case fieldInvocationStartAt:
			inv.StartAt = r.i64()
		case fieldInvocationProgressAt:
			inv.ProgressAt = r.i64()
		case fieldInvocationAttempt:
			inv.Attempt = r.u64()
		case fieldInvocationPin:
			decodeInto(&r, &inv.Pin, readPin)
		case fieldInvocationLength:
			inv.Length = r.u32()
		case fieldInvocationCommands:
			inv.Commands = r.u32()
		case fieldInvocationOutput:
			inv.Output = r.u32()
		case fieldInvocationSleeps:
			inv.Sleeps = r.u32()
		case fieldInvocationAwait:
			inv.Await = decodeNew(&r, readFuture)
		case fieldInvocationQueueSeq:
			inv.QueueSeq = r.u64()
		case fieldInvocationHoldsLock:
			inv.HoldsLock = r.bool()
		case fieldInvocationSinks:
			decodeInto(&r, grow(&r, &inv.Sinks), readSink)
		case fieldInvocationResult:
			inv.Result = decodeNew(&r, readResult)
		case fieldInvocationKilled:
			inv.Killed = r.bool()
		case fieldInvocationFailure:
			inv.Failure = decodeNew(&r, readAttemptFailure)
		case fieldInvocationExpiresAt:
			inv.ExpiresAt = r.i64()
		case fieldInvocationRequest:
			inv.Request = r.u64()
		case fieldInvocationLife:
			inv.Life = r.u64()
		case fieldInvocationSignalled:
			inv.Signalled = r.bool()
		case fieldInvocationSeen:
			inv.Seen = r.u32()
		case fieldInvocationSeed:
			inv.Seed = r.u64()
		case fieldInvocationRequests:
			*grow(&r, &inv.Requests) = r.u64()
		case fieldInvocationPriority:
			inv.Priority = r.u8()
		case fieldInvocationFlow:
			inv.Flow = decodeNew(&r, readFlow)
		case fieldInvocationPausing:
			inv.Pausing = r.bool()
		case fieldInvocationLastPause:
			inv.LastPause = decodeNew(&r, readPauseRecord)
		case fieldInvocationCancelRequestedAt:
			inv.CancelRequestedAt = r.i64()
		case fieldInvocationHistory:
			decodeInto(&r, &inv.History, readHistory)
		case fieldInvocationCauses:
			decodeInto(&r, grow(&r, &inv.Causes), readCause)
		case fieldInvocationSignalBytes:
			inv.SignalBytes = r.u64()
		case fieldInvocationAwaitReduced:
			inv.AwaitReduced = r.bool()
		case fieldInvocationResultInJournal:
			inv.ResultInJournal = r.bool()
		case fieldInvocationFailed:
			decodeInto(&r, &inv.Failed, readFailedAttempts)
		default:
			r.unknown("invocation")
		}
	}
	return decoded(inv, "invocation", r.err)
}

func (w *writer) pauseRecord(field protowire.Number, p *machine.PauseRecord) {
	n := w.open(field, sizeHint)
	w.uint(fieldPauseRecordCause, uint64(p.Cause))
	w.string(fieldPauseRecordBy, p.By)
	w.int(fieldPauseRecordAt, p.At)
	w.int(fieldPauseRecordResumedAt, p.ResumedAt)
	w.string(fieldPauseRecordReason, p.Reason)
	w.uint(fieldPauseRecordAttempts, uint64(p.Attempts))
	w.close(n)
}

func readPauseRecord(b []byte, p *machine.PauseRecord) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPauseRecordCause:
			p.Cause = machine.PauseCause(r.u8())
		case fieldPauseRecordBy:
			p.By = r.string()
		case fieldPauseRecordAt:
			p.At = r.i64()
		case fieldPauseRecordResumedAt:
			p.ResumedAt = r.i64()
		case fieldPauseRecordReason:
			p.Reason = r.string()
		case fieldPauseRecordAttempts:
			p.Attempts = r.u32()
		default:
			r.unknown("pause record")
		}
	}
	return r.err
}

// AppendEntry appends a journal entry to b.
func AppendEntry(b []byte, e *journal.Entry) []byte {
	w := writer{b: b}
	w.uint(fieldJournalEntryType, uint64(e.Type))
	w.int(fieldJournalEntryAppendedAt, e.AppendedAt)
	w.bytes(fieldJournalEntryPayload, e.Payload)
	return w.b
}

// EntrySize returns how many bytes AppendEntry appends.
func EntrySize(e *journal.Entry) int {
	var head [32]byte
	return len(AppendEntryHead(head[:0], e)) + len(e.Payload)
}

// AppendEntryHead is like AppendEntry without the bytes of the payload, which follow, so
// that a large one is not copied.
func AppendEntryHead(b []byte, e *journal.Entry) []byte {
	w := writer{b: b}
	w.uint(fieldJournalEntryType, uint64(e.Type))
	w.int(fieldJournalEntryAppendedAt, e.AppendedAt)
	if n := len(e.Payload); n != 0 {
		w.tag(fieldJournalEntryPayload, protowire.BytesType)
		w.uvarint(uint64(n))
	}
	return w.b
}

// DecodeEntry decodes a journal entry, whose payload aliases b.
func DecodeEntry(b []byte) (e journal.Entry, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldJournalEntryType:
			e.Type = journal.Type(r.u16())
		case fieldJournalEntryAppendedAt:
			e.AppendedAt = r.i64()
		case fieldJournalEntryPayload:
			e.Payload = r.bytes()
		default:
			r.unknown("journal entry")
		}
	}
	return decoded(e, "journal entry", r.err)
}

// AppendLock appends the record of a lock to b.
func AppendLock(b []byte, l machine.Lock) []byte {
	w := writer{b: b}
	w.id(fieldLockHolder, &l.Holder)
	w.uint(fieldLockHead, l.Head)
	w.uint(fieldLockTail, l.Tail)
	return w.b
}

// DecodeLock decodes the record of a lock.
func DecodeLock(b []byte) (l machine.Lock, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldLockHolder:
			r.id(&l.Holder)
		case fieldLockHead:
			l.Head = r.u64()
		case fieldLockTail:
			l.Tail = r.u64()
		default:
			r.unknown("lock")
		}
	}
	return decoded(l, "lock", r.err)
}

// AppendPromise appends the record of a promise to b.
func AppendPromise(b []byte, p machine.Promise) []byte {
	w := writer{b: b}
	if p.Result != nil {
		w.result(fieldPromiseResult, p.Result)
	}
	for i := range p.Waiting {
		w.sink(fieldPromiseWaiting, &p.Waiting[i])
	}
	return w.b
}

// DecodePromise decodes the record of a promise, which aliases b.
func DecodePromise(b []byte) (p machine.Promise, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPromiseResult:
			p.Result = decodeNew(&r, readResult)
		case fieldPromiseWaiting:
			decodeInto(&r, grow(&r, &p.Waiting), readSink)
		default:
			r.unknown("promise")
		}
	}
	return decoded(p, "promise", r.err)
}

// AppendMessage appends a message between partitions to b.
func AppendMessage(b []byte, m machine.Message) ([]byte, error) {
	w := writer{b: b}
	err := w.message(m)
	return w.b, err
}

// DecodeMessage decodes a message between partitions, which aliases b.
func DecodeMessage(b []byte) (machine.Message, error) {
	var m machine.Message
	err := readMessage(b, &m)
	return decoded(m, "message", err)
}

// Meta is the metadata record of a partition: that of the machine, and the index and term of
// the last log entry applied to the tables.
type Meta struct {
	machine.Meta
	Index, Term uint64
}

// AppendMeta appends the metadata record of a partition to b.
func AppendMeta(b []byte, m *Meta) []byte {
	w := writer{b: b}
	w.uint(fieldMetaEpoch, m.Epoch)
	w.int(fieldMetaClock, m.Clock)
	w.uint(fieldMetaAttempt, m.Attempt)
	w.uint(fieldMetaAppliedIndex, m.Index)
	w.uint(fieldMetaAppliedTerm, m.Term)
	w.uint(fieldMetaRules, uint64(m.Rules))
	w.bool(fieldMetaFlow, m.Flow)
	w.uint(fieldMetaLevel, uint64(m.Level))
	w.uint(fieldMetaReevaluation, uint64(m.Reevaluation))
	return w.b
}

// DecodeMeta decodes the metadata record of a partition.
func DecodeMeta(b []byte) (m Meta, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldMetaEpoch:
			m.Epoch = r.u64()
		case fieldMetaClock:
			m.Clock = r.i64()
		case fieldMetaAttempt:
			m.Attempt = r.u64()
		case fieldMetaAppliedIndex:
			m.Index = r.u64()
		case fieldMetaAppliedTerm:
			m.Term = r.u64()
		case fieldMetaRules:
			m.Rules = r.u32()
		case fieldMetaFlow:
			m.Flow = r.bool()
		case fieldMetaLevel:
			m.Level = feature.Level(r.u32())
		case fieldMetaReevaluation:
			m.Reevaluation = machine.Reevaluation(r.u8())
		default:
			r.unknown("meta")
		}
	}
	return decoded(m, "meta", r.err)
}

// decoded returns v, or the zero value and err with the name of the record.
func decoded[T any](v T, record string, err error) (T, error) {
	if err != nil {
		return *new(T), fmt.Errorf("decode %s: %w", record, err)
	}
	return v, nil
}
