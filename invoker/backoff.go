package invoker

import "platform/flowcontrol"

// shedLocked drops the record of a task that is backing off, if there are more than maxRecords. While
// an endpoint is down, that may concern all invocations of a node. The task keeps what it needs
// to wait for a slot, and its record is read again with the journal.
func (t *task) shedLocked() {
	if t.inv == nil || t.state != backingOff {
		return
	}
	records := &t.s.iv.backoffRecords
	if records.Add(1) <= int64(t.s.iv.slots.maxRecords) {
		t.backsOffWithRecord = true
		return
	}
	records.Add(-1)
	key, resumed := t.queueLocked()
	t.inv, t.vqueue, t.resumed = nil, key.Clone(), resumed
}

// queueLocked returns where the task waits for a slot, and whether it has been attempted before.
func (t *task) queueLocked() (key flowcontrol.QueueKey, resumed bool) {
	if t.inv == nil {
		return t.vqueue, t.resumed
	}
	return t.inv.VQueue(), t.inv.Length > 1
}
