package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

// sizeHint is the assumed size of a submessage; it matters only how many bytes its length
// prefix takes.
const sizeHint = 64

func (w *writer) target(field protowire.Number, t *machine.Target) {
	n := w.open(field, sizeHint)
	w.string(fieldTargetScope, t.Scope)
	w.string(fieldTargetService, t.Service)
	w.string(fieldTargetKey, t.Key)
	w.string(fieldTargetHandler, t.Handler)
	w.uint(fieldTargetType, uint64(t.Type))
	w.closeNonEmpty(n)
}

func readTarget(b []byte, t *machine.Target) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldTargetScope:
			t.Scope = r.string()
		case fieldTargetService:
			t.Service = r.string()
		case fieldTargetKey:
			t.Key = r.string()
		case fieldTargetHandler:
			t.Handler = r.string()
		case fieldTargetType:
			t.Type = target.Type(r.u8())
		default:
			r.unknown("target")
		}
	}
	return r.err
}

func (w *writer) source(field protowire.Number, s *machine.Source) {
	n := w.open(field, sizeHint)
	w.uint(fieldSourceKind, uint64(s.Kind))
	w.id(fieldSourceCaller, &s.Caller)
	w.string(fieldSourceCallerTarget, s.CallerTarget)
	w.string(fieldSourceSubscription, s.Subscription)
	w.closeNonEmpty(n)
}

func readSource(b []byte, s *machine.Source) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldSourceKind:
			s.Kind = machine.SourceKind(r.u8())
		case fieldSourceCaller:
			r.id(&s.Caller)
		case fieldSourceCallerTarget:
			s.CallerTarget = r.string()
		case fieldSourceSubscription:
			s.Subscription = r.string()
		default:
			r.unknown("source")
		}
	}
	return r.err
}

func (w *writer) sink(field protowire.Number, s *machine.Sink) {
	n := w.open(field, sizeHint)
	w.id(fieldSinkCaller, &s.Caller)
	w.uint(fieldSinkCompletion, uint64(s.Completion))
	w.uint(fieldSinkType, uint64(s.Type))
	w.uint(fieldSinkLife, s.Life)
	w.close(n)
}

func readSink(b []byte, s *machine.Sink) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldSinkCaller:
			r.id(&s.Caller)
		case fieldSinkCompletion:
			s.Completion = r.u32()
		case fieldSinkType:
			s.Type = journal.Type(r.u16())
		case fieldSinkLife:
			s.Life = r.u64()
		default:
			r.unknown("sink")
		}
	}
	return r.err
}

func (w *writer) pin(field protowire.Number, p *machine.Pin) {
	n := w.open(field, sizeHint)
	w.string(fieldPinDeployment, string(p.Deployment))
	w.uint(fieldPinProtocol, uint64(p.Protocol))
	w.closeNonEmpty(n)
}

func readPin(b []byte, p *machine.Pin) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPinDeployment:
			p.Deployment = ids.Deployment(r.string())
		case fieldPinProtocol:
			p.Protocol = r.u8()
		default:
			r.unknown("pin")
		}
	}
	return r.err
}

func (w *writer) retention(field protowire.Number, t machine.Retention) {
	n := w.open(field, sizeHint)
	w.int(fieldRetentionCompletion, t.Completion)
	w.int(fieldRetentionJournal, t.Journal)
	w.closeNonEmpty(n)
}

func readRetention(b []byte, t *machine.Retention) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRetentionCompletion:
			t.Completion = r.i64()
		case fieldRetentionJournal:
			t.Journal = r.i64()
		default:
			r.unknown("retention")
		}
	}
	return r.err
}

func (w *writer) trace(field protowire.Number, t *machine.Trace) {
	n := w.open(field, sizeHint)
	w.string(fieldTraceParent, t.Parent)
	w.string(fieldTraceState, t.State)
	if t.Baggage != "" {
		w.require(feature.Level4, "baggage")
		w.string(fieldTraceBaggage, t.Baggage)
	}
	w.closeNonEmpty(n)
}

func readTrace(b []byte, t *machine.Trace) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldTraceParent:
			t.Parent = r.string()
		case fieldTraceState:
			t.State = r.string()
		case fieldTraceBaggage:
			t.Baggage = r.string()
		default:
			r.unknown("trace")
		}
	}
	return r.err
}

func (w *writer) result(field protowire.Number, v *journal.Result) {
	n := w.open(field, len(v.Value)+8)
	w.bytes(fieldResultValue, v.Value)
	if v.Failure != nil {
		w.failure(fieldResultFailure, v.Failure)
	}
	w.close(n)
}

func readResult(b []byte, v *journal.Result) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldResultValue:
			v.Value = r.bytes()
		case fieldResultFailure:
			v.Failure = decodeNew(&r, readFailure)
		default:
			r.unknown("result")
		}
	}
	return r.err
}

func (w *writer) failure(field protowire.Number, f *journal.Failure) {
	n := w.open(field, len(f.Message)+sizeHint)
	w.uint(fieldFailureCode, uint64(f.Code))
	w.string(fieldFailureMessage, f.Message)
	for i := range f.Metadata {
		m := w.open(fieldFailureMetadata, sizeHint)
		w.string(fieldMetadataKey, f.Metadata[i].Key)
		w.string(fieldMetadataValue, f.Metadata[i].Value)
		w.close(m)
	}
	w.close(n)
}

func readFailure(b []byte, f *journal.Failure) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldFailureCode:
			f.Code = r.u32()
		case fieldFailureMessage:
			f.Message = r.string()
		case fieldFailureMetadata:
			decodeInto(&r, grow(&r, &f.Metadata), readMetadata)
		default:
			r.unknown("failure")
		}
	}
	return r.err
}

func readMetadata(b []byte, m *journal.Metadata) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldMetadataKey:
			m.Key = r.string()
		case fieldMetadataValue:
			m.Value = r.string()
		default:
			r.unknown("metadata")
		}
	}
	return r.err
}

func (w *writer) attemptFailure(field protowire.Number, f *machine.AttemptFailure) {
	n := w.open(field, len(f.Message)+len(f.Stacktrace)+sizeHint)
	w.uint(fieldAttemptFailureCode, uint64(f.Code))
	w.string(fieldAttemptFailureErrorCode, f.ErrorCode)
	w.string(fieldAttemptFailureMessage, f.Message)
	w.string(fieldAttemptFailureStacktrace, f.Stacktrace)
	if f.RelatedIndex != nil {
		w.explicitUint(fieldAttemptFailureRelatedIndex, uint64(*f.RelatedIndex))
	}
	w.string(fieldAttemptFailureRelatedName, f.RelatedName)
	w.uint(fieldAttemptFailureRelatedCommand, uint64(f.RelatedCommand))
	w.close(n)
}

func readAttemptFailure(b []byte, f *machine.AttemptFailure) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldAttemptFailureCode:
			f.Code = r.u32()
		case fieldAttemptFailureErrorCode:
			f.ErrorCode = r.string()
		case fieldAttemptFailureMessage:
			f.Message = r.string()
		case fieldAttemptFailureStacktrace:
			f.Stacktrace = r.string()
		case fieldAttemptFailureRelatedIndex:
			f.RelatedIndex = new(r.u32())
		case fieldAttemptFailureRelatedName:
			f.RelatedName = r.string()
		case fieldAttemptFailureRelatedCommand:
			f.RelatedCommand = journal.Type(r.u16())
		default:
			r.unknown("attempt failure")
		}
	}
	return r.err
}
