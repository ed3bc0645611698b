package machine

import (
	"slices"

	"platform/partition/journal"
)

// notFound is what attaching to an unknown invocation gets.
var notFound = journal.Result{Failure: &journal.Failure{Code: 404, Message: "not found"}}

// waitsForItself is what attaching to oneself gets, which would never end.
var waitsForItself = journal.Result{Failure: &journal.Failure{Code: 409, Message: "an invocation cannot wait for its own result"}}

// attachTo asks the owner of another invocation for its result.
func (m *Machine) attachTo(inv *Invocation, t journal.Type, payload []byte) error {
	c, err := journal.ParseAttach(t, payload)
	if err != nil {
		return err
	}
	if c.Target == inv.ID && t == journal.AttachInvocation {
		n := completion(journal.AttachInvocationCompletion, c.Completion, journal.NewCompletion(c.Completion, waitsForItself))
		n.settled = journal.Failed
		_, err := m.record(inv, n)
		return err
	}
	sink := Sink{Caller: inv.ID, Life: inv.Life, Completion: c.Completion, Type: journal.AttachInvocationCompletion}
	if t == journal.GetInvocationOutput {
		sink.Type = journal.GetInvocationOutputCompletion
	}
	return m.send(c.Target, &Attach{c.Target, sink})
}

// attach answers with the result of an invocation, or lets the sink wait for it if
// that is what it wants.
func (m *Machine) attach(c *Attach) error {
	inv, err := m.invocation(c.Target)
	switch {
	case err != nil:
		return err
	case inv == nil, inv.Target.Type == StateUpdate:
		return m.answer(c.Sink, &notFound)
	case inv.Status == Completed:
		return m.answer(c.Sink, inv.Result)
	case c.Sink.Type == journal.GetInvocationOutputCompletion:
		return m.send(c.Sink.Caller, &Complete{Sink: c.Sink, Void: true})
	}
	inv.Sinks = append(slices.Clip(inv.Sinks), c.Sink)
	m.st.PutInvocation(inv)
	return nil
}
