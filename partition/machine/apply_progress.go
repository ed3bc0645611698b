package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/partition/journal"
)

// progress stores what an attempt achieved. Progress of an older attempt, and progress that
// breaks a rule, is refused as a whole, before the first step takes effect.
func (m *Machine) progress(c *Progress) (Outcome, error) {
	inv, err := m.invocation(c.ID)
	if err != nil {
		return Outcome{}, err
	}
	if inv == nil || inv.Status != Invoked || inv.Attempt != c.Attempt {
		return Outcome{Code: Stale}, nil
	}
	if !valid(inv, c.Steps) {
		return Outcome{Code: Invalid}, nil
	}
	if inv.Pin == (Pin{}) {
		inv.Pin = c.Pin
	}
	if c.Errors > 0 && inv.Flow != nil {
		f := *inv.Flow
		f.Errors += c.Errors
		inv.Flow = &f
	}
	if c.Failed != (FailedAttempts{}) {
		inv.Failed = c.Failed
	}
	for i := range c.Steps {
		stored, err := m.step(inv, c.Steps, i)
		if stored || err != nil {
			return Outcome{}, err
		}
	}
	m.st.PutInvocation(inv)
	return Outcome{}, nil
}

// step carries out one step. The steps that end an attempt, which come last, store inv.
func (m *Machine) step(inv *Invocation, steps []Step, i int) (stored bool, err error) {
	s := &steps[i]
	m.recordCause(inv, s.Cause)
	switch s.Kind {
	case StepCommand:
		return false, m.journalCommand(inv, s)
	case StepRunCompletion:
		return false, m.runCompletion(inv, s)
	case StepSuspend:
		if inv.Pausing {
			return true, m.pause(inv, nil)
		}
		return true, m.suspend(inv, s.Await)
	case StepEnd:
		return true, m.end(inv, steps)
	case StepRetry:
		return false, m.recordFailure(inv, s)
	case StepFail:
		if err := m.recordFailure(inv, s); err != nil {
			return true, err
		}
		return true, m.complete(inv, &journal.Result{Failure: &journal.Failure{Code: s.Failure.Code, Message: s.Failure.Message}})
	case StepPause:
		return true, m.pauseByAttempt(inv, s)
	case StepYield:
		if inv.Pausing {
			return true, m.pause(inv, s.Failure)
		}
		return true, m.start(inv, nil)
	}
	return true, fmt.Errorf("step kind %d: %w", s.Kind, errUnknownCommand)
}

// pauseByAttempt pauses after the last attempt that the retry policy allows. A cancel that
// has arrived since the admission would have resumed the paused invocation, and the attempt
// may not have seen it, so another one follows.
func (m *Machine) pauseByAttempt(inv *Invocation, s *Step) error {
	if inv.Pausing {
		return m.pause(inv, s.Failure)
	}
	if m.level >= feature.Level4 {
		if cancelled, err := m.cancelledSince(inv); err != nil || cancelled {
			if err == nil {
				err = m.retryAfter(inv, s)
			}
			return err
		}
	}
	m.recordPause(inv, causeOf(s), "", "")
	if inv.LastPause != nil {
		inv.LastPause.Attempts = s.Attempts
	}
	return m.pause(inv, s.Failure)
}

// retryAfter starts another attempt after a failed one.
func (m *Machine) retryAfter(inv *Invocation, s *Step) error {
	if err := m.recordFailure(inv, s); err != nil {
		return err
	}
	return m.start(inv, nil)
}

// recordFailure adds the failure of an attempt to the history.
func (m *Machine) recordFailure(inv *Invocation, s *Step) error {
	if s.Failure == nil {
		return nil
	}
	return m.recordEvent(inv, Event{Kind: AttemptFailed, Failure: s.Failure, Attempts: s.Attempts})
}

// cancelledSince reports whether a cancel has arrived since inv was admitted.
func (m *Machine) cancelledSince(inv *Invocation) (bool, error) {
	cancel := journal.NumberedSignal(journal.CancelSignal)
	if how, err := m.st.Notified(inv.ID, cancel); err != nil || how == journal.Pending {
		if err != nil {
			err = fmt.Errorf("look up cancel of %s: %w", inv.ID, err)
		}
		return false, err
	}
	return m.arrivedSince(inv, &journal.Future{Signals: []uint32{cancel.Index}})
}

// causeOf returns why an attempt that was not asked to pause does so.
func causeOf(s *Step) PauseCause {
	if s.Unretryable {
		return FailedUnretryably
	}
	return AttemptsUsedUp
}

// runCompletion stores the result of a run. A second result for the same run is invalid;
// the first is kept.
func (m *Machine) runCompletion(inv *Invocation, s *Step) error {
	content, err := journal.ParseNotification(s.Payload)
	if err != nil {
		return fmt.Errorf("run completion of %s: %w", inv.ID, err)
	}
	n := completion(journal.RunCompletion, s.Completion, s.Payload)
	n.settled = content.Settled()
	_, err = m.record(inv, n)
	return err
}

// pause makes the invocation wait for an operator. It keeps its key, because its work under
// the key is unfinished, and releases its slot.
func (m *Machine) pause(inv *Invocation, why *AttemptFailure) error {
	if err := inv.move(Paused, m.now); err != nil {
		return err
	}
	inv.Failure, inv.Await, inv.AwaitReduced, inv.Pausing = why, nil, false, false
	if inv.repinning() {
		return m.put(inv)
	}
	if err := m.recordEvent(inv, Event{Kind: EnteredPause, Failure: why, Pause: inv.LastPause}); err != nil {
		return err
	}
	return m.put(inv)
}
