package partition

import (
	"platform/flowcontrol"
	"platform/partition/machine"
	"platform/partition/store"
)

// ahead is how many stand before an invocation in the line that it waits in: that for
// its key or, once it has the key or needs none, that of its vqueue. It is nil for one
// that stands in no line. See flowcontrol.Ahead for how exact it is.
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
	who, err := view.Queued(key, inv.Priority, inv.QueueSeq)
	if err != nil {
		return 0, err
	}
	return flowcontrol.Ahead(view, key, &q, inv.Priority, inv.QueueSeq, who.At)
}

func aheadForKey(view *store.View, inv *machine.Invocation) (uint64, error) {
	o := inv.Target.Object()
	lock, err := view.Lock(o)
	if err != nil {
		return 0, err
	}
	return waitingFor(view, o, lock.Head, inv.QueueSeq)
}

// waitingFor is how many wait for a key at some places, those that have left included
// if there are too many places to look at.
func waitingFor(view *store.View, o machine.Object, from, before uint64) (uint64, error) {
	if before <= from {
		return 0, nil
	}
	if before-from > flowcontrol.MaxCounted {
		return before - from, nil
	}
	return view.WaitingBetween(o, from, before)
}
