package invoker

import (
	"errors"

	"platform/internal/errcode"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// take reads the journal once there is memory for it.
func (a *attempt) take(inv *machine.Invocation, need int) (*attempts.Replay, error) {
	for {
		a.setReading(false)
		if grant := a.memory.begin(need); grant != nil {
			a.dropInput()
			<-grant // at the latest when the attempt ends
		}
		r, err := a.load(inv, max(need, unreservedLoad), a.setReading(true))
		if large, ok := errors.AsType[*attempts.TooLargeError](err); ok {
			need = large.Size
		} else if err != nil {
			return nil, err
		} else {
			need = r.Size()
		}
		if most := a.s.iv.memory.ceiling; most > 0 && need > most {
			return nil, errcode.New(errcode.RT0001,
				"the journal and the state, %d bytes, exceed the limit of an attempt, %d bytes (worker.invoker.per-invocation-memory-limit)", need, most)
		}
		if r == nil {
			a.memory.unload()
		} else if a.memory.loaded(need) {
			return r, nil
		}
	}
}

// unreservedLoad is how many bytes of a journal of unknown size are read before memory is
// reserved. If it has more, the attempt waits for memory first.
const unreservedLoad = 1 << 20

// dropInput drops a long input before the attempt waits for memory: it is read from the tables
// then.
func (a *attempt) dropInput() {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if len(a.t.input) > keptInput {
		a.t.input = nil
	}
}

// setReading starts or ends keeping the notifications that arrive: those that arrive before
// the journal is read are in it. It returns the input if the journal is known to contain
// nothing else.
func (a *attempt) setReading(reading bool) (input []byte) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.notifications.reading, a.notifications.early = reading, nil
	return a.t.input
}

func (a *attempt) load(inv *machine.Invocation, most int, input []byte) (*attempts.Replay, error) {
	if input == nil {
		a.s.iv.loads <- struct{}{}
		defer func() { <-a.s.iv.loads }()
		return a.s.part.Load(a.t.id, a.t.number, most, a.stateLimit)
	}
	limit := a.plan.stateLimit
	if limit > 0 {
		a.s.iv.loads <- struct{}{}
		defer func() { <-a.s.iv.loads }()
	}
	r := &attempts.Replay{Invocation: inv, Entries: []journal.Entry{{Type: journal.Input, Payload: input}}, Partial: true}
	if limit == 0 {
		return r, nil
	}
	var err error
	r.State, r.Partial, err = a.s.part.State(inv.Target.Object(), limit)
	return r, err
}

// keptInput is the size up to which a task keeps its input for further attempts; a longer
// one is read from the tables again.
const keptInput = 16 << 10

// planError means that an attempt cannot be planned, although its journal can be read.
type planError struct{ error }

// stateLimit returns how much state to read with a journal. An invocation that waited without its
// record is planned now that the record has been read.
func (a *attempt) stateLimit(inv *machine.Invocation) (int, error) {
	if a.plan == nil {
		a.t.mu.Lock()
		a.t.inv, a.t.pin = inv, inv.Pin
		a.t.retry.restore(inv.Failed)
		a.t.mu.Unlock()
		if err := a.decide(inv, inv.Pin); err != nil {
			return 0, &planError{err}
		}
	}
	return a.plan.stateLimit, nil
}

// unreadable ends an attempt whose invocation could not be read.
func (a *attempt) unreadable(err error) {
	if errors.Is(err, attempts.ErrGone) {
		a.t.abandon()
		return
	}
	if _, known := errcode.Of(err); !known {
		err = errcode.New(errcode.RT0006, "read the journal: %w", err)
	}
	a.fail(failureOf(err))
}

// replay writes the start and all entries, and allows notifications to follow. It returns
// false if the attempt was abandoned meanwhile.
func (a *attempt) replay(r *attempts.Replay) bool {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.a != a || t.state != loading {
		return false
	}
	t.inv = r.Invocation
	t.deployed = a.plan.pin
	t.size = r.Size()
	a.state.partial, a.state.known, a.state.bound = r.Partial, !r.Partial, r.StateSize()
	for i := range r.Entries {
		a.handler.replayed(&r.Entries[i])
	}
	a.startSpanLocked(r.Invocation)
	a.reportStartLocked()
	a.stream.Write(a.plan.replay(r, &t.retry)...)
	t.moveLocked(replayed)
	a.notifications.next = uint32(len(r.Entries))
	for _, n := range a.notifications.early {
		a.notifyLocked(n)
	}
	a.notifications.early = nil
	if len(t.input) > keptInput {
		t.input = nil
	}
	a.touchLocked()
	a.activity.requestedAt = a.activity.last
	a.s.timers.opened(a)
	if !a.plan.bidirectional {
		t.moveLocked(suspend)
	}
	return true
}
