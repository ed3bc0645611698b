package codec

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

func (w *writer) lead(c *machine.Lead) {
	w.uint(fieldLeadEpoch, c.Epoch)
	w.string(fieldLeadNode, c.Node)
	w.bool(fieldLeadFlow, c.Flow)
	if c.Recovered {
		w.require(feature.Level4, "the announcement of a leader that was recovered without all data")
		w.bool(fieldLeadRecovered, true)
	}
}

func readLead(b []byte, c *machine.Lead) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldLeadEpoch:
			c.Epoch = r.u64()
		case fieldLeadNode:
			c.Node = r.string()
		case fieldLeadFlow:
			c.Flow = r.bool()
		case fieldLeadRecovered:
			c.Recovered = r.bool()
		default:
			r.unknown("lead")
		}
	}
	return r.err
}

// invoke writes an Invoke, which is both a log command and a message.
func (w *writer) invoke(field protowire.Number, c *machine.Invoke) {
	n := w.open(field, len(c.Input)+128)
	w.id(fieldInvokeID, &c.ID)
	w.target(fieldInvokeTarget, &c.Target)
	w.bytes(fieldInvokeInput, c.Input)
	w.source(fieldInvokeSource, &c.Source)
	if c.Sink != nil {
		w.sink(fieldInvokeSink, c.Sink)
	}
	if c.IdempotencyKey != nil {
		w.explicitString(fieldInvokeIdempotencyKey, *c.IdempotencyKey)
	}
	w.string(fieldInvokeLimitKey, c.LimitKey)
	w.trace(fieldInvokeTrace, &c.Trace)
	w.int(fieldInvokeStartAt, c.StartAt)
	w.retention(fieldInvokeRetention, c.Retention)
	w.string(fieldInvokeServerVersion, c.ServerVersion)
	w.uint(fieldInvokeRequest, c.Request)
	w.uint(fieldInvokePriority, uint64(c.Priority))
	w.int(fieldInvokeDelay, c.Delay)
	if c.Fresh || c.Since != (machine.Moment{}) {
		w.require(feature.Level4, "an invocation whose id is known to be new")
		w.bool(fieldInvokeFresh, c.Fresh)
		w.uint(fieldInvokeSinceLeadership, c.Since.Leadership)
		w.uint(fieldInvokeSinceNumber, c.Since.Number)
	}
	w.close(n)
}

func readInvoke(b []byte, c *machine.Invoke) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldInvokeID:
			r.id(&c.ID)
		case fieldInvokeTarget:
			decodeInto(&r, &c.Target, readTarget)
		case fieldInvokeInput:
			c.Input = r.bytes()
		case fieldInvokeSource:
			decodeInto(&r, &c.Source, readSource)
		case fieldInvokeSink:
			c.Sink = decodeNew(&r, readSink)
		case fieldInvokeIdempotencyKey:
			c.IdempotencyKey = new(r.string())
		case fieldInvokeLimitKey:
			c.LimitKey = r.string()
		case fieldInvokeTrace:
			decodeInto(&r, &c.Trace, readTrace)
		case fieldInvokeStartAt:
			c.StartAt = r.i64()
		case fieldInvokeRetention:
			decodeInto(&r, &c.Retention, readRetention)
		case fieldInvokeServerVersion:
			c.ServerVersion = r.string()
		case fieldInvokeRequest:
			c.Request = r.u64()
		case fieldInvokePriority:
			c.Priority = r.u8()
		case fieldInvokeDelay:
			c.Delay = r.i64()
		case fieldInvokeFresh:
			c.Fresh = r.bool()
		case fieldInvokeSinceLeadership:
			c.Since.Leadership = r.u64()
		case fieldInvokeSinceNumber:
			c.Since.Number = r.u64()
		default:
			r.unknown("invoke")
		}
	}
	if len(b) >= ownedStrings {
		ownStrings(c)
	}
	return r.err
}

// ownedStrings is the size from which an Invoke does not share its strings with the log entry:
// the record of the invocation has them, and would retain the entry with the input while it is
// in memory.
const ownedStrings = 4 << 10

func ownStrings(c *machine.Invoke) {
	for _, s := range []*string{
		&c.Target.Scope, &c.Target.Service, &c.Target.Key, &c.Target.Handler, &c.Source.CallerTarget, &c.Source.Subscription,
		&c.LimitKey, &c.Trace.Parent, &c.Trace.State, &c.Trace.Baggage, &c.ServerVersion,
	} {
		*s = strings.Clone(*s)
	}
	if c.IdempotencyKey != nil {
		*c.IdempotencyKey = strings.Clone(*c.IdempotencyKey)
	}
}

func (w *writer) progress(c *machine.Progress) {
	w.id(fieldProgressID, &c.ID)
	w.uint(fieldProgressAttempt, c.Attempt)
	w.pin(fieldProgressPin, &c.Pin)
	for i := range c.Steps {
		w.step(fieldProgressSteps, &c.Steps[i])
	}
	w.uint(fieldProgressErrors, uint64(c.Errors))
	if c.Failed != (machine.FailedAttempts{}) {
		w.require(feature.Level4, "how often an invocation has failed")
		w.failedAttempts(fieldProgressFailed, &c.Failed)
	}
}

func readProgress(b []byte, c *machine.Progress) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldProgressID:
			r.id(&c.ID)
		case fieldProgressAttempt:
			c.Attempt = r.u64()
		case fieldProgressPin:
			decodeInto(&r, &c.Pin, readPin)
		case fieldProgressSteps:
			decodeInto(&r, grow(&r, &c.Steps), readStep)
		case fieldProgressErrors:
			c.Errors = r.u32()
		case fieldProgressFailed:
			decodeInto(&r, &c.Failed, readFailedAttempts)
		default:
			r.unknown("progress")
		}
	}
	return r.err
}

func (w *writer) failedAttempts(field protowire.Number, f *machine.FailedAttempts) {
	n := w.open(field, sizeHint)
	w.uint(fieldFailedAttemptsTotal, uint64(f.Total))
	w.uint(fieldFailedAttemptsCounted, uint64(f.Counted))
	w.uint(fieldFailedAttemptsSinceCommand, uint64(f.SinceCommand))
	w.close(n)
}

func readFailedAttempts(b []byte, f *machine.FailedAttempts) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldFailedAttemptsTotal:
			f.Total = r.u32()
		case fieldFailedAttemptsCounted:
			f.Counted = r.u32()
		case fieldFailedAttemptsSinceCommand:
			f.SinceCommand = r.u32()
		default:
			r.unknown("failed attempts")
		}
	}
	return r.err
}

func (w *writer) step(field protowire.Number, s *machine.Step) {
	n := w.open(field, stepSize(s))
	w.uint(fieldStepKind, uint64(s.Kind))
	if s.Kind == machine.StepYield {
		w.require(feature.Level2, "a pause that waits for the open attempt")
	}
	if s.Kind == machine.StepRetry {
		w.require(feature.Level4, "the failures of an invocation")
	}
	w.uint(fieldStepType, uint64(s.Type))
	w.bytes(fieldStepPayload, s.Payload)
	w.uint(fieldStepCompletion, uint64(s.Completion))
	if s.Callee != nil {
		w.callee(fieldStepCallee, s.Callee)
	}
	if s.Await != nil {
		w.future(fieldStepAwait, s.Await)
	}
	if s.Failure != nil {
		w.attemptFailure(fieldStepFailure, s.Failure)
	}
	if s.Unretryable {
		w.require(feature.Level3, "a pause for a failure that is not retried")
		w.bool(fieldStepUnretryable, true)
	}
	if s.Attempts > 0 {
		w.require(feature.Level4, "the number of attempts before a pause")
		w.uint(fieldStepAttempts, uint64(s.Attempts))
	}
	if s.Cause != 0 {
		w.require(feature.Level4, "the cause of a failure")
		w.uint(fieldStepCause, s.Cause)
	}
	w.close(n)
}

func readStep(b []byte, s *machine.Step) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldStepKind:
			s.Kind = machine.StepKind(r.u8())
		case fieldStepType:
			s.Type = journal.Type(r.u16())
		case fieldStepPayload:
			s.Payload = r.bytes()
		case fieldStepCompletion:
			s.Completion = r.u32()
		case fieldStepCallee:
			s.Callee = decodeNew(&r, readCallee)
		case fieldStepAwait:
			s.Await = decodeNew(&r, readFuture)
		case fieldStepFailure:
			s.Failure = decodeNew(&r, readAttemptFailure)
		case fieldStepUnretryable:
			s.Unretryable = r.bool()
		case fieldStepAttempts:
			s.Attempts = r.u32()
		case fieldStepCause:
			s.Cause = r.u64()
		default:
			r.unknown("step")
		}
	}
	return r.err
}

func (w *writer) callee(field protowire.Number, c *machine.Callee) {
	n := w.open(field, sizeHint)
	w.id(fieldCalleeID, &c.ID)
	w.uint(fieldCalleeType, uint64(c.Type))
	w.retention(fieldCalleeRetention, c.Retention)
	w.close(n)
}

func readCallee(b []byte, c *machine.Callee) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldCalleeID:
			r.id(&c.ID)
		case fieldCalleeType:
			c.Type = target.Type(r.u8())
		case fieldCalleeRetention:
			decodeInto(&r, &c.Retention, readRetention)
		default:
			r.unknown("callee")
		}
	}
	return r.err
}

func (w *writer) fireTimers(c *machine.FireTimers) {
	for i := range c.Timers {
		t := &c.Timers[i]
		n := w.open(fieldFireTimersTimers, sizeHint)
		w.int(fieldTimerAt, t.At)
		w.uint(fieldTimerKind, uint64(t.Kind))
		w.id(fieldTimerID, &t.ID)
		w.uint(fieldTimerCompletion, uint64(t.Completion))
		w.string(fieldTimerName, t.Name)
		w.close(n)
	}
}

func readFireTimers(b []byte, c *machine.FireTimers) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldFireTimersTimers:
			decodeInto(&r, grow(&r, &c.Timers), readTimer)
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
		case fieldTimerAt:
			t.At = r.i64()
		case fieldTimerKind:
			t.Kind = machine.TimerKind(r.u8())
		case fieldTimerID:
			r.id(&t.ID)
		case fieldTimerCompletion:
			t.Completion = r.u32()
		case fieldTimerName:
			t.Name = r.string()
		default:
			r.unknown("timer")
		}
	}
	return r.err
}

func (w *writer) deliver(c *machine.Deliver) error {
	w.uint(fieldDeliverFrom, uint64(c.From))
	w.uint(fieldDeliverFirstSeq, c.FirstSeq)
	for _, m := range c.Messages {
		n := w.open(fieldDeliverMessages, MessageSize(m))
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
		case fieldDeliverFrom:
			c.From = r.u32()
		case fieldDeliverFirstSeq:
			c.FirstSeq = r.u64()
		case fieldDeliverMessages:
			decodeInto(&r, grow(&r, &c.Messages), readMessage)
		default:
			r.unknown("deliver")
		}
	}
	return r.err
}

func (w *writer) acknowledge(c *machine.Acknowledge) {
	w.uint(fieldAcknowledgeTo, uint64(c.To))
	w.uint(fieldAcknowledgeUpto, c.Upto)
}

func readAcknowledge(b []byte, c *machine.Acknowledge) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldAcknowledgeTo:
			c.To = r.u32()
		case fieldAcknowledgeUpto:
			c.Upto = r.u64()
		default:
			r.unknown("acknowledge")
		}
	}
	return r.err
}
