package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// killed is how an invocation ends that is killed.
var killed = journal.Result{Failure: &journal.Failure{Code: 409, Message: "killed"}}

// kill ends an invocation without asking its handler, and likewise what it has
// called and waits for. One-way calls live on: nobody waits for them.
func (m *Machine) kill(c *Kill) (Outcome, error) {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return Outcome{}, err
	case inv == nil:
		return Outcome{Code: NotFound}, nil
	case inv.Status == Completed:
		return describe(Ended, inv), nil
	}
	callees, err := m.callees(inv)
	if err != nil {
		return Outcome{}, err
	}
	for _, id := range callees {
		if err := m.send(id, &Kill{id}); err != nil {
			return Outcome{}, err
		}
	}
	if inv.Status == Invoked {
		m.emit(&Abort{inv.ID, inv.Attempt})
	}
	return m.endEarly(inv, &killed)
}

// endEarly ends an invocation with a result that its handler did not give.
func (m *Machine) endEarly(inv *Invocation, result *journal.Result) (Outcome, error) {
	switch inv.Status {
	case Scheduled:
		m.st.DeleteTimer(Timer{At: inv.StartAt, Kind: TimerStart, ID: inv.ID})
	case Inboxed:
		if err := m.leaveLine(inv); err != nil {
			return Outcome{}, err
		}
	}
	inv.Killed = true
	if err := m.complete(inv, result); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

// callees are the invocations that inv has called and that have not answered, in
// the order of the calls.
func (m *Machine) callees(inv *Invocation) ([]ids.Invocation, error) {
	type call struct{ id, result uint32 } // completion ids
	var calls []call
	callees := map[uint32]ids.Invocation{} // by completion id of the callee's id
	answered := map[uint32]bool{}
	for i := range inv.Length {
		e, err := m.st.Entry(inv.ID, i)
		if err != nil {
			return nil, fmt.Errorf("read entry %d of %s: %w", i, inv.ID, err)
		}
		switch e.Type {
		case journal.Call:
			c, err := journal.ParseCall(e.Payload)
			if err != nil {
				return nil, fmt.Errorf("entry %d of %s: %w", i, inv.ID, err)
			}
			calls = append(calls, call{c.IDCompletion, c.Completion})
		case journal.CallInvocationIDCompletion, journal.CallCompletion:
			n, err := journal.ParseNotification(e.Payload)
			if err != nil {
				return nil, fmt.Errorf("entry %d of %s: %w", i, inv.ID, err)
			}
			answered[n.ID.Index] = true
			if n.Variant == journal.InvocationID {
				if callees[n.ID.Index], err = ids.ParseInvocation(n.InvocationID); err != nil {
					return nil, fmt.Errorf("entry %d of %s: %w", i, inv.ID, err)
				}
			}
		}
	}
	var open []ids.Invocation
	for _, c := range calls {
		if id := callees[c.id]; !answered[c.result] && !id.IsZero() {
			open = append(open, id)
		}
	}
	return open, nil
}

func (m *Machine) pauseNow(c *Pause) (Outcome, error) {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return Outcome{}, err
	case inv == nil:
		return Outcome{Code: NotFound}, nil
	case inv.Status == Completed:
		return describe(Ended, inv), nil
	case inv.Status == Paused:
		return describe(Existing, inv), nil
	case inv.Waiting():
		return describe(NotStarted, inv), nil
	case inv.Status == Invoked && m.level >= feature.Level2:
		if !inv.Pausing {
			m.recordPause(inv, PausedByOperator, c.By)
		}
		inv.Pausing = true
		m.st.PutInvocation(inv)
		m.emit(&Yield{inv.ID, inv.Attempt})
		return describe(OK, inv), nil
	}
	switch inv.Status {
	case Invoked:
		m.emit(&Abort{inv.ID, inv.Attempt})
	case Inboxed:
		if err := m.leaveLine(inv); err != nil {
			return Outcome{}, err
		}
	}
	m.recordPause(inv, PausedByOperator, c.By)
	if err := m.pause(inv, c.Failure); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

func (m *Machine) resume(c *Resume) (Outcome, error) {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return Outcome{}, err
	case inv == nil:
		return Outcome{Code: NotFound}, nil
	case inv.Status == Completed:
		return describe(Ended, inv), nil
	case inv.Waiting():
		return describe(NotStarted, inv), nil
	case inv.Status == Invoked && c.Repin != nil:
		return describe(Running, inv), nil
	case inv.Status == Invoked:
		m.keepRunning(inv)
		m.emit(&Hasten{ID: inv.ID, Attempt: inv.Attempt})
		return describe(OK, inv), nil
	}
	if c.Repin != nil {
		pin, refusal := c.Repin.of(inv.Pin)
		if refusal != OK {
			return describe(refusal, inv), nil
		}
		inv.Pin = pin
	}
	if inv.Status == Inboxed { // it is going to
		m.st.PutInvocation(inv)
		return describe(OK, inv), nil
	}
	if err := m.admit(inv, nil); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

// keepRunning takes back a pause that has not taken effect yet.
func (m *Machine) keepRunning(inv *Invocation) {
	if inv.Pausing {
		inv.Pausing = false
		inv.recordResume(m.now)
		m.st.PutInvocation(inv)
	}
}

// of is the pin of an invocation that has one and is to keep its journal, which
// fixes the version of the protocol.
func (r *Repin) of(was Pin) (Pin, Code) {
	switch {
	case was == Pin{}:
		return was, NotPinned
	case was.Protocol < r.Min || was.Protocol > r.Max:
		return was, Incompatible
	}
	return Pin{r.Deployment, was.Protocol}, OK
}

func (m *Machine) purgeNow(c *Purge) (Outcome, error) {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return Outcome{}, err
	case inv == nil:
		return Outcome{Code: NotFound}, nil
	case inv.Status != Completed:
		return describe(NotEnded, inv), nil
	}
	outcome := describe(OK, inv)
	if err := m.dropTimer(Timer{At: inv.journalExpiresAt(), Kind: TimerPurgeJournal, ID: inv.ID}); err != nil {
		return Outcome{}, err
	}
	if c.Journal {
		if inv.Length > 0 {
			m.forgetJournal(inv)
		}
		m.st.PutInvocation(inv)
		return outcome, nil
	}
	if err := m.dropTimer(Timer{At: inv.ExpiresAt, Kind: TimerPurge, ID: inv.ID}); err != nil {
		return Outcome{}, err
	}
	return outcome, m.purge(inv)
}

// dropTimer deletes a timer that may be registered.
func (m *Machine) dropTimer(t Timer) error {
	registered, err := m.st.HasTimer(t)
	if err != nil {
		return fmt.Errorf("look up timer of %s: %w", t.ID, err)
	}
	if registered {
		m.st.DeleteTimer(t)
	}
	return nil
}
