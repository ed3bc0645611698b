package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
)

// notFound is the result of attaching to an unknown invocation.
var notFound = journal.Result{Failure: &journal.Failure{Code: 404, Message: "not found"}}

// waitsForItself is the result of attaching to oneself, or calling oneself with the same
// idempotency key, which would never complete.
var waitsForItself = journal.Result{Failure: &journal.Failure{Code: 409, Message: "an invocation cannot wait for its own result"}}

// attachTo requests the result of another invocation from the partition that owns it.
func (m *Machine) attachTo(inv *Invocation, t journal.Type, payload []byte) error {
	c, err := journal.ParseAttach(t, payload)
	if err != nil {
		return err
	}
	if m.level < feature.Level2 && !c.Legacy.IsZero() {
		c.Target, c.Legacy, c.Named = c.Legacy, ids.Invocation{}, journal.Named{}
	}
	if t == journal.AttachInvocation && (c.Target == inv.ID || c.Legacy == inv.ID && isNamed(inv, c.Named)) {
		n := completion(journal.AttachInvocationCompletion, c.Completion, journal.NewCompletion(c.Completion, waitsForItself))
		n.settled = journal.Failed
		_, err := m.record(inv, n)
		return err
	}
	sink := Sink{Caller: inv.ID, Life: inv.Life, Completion: c.Completion, Type: journal.AttachInvocationCompletion}
	if t == journal.GetInvocationOutput {
		sink.Type = journal.GetInvocationOutputCompletion
	}
	return m.send(c.Target, &Attach{Target: c.Target, Sink: sink, Legacy: c.Legacy, Named: c.Named})
}

// attach answers with the result of an invocation or, if the sink asks for it, registers
// the sink as a waiter.
func (m *Machine) attach(c *Attach) error {
	inv, err := m.invocation(c.Target)
	if err == nil && inv == nil && !c.Legacy.IsZero() {
		if inv, err = m.invocation(c.Legacy); inv != nil && !isNamed(inv, c.Named) {
			inv = nil
		}
	}
	switch {
	case err != nil:
		return err
	case inv == nil, inv.Target.Type == target.StateUpdate, m.expired(inv):
		return m.answer(c.Sink, &notFound)
	case inv.Status == Completed:
		return m.answerLate(inv, c.Sink)
	case c.Sink.Type == journal.GetInvocationOutputCompletion:
		return m.send(c.Sink.Caller, &Complete{Sink: c.Sink, Void: true})
	}
	return m.wait(inv, c.Sink)
}

// isNamed reports whether inv, found by its legacy ID, has the given name. The idempotency
// key is then the same.
func isNamed(inv *Invocation, n journal.Named) bool {
	return inv.Target.SameAs(Target{Scope: n.Scope, Service: n.Service, Key: n.Key, Handler: n.Handler})
}

// maxSinks is how many invocations may wait for the result of one, or for one promise. They
// are part of its record, which is written as a whole at each change.
const maxSinks = 10_000

// tooManyWait is the result for waiters beyond maxSinks.
var tooManyWait = journal.Result{Failure: &journal.Failure{Code: 429, Message: "too many invocations wait for this result"}}

// wait registers a sink that receives the result when the invocation ends.
func (m *Machine) wait(inv *Invocation, sink Sink) error {
	sinks, err := m.stillWaiting(inv.Sinks)
	if err != nil {
		return err
	}
	if len(sinks) >= m.bounds.sinks {
		return m.answer(sink, &tooManyWait)
	}
	inv.Sinks = append(sinks, sink)
	m.st.PutInvocation(inv)
	return nil
}

// stillWaiting removes waiters that have ended, as far as this partition knows. It scans
// only when the length is a power of two, so that the cost per waiter stays constant. For the same
// reason, from feature level 4 on, it removes them only if they are at least an eighth: otherwise a
// list in which waiters are replaced would be scanned again soon, at each waiter in the worst case.
func (m *Machine) stillWaiting(all []Sink) ([]Sink, error) {
	const few = 16
	if n := len(all); n < few || n&(n-1) != 0 {
		return all, nil
	}
	var left []Sink
	for _, sink := range all {
		if m.shards.of(sink.Caller.PartitionKey()) == m.shards.Self {
			inv, err := m.invocation(sink.Caller)
			if err != nil {
				return nil, err
			}
			if inv == nil || inv.Status == Completed || inv.Life != sink.Life {
				continue
			}
		}
		left = append(left, sink)
	}
	if m.level >= feature.Level4 && len(all)-len(left) < len(all)/8 {
		return all, nil
	}
	return left, nil
}
