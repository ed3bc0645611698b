package partition

import (
	"platform/flowcontrol"
	"platform/partition/machine"
	"platform/partition/store"
)

// ahead returns how many invocations are ahead of inv in its queue: the queue for its key
// or, once it has the key or needs none, its vqueue. It is nil if inv is not queued. See
// flowcontrol.Ahead for its accuracy.
func ahead(view *store.View, inv *machine.Invocation) (*uint64, error) {
	var n uint64
	var err error
	switch {
	case inv.Status != machine.Inboxed:
		return nil, nil
	case inv.WaitsForKey():
		n, err = aheadForKey(view, inv)
	case inv.Flow != nil:
		n, err = aheadForSlot(view, inv.VQueue(), inv)
	}
	return &n, err
}

func aheadForSlot(view *store.View, key flowcontrol.QueueKey, inv *machine.Invocation) (uint64, error) {
	q, err := view.VQueue(key)
	if err != nil {
		return 0, err
	}
	entry, err := view.Queued(key, inv.Priority, inv.QueueSeq)
	if err != nil {
		return 0, err
	}
	return flowcontrol.Ahead(view, key, &q, inv.Priority, inv.QueueSeq, entry.At)
}

func aheadForKey(view *store.View, inv *machine.Invocation) (uint64, error) {
	o := inv.Target.Object()
	lock, err := view.Lock(o)
	if err != nil {
		return 0, err
	}
	return waitingFor(view, o, lock.Head, inv.QueueSeq)
}

// waitingFor returns how many invocations wait for a key in a range of sequence numbers. If
// the range is too large to scan, gaps are counted as well.
func waitingFor(view *store.View, o machine.Object, from, before uint64) (uint64, error) {
	if before <= from {
		return 0, nil
	}
	if before-from > flowcontrol.MaxCounted {
		return before - from, nil
	}
	return view.WaitingBetween(o, from, before)
}
