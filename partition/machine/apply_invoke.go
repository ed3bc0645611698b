package machine

import (
	"platform/flowcontrol"
	"platform/internal/failpoint"
	"platform/internal/feature"
	"platform/internal/target"
	"platform/partition/journal"
)

// request applies an Invoke that came from a client. The outcome contains the ID if it
// differs from the requested one.
func (m *Machine) request(requested *Invoke) (Outcome, error) {
	c, err := m.resolve(requested)
	if err != nil {
		return Outcome{}, err
	}
	outcome, found, err := m.ownEarlier(c)
	if !found && err == nil {
		if outcome, err = m.queueFull(c); err == nil && outcome.Code == OK {
			outcome, err = m.invoke(c)
		}
	}
	if c.ID != requested.ID {
		outcome.ID = c.ID
	}
	return outcome, err
}

// invoke creates an invocation, or finds the one that already has the ID, so that no
// request runs twice.
func (m *Machine) invoke(c *Invoke) (Outcome, error) {
	known, err := m.known(c)
	if failpoint.Active(failpoint.NoDeduplication) && c.Sink == nil {
		known = nil
	}
	own := known != nil && c.Request != 0 && c.Request == known.Request
	if err == nil && known != nil && !own && m.expired(known) {
		known, err = m.reuseID(known)
	}
	switch {
	case err != nil:
		return Outcome{}, err
	case known == nil && c.Target.Type == target.StateUpdate && !validUpdate(c.Input):
		return Outcome{Code: Invalid}, nil
	case known == nil:
		return m.create(c)
	case c.Sink == nil:
		outcome := describe(Existing, known)
		outcome.Own = own
		return outcome, nil
	case c.Target.Type == target.WorkflowRun:
		return describe(Conflict, known), m.answer(*c.Sink, m.alreadyInvoked())
	case known.Status == Completed:
		return describe(Existing, known), m.answerLate(known, *c.Sink)
	case m.level >= feature.Level4 && c.Sink.Caller == known.ID && c.Sink.Life == known.Life:
		return describe(Existing, known), m.answer(*c.Sink, &waitsForItself)
	}
	outcome := describe(Existing, known)
	return outcome, m.wait(known, *c.Sink)
}

// known returns the invocation that has the ID, nil if there is none.
func (m *Machine) known(c *Invoke) (*Invocation, error) {
	if c.Fresh && m.level >= feature.Level4 {
		m.st.Absent(c.ID)
		return nil, nil
	}
	return m.invocation(c.ID)
}

// create stores the record and the Input entry and passes the invocation to admission.
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
	inv.initFlow()
	m.append(inv, journal.Input, c.Input)
	inv.Commands++
	if err := m.admit(inv, c.Input); err != nil {
		return Outcome{}, err
	}
	return describe(OK, inv), nil
}

// describe returns an outcome with the state of an invocation.
func describe(code Code, inv *Invocation) Outcome {
	return Outcome{Code: code, Status: inv.Status, Result: inv.Result, ExpiresAt: inv.ExpiresAt, StartAt: inv.StartAt}
}

// alreadyInvoked returns the result of calling a workflow whose run has started or ended.
func (m *Machine) alreadyInvoked() *journal.Result {
	if m.level >= feature.Level4 {
		return &workflowInvoked
	}
	return &workflowMethodInvoked
}

var (
	workflowInvoked       = journal.Result{Failure: &journal.Failure{Code: 409, Message: "the workflow was already invoked with this key"}}
	workflowMethodInvoked = journal.Result{Failure: &journal.Failure{Code: 409, Message: "the workflow method was already invoked"}}
)
