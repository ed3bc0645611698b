package machine

import (
	"fmt"
	"slices"

	"platform/partition/journal"
)

// alreadyCompleted is what completing a promise a second time gets.
var alreadyCompleted = journal.Result{Failure: &journal.Failure{Code: 409, Message: "promise was already completed"}}

// workflowPurged is what those get who wait for a promise when its workflow is
// forgotten.
var workflowPurged = journal.Result{Failure: &journal.Failure{Code: 410, Message: "the workflow was purged before the promise was completed"}}

// promise carries out a command on a durable promise, which belongs to the
// workflow's key.
func (m *Machine) promise(inv *Invocation, t journal.Type, payload []byte) error {
	c, err := journal.ParsePromise(t, payload)
	if err != nil {
		return err
	}
	o := inv.Target.Object()
	p, err := m.st.Promise(o, c.Key)
	if err != nil {
		return fmt.Errorf("read promise %q of %v: %w", c.Key, o, err)
	}
	switch t {
	case journal.PeekPromise:
		return m.tellPromise(inv, journal.PeekPromiseCompletion, &c, p)
	case journal.CompletePromise:
		return m.completePromise(inv, &c, p)
	}
	if p.Result != nil {
		return m.tellPromise(inv, journal.GetPromiseCompletion, &c, p)
	}
	if p.Waiting, err = m.stillWaiting(p.Waiting); err != nil {
		return err
	}
	p.Waiting = append(slices.Clip(p.Waiting), Sink{inv.ID, inv.Life, c.Completion, journal.GetPromiseCompletion})
	m.st.PutPromise(o, c.Key, p)
	return nil
}

// completePromise stores the result, the first one, and tells all who wait.
func (m *Machine) completePromise(inv *Invocation, c *journal.PromiseCommand, p Promise) error {
	if p.Result != nil {
		return m.answerPromise(inv, journal.CompletePromiseCompletion, c.Completion, &alreadyCompleted)
	}
	o := inv.Target.Object()
	rest, err := m.answerSome(p.Waiting, &c.Result, m.mayAnswer)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		m.owePromise(o, c.Key)
	}
	m.st.PutPromise(o, c.Key, Promise{Result: &c.Result, Waiting: rest})
	return m.answerPromise(inv, journal.CompletePromiseCompletion, c.Completion, nil)
}

// tellPromise answers a command that asks for a promise, unless that has a result that
// this entry may not copy: then the command waits for its turn.
func (m *Machine) tellPromise(inv *Invocation, t journal.Type, c *journal.PromiseCommand, p Promise) error {
	if p.Result == nil || m.mayAnswer(p.Result) {
		return m.answerPromise(inv, t, c.Completion, p.Result)
	}
	o := inv.Target.Object()
	if len(p.Waiting) == 0 {
		m.owePromise(o, c.Key)
	}
	p.Waiting = append(slices.Clip(p.Waiting), Sink{inv.ID, inv.Life, c.Completion, t})
	m.st.PutPromise(o, c.Key, p)
	return nil
}

// answerPromise answers a command at once; without a result with void.
func (m *Machine) answerPromise(inv *Invocation, t journal.Type, id uint32, r *journal.Result) error {
	n := completion(t, id, journal.NewVoid(id))
	if r != nil {
		n.payload = journal.NewCompletion(id, *r)
		if r.Failure != nil {
			n.settled = journal.Failed
		}
	}
	_, err := m.record(inv, n)
	return err
}

// forgetPromises deletes the promises of a workflow. Who waits for one is told, for
// there will be nobody to complete it.
func (m *Machine) forgetPromises(o Object) error {
	var found []NamedPromise
	for p, err := range m.st.Promises(o) {
		if err != nil {
			return fmt.Errorf("read promises of %v: %w", o, err)
		}
		found = append(found, p)
	}
	for _, p := range found {
		m.st.DeletePromise(o, p.Key)
		for _, sink := range p.Waiting {
			if err := m.answer(sink, &workflowPurged); err != nil {
				return err
			}
		}
	}
	return nil
}
