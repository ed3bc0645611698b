package machine

import (
	"fmt"

	"platform/internal/ids"
	"platform/partition/journal"
)

// fire carries out the timers that are registered and due. The leader's clock may
// run ahead of partition time, and may name timers that fired under another
// leader: those are ignored.
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
		case TimerPromise:
			err = m.answerOwedPromise(t.Name)
		default:
			err = m.fireOne(t)
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
			return m.forget(inv)
		}
	case TimerPurgeJournal:
		if inv.Status == Completed && inv.journalExpiresAt() == t.At {
			m.forgetJournal(inv)
			m.st.PutInvocation(inv)
		}
	case TimerAnswer:
		if inv.Status == Completed && len(inv.Sinks) > 0 {
			return m.answerOwed(inv)
		}
	}
	return nil
}

// wakeUp completes a Sleep.
func (m *Machine) wakeUp(inv *Invocation, sleep uint32) error {
	if inv.Status == Completed {
		return nil
	}
	inv.Sleeps--
	return m.notify(inv, slept(sleep))
}

func slept(sleep uint32) notification {
	return completion(journal.SleepCompletion, sleep, journal.NewVoid(sleep))
}

func sleepTimer(id ids.Invocation, c journal.SleepCommand) Timer {
	return Timer{At: c.WakeUpTime, Kind: TimerSleep, ID: id, Completion: c.Completion}
}

// purge forgets a completed invocation, or puts that off while answers are owed. With its
// run, a workflow forgets its state and promises, so that the same key may run again.
func (m *Machine) purge(inv *Invocation) error {
	if owes, err := m.owes(inv); err != nil || owes {
		if owes {
			m.purgeLater(inv)
		}
		return err
	}
	if inv.Length > 0 {
		m.st.DeleteJournal(inv.ID, inv.Length)
	}
	m.st.DeleteInvocation(inv.ID)
	if inv.Flow != nil {
		if err := m.uncount(inv); err != nil {
			return err
		}
	}
	if inv.Target.Type == WorkflowRun {
		o := inv.Target.Object()
		if err := m.forgetPromises(o); err != nil {
			return err
		}
		return m.clearState(o)
	}
	return nil
}
