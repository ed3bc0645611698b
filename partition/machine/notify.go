package machine

import (
	"fmt"

	"platform/partition/journal"
)

// notification is a notification that is about to be appended to a journal.
type notification struct {
	typ     journal.Type
	id      journal.NotificationID
	settled journal.Settled
	payload []byte
}

// completion is the completion of the command with a completion ID.
func completion(t journal.Type, id uint32, payload []byte) notification {
	return notification{t, journal.Completion(id), journal.Succeeded, payload}
}

// append adds an entry to the journal of inv, which the caller must store.
func (m *Machine) append(inv *Invocation, t journal.Type, payload []byte) journal.Entry {
	e := journal.Entry{Type: t, Payload: payload, AppendedAt: m.now}
	m.st.AppendEntry(inv.ID, inv.Length, e)
	inv.Length++
	inv.ProgressAt, inv.ModifiedAt = m.now, m.now
	return e
}

// index records that a notification is in the journal. Completions and awakeables occur
// once; a second one is dropped. For repeatable signals the index says how all of them
// ended.
func (m *Machine) index(inv *Invocation, id journal.NotificationID, settled journal.Settled) (bool, error) {
	before := journal.Pending
	if inv.Length > inv.Commands { // its journal has notifications
		var err error
		if before, err = m.st.Notified(inv.ID, id); err != nil {
			return false, fmt.Errorf("look up notification %v of %s: %w", id, inv.ID, err)
		}
	}
	switch {
	case before != journal.Pending && !id.Repeats():
		return false, nil
	case before != journal.Pending && before != settled:
		settled = journal.Either
	}
	inv.Signalled = inv.Signalled || id.Repeats()
	m.st.PutNotified(inv.ID, id, settled)
	return true, nil
}

// record appends a notification to the journal of inv, which the caller must store, and
// notifies the attempt. It returns false for a duplicate, which is dropped.
func (m *Machine) record(inv *Invocation, n notification) (bool, error) {
	if added, err := m.index(inv, n.id, n.settled); !added {
		return false, err
	}
	place := inv.Length
	m.countSignal(inv, n.id, n.payload)
	e := m.append(inv, n.typ, n.payload)
	if inv.Status == Invoked {
		m.emit(&Notify{ID: inv.ID, Attempt: inv.Attempt, Index: place, Entry: e})
	}
	return true, nil
}

// notify appends a notification to the journal of inv, wakes it if its await is over, and
// stores it.
func (m *Machine) notify(inv *Invocation, n notification) error {
	added, err := m.record(inv, n)
	if err != nil {
		return err
	}
	if added && inv.Status == Suspended {
		return m.wakeIfOver(inv, n)
	}
	m.st.PutInvocation(inv)
	return nil
}
