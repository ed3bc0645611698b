package invoker

import (
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// notificationQueue ensures that the endpoint gets each notification once and in order, in the
// replay or after it.
type notificationQueue struct {
	reading bool                // the journal is being read: it may lack notifications that arrive now
	early   []*machine.Notify   // arrived while reading
	next    uint32              // lower bound of the next notification's index
	acks    map[uint32]struct{} // completion IDs of runs whose result needs only an ack; nil: none
}

// wantAck records that the result of a run needs only an ack, since the handler has it.
func (q *notificationQueue) wantAck(completion uint32) {
	if q.acks == nil {
		q.acks = map[uint32]struct{}{}
	}
	q.acks[completion] = struct{}{}
}

// notifyLocked writes a notification, once and in order.
func (a *attempt) notifyLocked(n *machine.Notify) {
	if a.t.state == loading {
		if a.notifications.reading {
			a.notifications.early = append(a.notifications.early, n)
		}
		return
	}
	if n.Index < a.notifications.next || a.t.state != streaming {
		return // already replayed, or left to the next attempt's replay
	}
	if !a.memory.send(len(n.Entry.Payload)) {
		a.t.moveLocked(suspend) // the endpoint does not read; the next attempt replays the notification
		return
	}
	a.notifications.next = n.Index + 1
	a.touchLocked()
	if a.plan.version >= protocol.V7 {
		a.handler.notified(n)
	}
	if n.Entry.Type == journal.RunCompletion && len(a.notifications.acks) > 0 && a.acknowledgeLocked(n.Entry.Payload) {
		return
	}
	b := make([]byte, 0, protocol.HeaderLen+min(len(n.Entry.Payload), smallPayload))
	a.stream.Write(appendEntry(b, nil, a.plan.wire(&n.Entry))...)
}

// acknowledgeLocked sends an ack for a proposal of this attempt that requested only that.
func (a *attempt) acknowledgeLocked(payload []byte) bool {
	n, err := journal.ParseNotification(payload)
	if err != nil {
		return false
	}
	if _, proposed := a.notifications.acks[n.ID.Index]; !proposed {
		return false
	}
	delete(a.notifications.acks, n.ID.Index)
	a.stream.Write(protocol.AppendRunAck(nil, n.ID.Index))
	return true
}
