package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/partition/journal"
)

// alreadyCompleted is the result of completing a promise a second time.
var alreadyCompleted = journal.Result{Failure: &journal.Failure{Code: 409, Message: "promise was already completed"}}

// workflowPurged is the result for waiters of a promise whose workflow is purged.
var workflowPurged = journal.Result{Failure: &journal.Failure{Code: 410, Message: "the workflow was purged before the promise was completed"}}

// promise carries out a command on a durable promise, which belongs to the workflow's key.
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
		return m.answerPromiseRead(inv, journal.PeekPromiseCompletion, &c, p)
	case journal.CompletePromise:
		return m.completePromise(inv, &c, p)
	}
	if p.Result != nil {
		return m.answerPromiseRead(inv, journal.GetPromiseCompletion, &c, p)
	}
	if p.Waiting, err = m.stillWaiting(p.Waiting); err != nil {
		return err
	}
	if m.tooManyWaiters(p) {
		return m.answerPromise(inv, journal.GetPromiseCompletion, c.Completion, &tooManyWait)
	}
	p.Waiting = append(p.Waiting, Sink{inv.ID, inv.Life, c.Completion, journal.GetPromiseCompletion})
	m.st.PutPromise(o, c.Key, p)
	return nil
}

// completePromise stores the first result and answers the waiters.
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
		m.schedulePromiseAnswers(o, c.Key)
	}
	m.st.PutPromise(o, c.Key, Promise{Result: &c.Result, Waiting: rest})
	return m.answerPromise(inv, journal.CompletePromiseCompletion, c.Completion, nil)
}

// answerPromiseRead completes a command that reads a promise. If this entry may not copy the
// result, the command becomes a waiter.
func (m *Machine) answerPromiseRead(inv *Invocation, t journal.Type, c *journal.PromiseCommand, p Promise) error {
	if p.Result == nil || m.mayAnswer(p.Result) {
		return m.answerPromise(inv, t, c.Completion, p.Result)
	}
	if m.tooManyWaiters(p) {
		return m.answerPromise(inv, t, c.Completion, &tooManyWait)
	}
	o := inv.Target.Object()
	if len(p.Waiting) == 0 {
		m.schedulePromiseAnswers(o, c.Key)
	}
	p.Waiting = append(p.Waiting, Sink{inv.ID, inv.Life, c.Completion, t})
	m.st.PutPromise(o, c.Key, p)
	return nil
}

// tooManyWaiters reports whether a promise accepts no further waiters. Below feature level 4
// their number is not bounded.
func (m *Machine) tooManyWaiters(p Promise) bool {
	return m.level >= feature.Level4 && len(p.Waiting) >= m.bounds.sinks
}

// answerPromise completes a promise command immediately; without a result, with void.
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

const (
	// maxPurgedPromises bounds the bytes of promises that the purges of one log entry read;
	// the promise that exceeds it is the last.
	maxPurgedPromises = 4 << 20
	// sinkSize is the approximate size of a waiter in a promise.
	sinkSize = 32
)

// deletePromises deletes the promises of a workflow. Their waiters fail, because the
// promises can no longer be completed. From feature level 4 on, pending is true if waiters
// have not received their result yet, or if there are more promises than the log entry may
// read: then some are left.
func (m *Machine) deletePromises(o Object) (pending bool, err error) {
	var found []NamedPromise
	for p, err := range m.st.Promises(o) {
		if err != nil {
			return false, fmt.Errorf("read promises of %v: %w", o, err)
		}
		if m.level >= feature.Level4 && m.used.purgedBytes >= m.bounds.purgedPromises {
			pending = true
			break
		}
		m.used.purgedBytes += answerOverhead + len(p.Key) + sinkSize*len(p.Waiting)
		if p.Result != nil {
			m.used.purgedBytes += m.resultSize(p.Result)
		}
		found = append(found, p)
	}
	for _, p := range found {
		left, err := m.failWaiters(o, p)
		if err != nil {
			return false, err
		}
		if left {
			pending = true
		} else {
			m.st.DeletePromise(o, p.Key)
		}
	}
	return pending, nil
}

// failWaiters fails the waiters for a promise that is about to be deleted. If the log entry
// may not answer all of them, the promise is completed, and a timer answers the rest.
func (m *Machine) failWaiters(o Object, p NamedPromise) (left bool, err error) {
	switch {
	case len(p.Waiting) == 0:
		return false, nil
	case p.Result != nil: // its timer is due
		return true, nil
	}
	p.Waiting, err = m.answerSome(p.Waiting, &workflowPurged, m.mayPurge)
	if err != nil || len(p.Waiting) == 0 {
		return false, err
	}
	p.Result = &workflowPurged
	m.st.PutPromise(o, p.Key, p.Promise)
	m.schedulePromiseAnswers(o, p.Key)
	return true, nil
}

// mayPurge reports whether a purge may fail one more waiter.
func (m *Machine) mayPurge(r *journal.Result) bool {
	return m.level < feature.Level4 || m.mayAnswerByTimer(r)
}
