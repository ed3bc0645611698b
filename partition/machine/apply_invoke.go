package machine

import (
	"platform/flowcontrol"
	"platform/internal/failpoint"
	"platform/partition/journal"
)

// request is invoke for a request from outside. The outcome names the id if it is not the
// one that was asked for.
func (m *Machine) request(asked *Invoke) (Outcome, error) {
	c, err := m.resolve(asked)
	if err != nil {
		return Outcome{}, err
	}
	outcome, found, err := m.ownEarlier(c)
	if !found && err == nil {
		if outcome, err = m.queueFull(c); err == nil && outcome.Code == OK {
			outcome, err = m.invoke(c)
		}
	}
	if c.ID != asked.ID {
		outcome.ID = c.ID
	}
	return outcome, err
}

// invoke creates an invocation, or finds the one that has the id already: nothing
// runs twice.
func (m *Machine) invoke(c *Invoke) (Outcome, error) {
	known, err := m.invocation(c.ID)
	if failpoint.Active(failpoint.NoDeduplication) && c.Sink == nil {
		known = nil
	}
	own := known != nil && c.Request != 0 && c.Request == known.Request
	if err == nil && known != nil && !own && m.forgotten(known) {
		known, err = m.followed(known)
	}
	switch {
	case err != nil:
		return Outcome{}, err
	case known == nil && c.Target.Type == StateUpdate && !validUpdate(c.Input):
		return Outcome{Code: Invalid}, nil
	case known == nil:
		return m.create(c)
	case c.Sink == nil:
		outcome := describe(Existing, known)
		outcome.Own = own
		return outcome, nil
	case c.Target.Type == WorkflowRun:
		return describe(Conflict, known), m.answer(*c.Sink, &alreadyInvoked)
	case known.Status == Completed:
		return describe(Existing, known), m.answerLate(known, *c.Sink)
	}
	outcome := describe(Existing, known)
	return outcome, m.wait(known, *c.Sink)
}

// create writes the record and the Input entry, and hands the invocation to
// admission.
func (m *Machine) create(c *Invoke) (Outcome, error) {
	inv := &Invocation{
		ID:             c.ID,
		Request:        c.Request,
		Life:           m.meta.Attempt,
		Target:         c.Target,
		Source:         c.Source,
		IdempotencyKey: c.IdempotencyKey,
		LimitKey:       c.LimitKey,
		Trace:          c.Trace,
		Retention:      c.Retention,
		ServerVersion:  c.ServerVersion,
		CreatedAt:      m.now,
	}
	if c.Source.Kind == FromRestart {
		inv.RestartedFrom = c.Source.Caller
	}
	if c.Sink != nil {
		inv.Sinks = []Sink{*c.Sink}
	}
	if c.StartAt > m.now {
		inv.StartAt = c.StartAt
	}
	inv.Priority = min(c.Priority, flowcontrol.Priorities-1)
	inv.join()
	m.append(inv, journal.Input, c.Input)
	inv.Commands++
	if err := m.admit(inv, c.Input); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

// describe is an outcome that tells of an invocation.
func describe(code Code, inv *Invocation) Outcome {
	return Outcome{Code: code, Status: inv.Status, Result: inv.Result, ExpiresAt: inv.ExpiresAt, StartAt: inv.StartAt}
}

// alreadyInvoked is what a call of a workflow gets whose run has begun or ended.
var alreadyInvoked = journal.Result{Failure: &journal.Failure{Code: 409, Message: "the workflow method was already invoked"}}
