package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/internal/target"
)

// fire carries out the timers that are registered and due. The leader's clock may be ahead
// of partition time, and it may name timers that fired under another leader: those are
// ignored.
func (m *Machine) fire(c *FireTimers) error {
	for _, t := range c.Timers {
		if t.At > m.now {
			continue
		}
		registered, err := m.st.HasTimer(t)
		if err != nil {
			return fmt.Errorf("look up timer of %s: %w", t.ID, err)
		}
		if !registered {
			continue
		}
		m.st.DeleteTimer(t)
		switch t.Kind {
		case TimerQueue:
			err = m.wakeQueues(t)
		case TimerRules:
			err = m.reevaluateFrom(t)
		case TimerPromise:
			err = m.answerPendingPromise(t.Name)
		default:
			err = m.fireOne(t)
		}
		if err == nil && m.level >= feature.Level4 {
			err = m.settle() // so that the bounds of the entry apply to the next one
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) fireOne(t Timer) error {
	inv, err := m.invocation(t.ID)
	if err != nil || inv == nil {
		return err
	}
	switch t.Kind {
	case TimerSleep:
		return m.wakeUp(inv, t.Completion)
	case TimerStart:
		if inv.Status == Scheduled {
			return m.admit(inv, nil)
		}
	case TimerPurge:
		if inv.Status == Completed && inv.ExpiresAt == t.At {
			_, err := m.expire(inv)
			return err
		}
	case TimerPurgeJournal:
		if inv.Status == Completed && inv.journalExpiresAt() == t.At {
			return m.purgeJournal(inv)
		}
	case TimerKill:
		m.used.kills++
		if inv.Status != Completed && inv.CreatedAt <= t.At { // a later one has only the same ID
			_, err := m.killFrom(inv, t.Completion)
			return err
		}
	case TimerUpdate:
		if inv.Status == Inboxed && inv.HoldsLock {
			return m.continueUpdate(inv, t)
		}
	case TimerDropSleeps:
		if inv.Status == Completed {
			return m.dropMoreSleeps(inv, t.Completion)
		}
	case TimerAnswer:
		if inv.Status == Completed && len(inv.Sinks) > 0 {
			return m.answerPending(inv)
		}
	}
	return nil
}

// purgeJournal deletes the journal of a completed invocation, or leaves this to its last
// pending sleep.
func (m *Machine) purgeJournal(inv *Invocation) error {
	pending, err := m.hasPendingSleeps(inv)
	if err == nil && !pending {
		m.deleteJournal(inv)
		m.st.PutInvocation(inv)
	}
	return err
}

// purge deletes a completed invocation, or delays this while answers or sleeps are pending. With its
// run, a workflow loses its state and promises, so that the same key may run again.
func (m *Machine) purge(inv *Invocation) (gone bool, err error) {
	pending, err := m.isNeeded(inv)
	if err == nil && !pending && inv.Target.Type == target.WorkflowRun {
		pending, err = m.deletePromises(inv.Target.Object())
	}
	if err != nil || pending {
		if pending {
			m.delayPurge(inv)
		}
		return false, err
	}
	if inv.Length > 0 {
		m.st.DeleteJournal(inv.ID, inv.Length)
	}
	m.deleteHistory(inv)
	m.st.DeleteInvocation(inv.ID)
	if inv.Flow != nil {
		if err := m.uncount(inv); err != nil {
			return false, err
		}
	}
	if inv.Target.Type == target.WorkflowRun {
		m.st.DeleteValues(inv.Target.Object())
	}
	return true, nil
}
