package codec

import (
	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

func (w *writer) lead(c *machine.Lead) {
	w.uint(1, c.Epoch)
	w.string(2, c.Node)
	w.bool(3, c.Flow)
}

func readLead(b []byte, c *machine.Lead) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.Epoch = r.u64()
		case 2:
			c.Node = r.string()
		case 3:
			c.Flow = r.bool()
		default:
			r.unknown("lead")
		}
	}
	return r.err
}

// invoke is both a command and a message.
func (w *writer) invoke(field uint64, c *machine.Invoke) {
	n := w.open(field, len(c.Input)+128)
	w.id(1, &c.ID)
	w.target(2, &c.Target)
	w.bytes(3, c.Input)
	w.source(4, &c.Source)
	if c.Sink != nil {
		w.sink(5, c.Sink)
	}
	if c.IdempotencyKey != nil {
		w.present(6, *c.IdempotencyKey)
	}
	w.string(7, c.LimitKey)
	w.trace(8, &c.Trace)
	w.int(9, c.StartAt)
	w.retention(10, c.Retention)
	w.string(11, c.ServerVersion)
	w.uint(12, c.Request)
	w.uint(13, uint64(c.Priority))
	w.int(14, c.Delay)
	w.close(n)
}

func readInvoke(b []byte, c *machine.Invoke) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.ID)
		case 2:
			into(&r, &c.Target, readTarget)
		case 3:
			c.Input = r.bytes()
		case 4:
			into(&r, &c.Source, readSource)
		case 5:
			c.Sink = one(&r, readSink)
		case 6:
			c.IdempotencyKey = new(r.string())
		case 7:
			c.LimitKey = r.string()
		case 8:
			into(&r, &c.Trace, readTrace)
		case 9:
			c.StartAt = r.i64()
		case 10:
			into(&r, &c.Retention, readRetention)
		case 11:
			c.ServerVersion = r.string()
		case 12:
			c.Request = r.u64()
		case 13:
			c.Priority = r.u8()
		case 14:
			c.Delay = r.i64()
		default:
			r.unknown("invoke")
		}
	}
	return r.err
}

func (w *writer) progress(c *machine.Progress) {
	w.id(1, &c.ID)
	w.uint(2, c.Attempt)
	w.pin(3, &c.Pin)
	for i := range c.Steps {
		w.step(4, &c.Steps[i])
	}
	w.uint(5, uint64(c.Errors))
}

func readProgress(b []byte, c *machine.Progress) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.ID)
		case 2:
			c.Attempt = r.u64()
		case 3:
			into(&r, &c.Pin, readPin)
		case 4:
			into(&r, more(&r, &c.Steps), readStep)
		case 5:
			c.Errors = r.u32()
		default:
			r.unknown("progress")
		}
	}
	return r.err
}

func (w *writer) step(field uint64, s *machine.Step) {
	n := w.open(field, stepSize(s))
	w.uint(1, uint64(s.Kind))
	if s.Kind == machine.StepYield {
		w.require(feature.Level2, "a pause that waits for the open attempt")
	}
	w.uint(2, uint64(s.Type))
	w.bytes(3, s.Payload)
	w.uint(4, uint64(s.Completion))
	if s.Callee != nil {
		w.callee(5, s.Callee)
	}
	if s.Await != nil {
		w.future(6, s.Await)
	}
	if s.Failure != nil {
		w.attemptFailure(7, s.Failure)
	}
	w.close(n)
}

func readStep(b []byte, s *machine.Step) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			s.Kind = machine.StepKind(r.u8())
		case 2:
			s.Type = journal.Type(r.u16())
		case 3:
			s.Payload = r.bytes()
		case 4:
			s.Completion = r.u32()
		case 5:
			s.Callee = one(&r, readCallee)
		case 6:
			s.Await = one(&r, readFuture)
		case 7:
			s.Failure = one(&r, readAttemptFailure)
		default:
			r.unknown("step")
		}
	}
	return r.err
}

func (w *writer) callee(field uint64, c *machine.Callee) {
	n := w.open(field, partSize)
	w.id(1, &c.ID)
	w.uint(2, uint64(c.Type))
	w.retention(3, c.Retention)
	w.close(n)
}

func readCallee(b []byte, c *machine.Callee) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&c.ID)
		case 2:
			c.Type = machine.TargetType(r.u8())
		case 3:
			into(&r, &c.Retention, readRetention)
		default:
			r.unknown("callee")
		}
	}
	return r.err
}

func (w *writer) fireTimers(c *machine.FireTimers) {
	for i := range c.Timers {
		t := &c.Timers[i]
		n := w.open(1, partSize)
		w.int(1, t.At)
		w.uint(2, uint64(t.Kind))
		w.id(3, &t.ID)
		w.uint(4, uint64(t.Completion))
		w.string(5, t.Name)
		w.close(n)
	}
}

func readFireTimers(b []byte, c *machine.FireTimers) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			into(&r, more(&r, &c.Timers), readTimer)
		default:
			r.unknown("fire timers")
		}
	}
	return r.err
}

func readTimer(b []byte, t *machine.Timer) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			t.At = r.i64()
		case 2:
			t.Kind = machine.TimerKind(r.u8())
		case 3:
			r.id(&t.ID)
		case 4:
			t.Completion = r.u32()
		case 5:
			t.Name = r.string()
		default:
			r.unknown("timer")
		}
	}
	return r.err
}

func (w *writer) deliver(c *machine.Deliver) error {
	w.uint(1, uint64(c.From))
	w.uint(2, c.FirstSeq)
	for _, m := range c.Messages {
		n := w.open(3, MessageSize(m))
		if err := w.message(m); err != nil {
			return err
		}
		w.close(n)
	}
	return nil
}

func readDeliver(b []byte, c *machine.Deliver) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.From = r.u32()
		case 2:
			c.FirstSeq = r.u64()
		case 3:
			into(&r, more(&r, &c.Messages), readMessage)
		default:
			r.unknown("deliver")
		}
	}
	return r.err
}

func (w *writer) acknowledge(c *machine.Acknowledge) {
	w.uint(1, uint64(c.To))
	w.uint(2, c.Upto)
}

func readAcknowledge(b []byte, c *machine.Acknowledge) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.To = r.u32()
		case 2:
			c.Upto = r.u64()
		default:
			r.unknown("acknowledge")
		}
	}
	return r.err
}
