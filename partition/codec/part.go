package codec

import (
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// A partSize is how long a part probably is when encoded; only the number of digits
// of its length matters.
const partSize = 64

func (w *writer) target(field uint64, t *machine.Target) {
	n := w.open(field, partSize)
	w.string(1, t.Scope)
	w.string(2, t.Service)
	w.string(3, t.Key)
	w.string(4, t.Handler)
	w.uint(5, uint64(t.Type))
	w.closePart(n)
}

func readTarget(b []byte, t *machine.Target) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			t.Scope = r.string()
		case 2:
			t.Service = r.string()
		case 3:
			t.Key = r.string()
		case 4:
			t.Handler = r.string()
		case 5:
			t.Type = machine.TargetType(r.u8())
		default:
			r.unknown("target")
		}
	}
	return r.err
}

func (w *writer) source(field uint64, s *machine.Source) {
	n := w.open(field, partSize)
	w.uint(1, uint64(s.Kind))
	w.id(2, &s.Caller)
	w.string(3, s.CallerTarget)
	w.string(4, s.Subscription)
	w.closePart(n)
}

func readSource(b []byte, s *machine.Source) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			s.Kind = machine.SourceKind(r.u8())
		case 2:
			r.id(&s.Caller)
		case 3:
			s.CallerTarget = r.string()
		case 4:
			s.Subscription = r.string()
		default:
			r.unknown("source")
		}
	}
	return r.err
}

func (w *writer) sink(field uint64, s *machine.Sink) {
	n := w.open(field, partSize)
	w.id(1, &s.Caller)
	w.uint(2, uint64(s.Completion))
	w.uint(3, uint64(s.Type))
	w.uint(4, s.Life)
	w.close(n)
}

func readSink(b []byte, s *machine.Sink) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&s.Caller)
		case 2:
			s.Completion = r.u32()
		case 3:
			s.Type = journal.Type(r.u16())
		case 4:
			s.Life = r.u64()
		default:
			r.unknown("sink")
		}
	}
	return r.err
}

func (w *writer) pin(field uint64, p *machine.Pin) {
	n := w.open(field, partSize)
	w.string(1, string(p.Deployment))
	w.uint(2, uint64(p.Protocol))
	w.closePart(n)
}

func readPin(b []byte, p *machine.Pin) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			p.Deployment = ids.Deployment(r.string())
		case 2:
			p.Protocol = r.u8()
		default:
			r.unknown("pin")
		}
	}
	return r.err
}

func (w *writer) retention(field uint64, t machine.Retention) {
	n := w.open(field, partSize)
	w.int(1, t.Completion)
	w.int(2, t.Journal)
	w.closePart(n)
}

func readRetention(b []byte, t *machine.Retention) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			t.Completion = r.i64()
		case 2:
			t.Journal = r.i64()
		default:
			r.unknown("retention")
		}
	}
	return r.err
}

func (w *writer) trace(field uint64, t *machine.Trace) {
	n := w.open(field, partSize)
	w.string(1, t.Parent)
	w.string(2, t.State)
	w.closePart(n)
}

func readTrace(b []byte, t *machine.Trace) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			t.Parent = r.string()
		case 2:
			t.State = r.string()
		default:
			r.unknown("trace")
		}
	}
	return r.err
}

func (w *writer) result(field uint64, v *journal.Result) {
	n := w.open(field, len(v.Value)+8)
	w.bytes(1, v.Value)
	if v.Failure != nil {
		w.failure(2, v.Failure)
	}
	w.close(n)
}

func readResult(b []byte, v *journal.Result) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			v.Value = r.bytes()
		case 2:
			v.Failure = new(journal.Failure)
			into(&r, v.Failure, readFailure)
		default:
			r.unknown("result")
		}
	}
	return r.err
}

func (w *writer) failure(field uint64, f *journal.Failure) {
	n := w.open(field, len(f.Message)+partSize)
	w.uint(1, uint64(f.Code))
	w.string(2, f.Message)
	for i := range f.Metadata {
		m := w.open(3, partSize)
		w.string(1, f.Metadata[i].Key)
		w.string(2, f.Metadata[i].Value)
		w.close(m)
	}
	w.close(n)
}

func readFailure(b []byte, f *journal.Failure) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			f.Code = r.u32()
		case 2:
			f.Message = r.string()
		case 3:
			into(&r, more(&r, &f.Metadata), readMetadata)
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
		case 1:
			m.Key = r.string()
		case 2:
			m.Value = r.string()
		default:
			r.unknown("metadata")
		}
	}
	return r.err
}

func (w *writer) attemptFailure(field uint64, f *machine.AttemptFailure) {
	n := w.open(field, len(f.Message)+len(f.Stacktrace)+partSize)
	w.uint(1, uint64(f.Code))
	w.string(2, f.ErrorCode)
	w.string(3, f.Message)
	w.string(4, f.Stacktrace)
	if f.RelatedIndex != nil {
		w.presentUint(5, uint64(*f.RelatedIndex))
	}
	w.string(6, f.RelatedName)
	w.uint(7, uint64(f.RelatedCommand))
	w.close(n)
}

func readAttemptFailure(b []byte, f *machine.AttemptFailure) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			f.Code = r.u32()
		case 2:
			f.ErrorCode = r.string()
		case 3:
			f.Message = r.string()
		case 4:
			f.Stacktrace = r.string()
		case 5:
			f.RelatedIndex = new(r.u32())
		case 6:
			f.RelatedName = r.string()
		case 7:
			f.RelatedCommand = journal.Type(r.u16())
		default:
			r.unknown("attempt failure")
		}
	}
	return r.err
}
