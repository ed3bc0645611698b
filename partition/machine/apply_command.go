package machine

import (
	"fmt"

	"platform/internal/failpoint"
	"platform/partition/journal"
)

// journalCommand appends a journal command and carries it out, including completions that
// are available immediately.
func (m *Machine) journalCommand(inv *Invocation, s *Step) error {
	index := inv.Length
	m.append(inv, s.Type, s.Payload)
	inv.Commands++
	inv.Failed.SinceCommand = 0
	var err error
	switch s.Type {
	case journal.Output:
		inv.Output = index
	case journal.GetEagerState, journal.GetEagerStateKeys, journal.Run:
		// Only recorded: the handler has the result or is going to propose it.
	case journal.GetLazyState:
		err = m.getState(inv, s.Payload)
	case journal.GetLazyStateKeys:
		err = m.getStateKeys(inv, s.Payload)
	case journal.SetState:
		err = m.setState(inv, s.Payload)
	case journal.ClearState:
		err = m.deleteState(inv, s.Payload)
	case journal.ClearAllState:
		m.st.DeleteValues(inv.Target.Object())
	case journal.Sleep:
		err = m.sleep(inv, s.Payload)
	case journal.Call:
		err = m.call(inv, s)
	case journal.OneWayCall:
		err = m.oneWayCall(inv, s)
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		err = m.promise(inv, s.Type, s.Payload)
	case journal.SendSignal:
		err = m.sendSignal(s.Payload)
	case journal.CompleteAwakeable:
		err = m.completeAwakeable(s.Payload)
	case journal.AttachInvocation, journal.GetInvocationOutput:
		err = m.attachTo(inv, s.Type, s.Payload)
	default:
		err = errUnknownCommand
	}
	if err != nil {
		return fmt.Errorf("%s at entry %d of %s: %w", s.Type, index, inv.ID, err)
	}
	return nil
}

// sleep registers the timer; a wake-up time in the past is completed immediately.
func (m *Machine) sleep(inv *Invocation, payload []byte) error {
	c, err := journal.ParseSleep(payload)
	if err != nil {
		return err
	}
	if failpoint.Active(failpoint.EarlyTimers) {
		c.WakeUpTime -= 50
	}
	if c.WakeUpTime <= m.now {
		_, err := m.record(inv, sleepCompletion(c.Completion))
		return err
	}
	m.setTimer(sleepTimer(inv.ID, c))
	inv.Sleeps++
	return nil
}

func (m *Machine) call(inv *Invocation, s *Step) error {
	c, err := journal.ParseCall(s.Payload)
	if err != nil {
		return err
	}
	if err := m.recordCalleeID(inv, c.IDCompletion, s.Callee); err != nil {
		return err
	}
	msg := invokeOf(inv, &c.Request, s.Callee)
	sink := callSink(inv, c.Completion)
	msg.Sink = &sink
	return m.send(msg.ID, msg)
}

// callSink returns the waiter for the result of a call.
func callSink(inv *Invocation, completion uint32) Sink {
	return Sink{Caller: inv.ID, Life: inv.Life, Completion: completion, Type: journal.CallCompletion}
}

func (m *Machine) oneWayCall(inv *Invocation, s *Step) error {
	c, err := journal.ParseOneWayCall(s.Payload)
	if err != nil {
		return err
	}
	if err := m.recordCalleeID(inv, c.IDCompletion, s.Callee); err != nil {
		return err
	}
	msg := invokeOf(inv, &c.Request, s.Callee)
	msg.StartAt = c.InvokeTime
	return m.send(msg.ID, msg)
}

// recordCalleeID completes the request for the callee's ID without waiting for the callee.
func (m *Machine) recordCalleeID(inv *Invocation, id uint32, callee *Callee) error {
	payload := journal.NewInvocationID(id, callee.ID.String())
	_, err := m.record(inv, completion(journal.CallInvocationIDCompletion, id, payload))
	return err
}

// invokeOf returns the message that creates the callee of a call.
func invokeOf(inv *Invocation, r *journal.Request, callee *Callee) *Invoke {
	return &Invoke{
		ID: callee.ID,
		Target: Target{
			Scope:   optional(r.Scope),
			Service: r.Service,
			Key:     r.Key,
			Handler: r.Handler,
			Type:    callee.Type,
		},
		Input:          journal.NewInput(r.Headers, r.Parameter),
		Source:         Source{Kind: FromService, Caller: inv.ID, CallerTarget: inv.Target.String()},
		IdempotencyKey: r.IdempotencyKey,
		LimitKey:       optional(r.LimitKey),
		Trace:          inv.Trace,
		Retention:      callee.Retention,
		ServerVersion:  inv.ServerVersion,
	}
}

func optional(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
