package invoker

import (
	"errors"

	"platform/internal/tracing"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/partition/machine"
)

// attempt is one request to the endpoint. It is the receiver of its stream, whose events are
// delivered one at a time. The task's mutex covers its fields, except plan, which is set while
// the task is loading and constant from then on.
type attempt struct {
	t       *task
	s       *Session
	stream  Stream
	plan    *plan
	opening *opening // until the endpoint responds
	room    *opening // after it was asked to suspend for others of its service

	decoder       protocol.Decoder
	notifications notificationQueue
	handler       handlerStatus
	progress      progressBuffer
	state         stateSize
	memory        attemptMemory
	activity      activity
	action        *actionWaiter    // while it waits for a token; nil: it does not
	actionPaid    bool             // it has the token for its next command
	span          *tracing.Attempt // nil: not traced

	// How it ended.
	refusal  refusal
	failure  *failure
	lastStep machine.StepKind // while finishing
}

func (a *attempt) enter() bool { return a.s.enter() }
func (a *attempt) leave()      { a.s.gate.RUnlock() }

// Begin reads the journal and writes it to the stream.
func (a *attempt) Begin() *endpoint.Request {
	a.s.iv.processPauses.check() // may close the session of a lost leadership
	if !a.enter() {
		return nil
	}
	defer a.leave()
	t := a.t
	t.mu.Lock()
	if t.a != a {
		t.mu.Unlock()
		return nil
	}
	inv, input, pin := t.inv, t.input, t.pin
	need := max(len(input), t.size)
	t.mu.Unlock()
	a.decoder.Limit = a.s.iv.cfg.MessageSizeLimit
	if inv != nil {
		if err := a.decide(inv, pin); err != nil {
			a.fail(failureOf(err))
			return nil
		}
	}
	replay, err := a.take(inv, need)
	if planning, ok := errors.AsType[*planError](err); ok {
		a.fail(failureOf(planning.error))
		return nil
	}
	if err != nil {
		a.unreadable(err)
		return nil
	}
	if !a.replay(replay) {
		return nil
	}
	return a.plan.request(replay.Invocation, a.traceparent(replay.Invocation))
}

// decide makes the plan of the attempt.
func (a *attempt) decide(inv *machine.Invocation, pin machine.Pin) error {
	p, err := a.s.iv.plan(inv, pin)
	if err != nil {
		return err
	}
	a.plan = p
	if !p.bidirectional {
		a.s.iv.responded(a.opening) // the endpoint responds only at the end of the attempt
	}
	return nil
}

// errEnded is returned to the stream of an attempt that has ended.
var errEnded = errors.New("the attempt has ended")

// openLocked reports whether data from the endpoint is still relevant.
func (a *attempt) openLocked() bool { return a.t.a == a && a.t.state.open() }
