package machine

import (
	"slices"

	"platform/internal/feature"
	"platform/internal/ids"
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

// attach answers with the result of an invocation, or lets the sink wait for it if
// that is what it wants.
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
	case inv == nil, inv.Target.Type == StateUpdate, m.forgotten(inv):
		return m.answer(c.Sink, &notFound)
	case inv.Status == Completed:
		return m.answerLate(inv, c.Sink)
	case c.Sink.Type == journal.GetInvocationOutputCompletion:
		return m.send(c.Sink.Caller, &Complete{Sink: c.Sink, Void: true})
	}
	return m.wait(inv, c.Sink)
}

// isNamed reports whether inv, found by its legacy id, is the one with a name. The
// idempotency key is the same then.
func isNamed(inv *Invocation, n journal.Named) bool {
	return inv.Target.SameAs(Target{Scope: n.Scope, Service: n.Service, Key: n.Key, Handler: n.Handler})
}

// maxSinks is how many invocations may wait for the result of one. They are part of
// its record, which is written as a whole with each progress.
const maxSinks = 10_000

// tooManyWait is what one more gets.
var tooManyWait = journal.Result{Failure: &journal.Failure{Code: 429, Message: "too many invocations wait for this result"}}

// wait lets a sink wait for the end of an invocation.
func (m *Machine) wait(inv *Invocation, sink Sink) error {
	sinks, err := m.stillWaiting(inv.Sinks)
	if err != nil {
		return err
	}
	if len(sinks) >= maxSinks {
		return m.answer(sink, &tooManyWait)
	}
	inv.Sinks = append(slices.Clip(sinks), sink)
	m.st.PutInvocation(inv)
	return nil
}

// stillWaiting leaves out who has ended meanwhile, as far as this partition knows. It
// looks only when the list has doubled, so that a long one costs little.
func (m *Machine) stillWaiting(all []Sink) ([]Sink, error) {
	const few = 16
	if n := len(all); n < few || n&(n-1) != 0 {
		return all, nil
	}
	var left []Sink
	for _, sink := range all {
		if m.shards.Of(sink.Caller.PartitionKey()) == m.shards.Self {
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
	return left, nil
}
