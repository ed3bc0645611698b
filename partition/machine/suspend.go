package machine

import (
	"fmt"

	"platform/partition/journal"
)

// suspend ends the attempt until what the handler waits for has happened. That may
// be so already, since notifications come while the handler decides; then it runs
// again at once and keeps its key throughout.
func (m *Machine) suspend(inv *Invocation, await *journal.Future) error {
	var failed error
	settled := func(id journal.NotificationID) journal.Settled {
		s, err := m.st.Notified(inv.ID, id)
		if err != nil {
			failed = fmt.Errorf("look up notification %v of %s: %w", id, inv.ID, err)
		}
		return s
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
// notification. Everything in the stored await was pending before it, so nothing
// else needs to be looked up.
func (m *Machine) reconsider(inv *Invocation, n notification) error {
	settled := func(id journal.NotificationID) journal.Settled {
		if id == n.id {
			return n.settled
		}
		return journal.Pending
	}
	if inv.Await.Over(settled) {
		return m.start(inv, nil)
	}
	if inv.Await.Has(n.id) {
		inv.Await = inv.Await.Prune(settled)
	}
	m.st.PutInvocation(inv)
	return nil
}
