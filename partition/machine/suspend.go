package machine

import (
	"fmt"

	"platform/partition/journal"
)

// Signals that may come more than once, cancels and named ones, need care: the
// handler may have taken one and wait for the next, which the journal does not show.
// Were one that is there to wake it each time, it would never rest; were one never to
// count, it might sleep for ever.
//
// What was in the journal when the invocation was admitted is known to the handler.
// It would not have suspended on it, so by themselves these signals do not wake it.
// But as soon as anything that it waits for has come since, even if that alone does
// not do, all signals in the journal count. That may wake it too early, at most once
// for each notification, and never too late. For the same reason an await is stored
// whole when there are such signals: what a part of it came to depends on whether they
// have been taken.
//
// The same holds for a tree that may be over or not, depending on the order of what
// came: if nothing of it is new, the handler knew the order, and it is not over. Then
// anything of it that comes wakes the handler.

// suspend ends the attempt until what the handler waits for has happened. That may
// be so already, since notifications come while the handler decides; then it runs
// again at once and keeps its key, and its slot, throughout.
func (m *Machine) suspend(inv *Invocation, await *journal.Future) error {
	rest, err := m.remaining(inv, await)
	if err != nil {
		return err
	}
	if rest == nil {
		return m.start(inv, nil)
	}
	if err := inv.move(Suspended, m.now); err != nil {
		return err
	}
	inv.Await = rest
	return m.put(inv)
}

// remaining is what is left of an await at the suspension; nil if it is over.
func (m *Machine) remaining(inv *Invocation, await *journal.Future) (*journal.Future, error) {
	var failed error
	all := func(id journal.NotificationID) journal.Settled { return m.notified(inv, id, &failed) }
	once := func(id journal.NotificationID) journal.Settled {
		if id.Repeats() {
			return journal.Pending
		}
		return all(id)
	}
	over := await.Over(once)
	if failed == nil && over && !inv.Signalled && await.Certain(once) {
		return nil, nil
	}
	if over || inv.Signalled && await.Over(all) {
		if news, err := m.news(inv, await); news || err != nil {
			return nil, err
		}
	}
	switch {
	case !over && inv.Signalled:
		return await, failed
	case !over:
		return await.Prune(once), failed
	}
	if rest := await.Flat(once); !rest.Empty() {
		return rest, failed
	}
	return nil, failed // nothing else could ever wake it
}

// news reports whether anything in the await has come since inv was admitted.
func (m *Machine) news(inv *Invocation, await *journal.Future) (bool, error) {
	leaves := map[journal.NotificationID]bool{}
	for id := range await.Leaves() {
		leaves[id] = true
	}
	for i := inv.Seen; i < inv.Length; i++ {
		e, err := m.st.Entry(inv.ID, i)
		if err != nil {
			return false, fmt.Errorf("read entry %d of %s: %w", i, inv.ID, err)
		}
		if !e.Type.IsNotification() {
			continue
		}
		n, err := journal.ParseNotification(e.Payload)
		if err != nil {
			return false, fmt.Errorf("entry %d of %s: %w", i, inv.ID, err)
		}
		if leaves[n.ID] {
			return true, nil
		}
	}
	return false, nil
}

// reconsider looks whether a suspended invocation may run because of a new
// notification. Everything in a pruned await was pending before it.
func (m *Machine) reconsider(inv *Invocation, n notification) error {
	if !inv.Await.Has(n.id) {
		m.st.PutInvocation(inv)
		return nil
	}
	var failed error
	settled := func(id journal.NotificationID) journal.Settled {
		switch {
		case inv.Signalled:
			return m.notified(inv, id, &failed)
		case id == n.id:
			return n.settled
		}
		return journal.Pending
	}
	over := inv.Await.Over(settled)
	if failed != nil {
		return failed
	}
	if over {
		return m.admit(inv, nil)
	}
	if !inv.Signalled {
		inv.Await = inv.Await.Prune(settled)
	}
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
