package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/partition/journal"
)

// Repeatable signals (cancels and named signals) need care: the handler may have consumed
// one and wait for the next, which the journal does not show. If a delivered signal always
// woke the handler, it would spin; if it never did, it could sleep forever.
//
// The handler knows everything that was in the journal when the invocation was admitted. It
// would not have suspended on it, so by themselves these signals do not wake it. But as
// soon as anything that it awaits has arrived since, even if that alone is not sufficient,
// all signals in the journal count. That may wake it too early, at most once per
// notification, but never too late. For the same reason such signals stay in a stored await:
// the result of a part of it depends on whether they have been consumed. Everything else that
// has arrived is removed (AwaitReduced), so that it need not be looked up again. Below feature
// level 4 the await is stored whole if there are such signals.
//
// The same holds for an await that may be over or not, depending on the order of arrival:
// if nothing in it is new, the handler knew the order, and the await is not over. Then any
// new arrival wakes the handler.

// suspend ends the attempt until the await of the handler is over. It may already be over,
// since notifications arrive while the handler decides; then it runs again immediately and
// keeps its key and its slot.
func (m *Machine) suspend(inv *Invocation, await *journal.Future) error {
	if !m.mayEvaluate() {
		return m.start(inv, nil)
	}
	rest, reduced, err := m.remaining(inv, await)
	if err != nil {
		return err
	}
	if rest == nil {
		return m.start(inv, nil)
	}
	if err := inv.move(Suspended, m.now); err != nil {
		return err
	}
	inv.Await, inv.AwaitReduced = rest, reduced && m.level >= feature.Level4
	return m.put(inv)
}

const (
	// maxLookups bounds the notifications that one log entry looks up to evaluate awaits; the
	// await that exceeds it is the last. From feature level 4 on, further handlers that suspend
	// or wait run instead, and suspend again in a later entry.
	maxLookups = 128 << 10
	// leavesPerLookup is how many leaves or nodes of an await take as long to evaluate as a lookup.
	leavesPerLookup = 64
)

func (m *Machine) mayEvaluate() bool {
	return m.level < feature.Level4 || m.used.lookups < m.bounds.lookups
}

// remaining returns the pending part of an await at the suspension; nil if it is over. reduced
// means that everything in it is pending, except repeatable signals.
func (m *Machine) remaining(inv *Invocation, await *journal.Future) (rest *journal.Future, reduced bool, err error) {
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
		return nil, false, nil
	}
	if over || inv.Signalled && await.Over(all) {
		if arrived, err := m.arrivedSince(inv, await); arrived || err != nil {
			return nil, false, err
		}
	}
	switch {
	case !over && inv.Signalled && (m.level < feature.Level4 || await.Depth() > maxReducedDepth):
		return await, false, failed
	case !over && inv.Signalled:
		return await.Reduce(once), true, failed
	case !over:
		return await.Prune(once), true, failed
	}
	if rest := await.Flat(once); !rest.Empty() {
		return rest, true, failed
	}
	return nil, false, failed // nothing else could ever wake it
}

// maxReducedDepth is the depth up to which an await is reduced, which may add a few levels.
const maxReducedDepth = journal.MaxDepth - 8

// arrivedSince reports whether anything in the await has arrived since inv was admitted. From
// feature level 4 on it is also true if the log entry may not read as much as was appended since:
// waking the handler costs one attempt, after whose admission little is left to read.
func (m *Machine) arrivedSince(inv *Invocation, await *journal.Future) (bool, error) {
	leaves := map[journal.NotificationID]bool{}
	for id := range await.Leaves() {
		leaves[id] = true
	}
	for i := inv.Seen; i < inv.Length; i++ {
		if !m.mayRead() {
			return true, nil
		}
		e, err := m.st.Entry(inv.ID, i)
		if err != nil {
			return false, fmt.Errorf("read entry %d of %s: %w", i, inv.ID, err)
		}
		m.used.journalReads += entryOverhead + len(e.Payload)
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

// wakeIfOver admits a suspended invocation if a new notification ends its await. Everything
// in a pruned await was pending before the notification.
func (m *Machine) wakeIfOver(inv *Invocation, n notification) error {
	cost := inv.Await.Size() / leavesPerLookup
	if cost > 0 && !m.mayEvaluate() { // even to search for the notification
		return m.admit(inv, nil)
	}
	m.used.lookups += cost
	if !inv.Await.Has(n.id) {
		m.st.PutInvocation(inv)
		return nil
	}
	if !m.mayEvaluate() {
		return m.admit(inv, nil)
	}
	if !inv.Signalled {
		rest, over := inv.Await.Arrive(n.id, n.settled)
		if over {
			return m.admit(inv, nil)
		}
		inv.Await = rest
		m.st.PutInvocation(inv)
		return nil
	}
	var failed error
	settled := func(id journal.NotificationID) journal.Settled {
		switch {
		case id.Repeats() || !inv.AwaitReduced:
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
	if inv.AwaitReduced && !n.id.Repeats() {
		inv.Await = inv.Await.Reduce(settled)
	}
	m.st.PutInvocation(inv)
	return nil
}

// notified looks up a notification; an error is stored in failed.
func (m *Machine) notified(inv *Invocation, id journal.NotificationID, failed *error) journal.Settled {
	m.used.lookups++
	s, err := m.st.Notified(inv.ID, id)
	if err != nil {
		*failed = fmt.Errorf("look up notification %v of %s: %w", id, inv.ID, err)
	}
	return s
}
