package machine

import (
	"fmt"

	"platform/partition/journal"
)

// Signals that may come more than once, cancels and named ones, need care: the
// handler may have taken one and wait for the next, which the journal does not show.
// Were one that is there already to wake it each time, it would never rest. So one
// counts at a suspension only if it came since the invocation was admitted, when the
// handler may not have seen it. From then on whatever new that the handler waits for
// makes the old ones count as well, which may wake it too early but never too late.

// suspend ends the attempt until what the handler waits for has happened. That may
// be so already, since notifications come while the handler decides; then it runs
// again at once and keeps its key throughout.
func (m *Machine) suspend(inv *Invocation, await *journal.Future) error {
	var failed error
	settled := func(id journal.NotificationID) journal.Settled {
		if id.Repeats() && !inv.Fresh {
			return journal.Pending
		}
		return m.notified(inv, id, &failed)
	}
	over := await.Over(settled)
	if failed != nil {
		return failed
	}
	if over {
		return m.start(inv, nil)
	}
	if err := inv.move(Suspended, m.now); err != nil {
		return err
	}
	inv.Await = await.Prune(settled)
	m.st.PutInvocation(inv)
	return failed
}

// reconsider looks whether a suspended invocation may run because of a new
// notification. Everything in the stored await was pending before it, or is a signal
// that may come again.
func (m *Machine) reconsider(inv *Invocation, n notification) error {
	if !inv.Await.Has(n.id) {
		m.st.PutInvocation(inv)
		return nil
	}
	var failed error
	settled := func(id journal.NotificationID) journal.Settled {
		switch {
		case id == n.id:
			return n.settled
		case inv.Signalled && id.Repeats():
			return m.notified(inv, id, &failed)
		}
		return journal.Pending
	}
	over := inv.Await.Over(settled)
	if failed != nil {
		return failed
	}
	if over {
		return m.start(inv, nil)
	}
	inv.Await = inv.Await.Prune(func(id journal.NotificationID) journal.Settled {
		if id == n.id {
			return n.settled
		}
		return journal.Pending
	})
	m.st.PutInvocation(inv)
	return nil
}

// notified looks up a notification; failed gets the error, if any.
func (m *Machine) notified(inv *Invocation, id journal.NotificationID, failed *error) journal.Settled {
	s, err := m.st.Notified(inv.ID, id)
	if err != nil {
		*failed = fmt.Errorf("look up notification %v of %s: %w", id, inv.ID, err)
	}
	return s
}
