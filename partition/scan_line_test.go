package partition

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
	"platform/partition/store"
)

var lineObject = machine.Object{Service: "Counter", Key: "a"}

// lineMember returns an invocation that waits for lineObject with a sequence number, or
// holds it if that is 0.
func lineMember(n int, place uint64) *machine.Invocation {
	inv := &machine.Invocation{ID: scanID(n), Status: machine.Inboxed, InboxedAt: int64(n), QueueSeq: place,
		Target: machine.Target{Service: lineObject.Service, Key: lineObject.Key, Handler: "h", Type: target.ObjectExclusive}}
	if place == 0 {
		inv.Status, inv.HoldsLock, inv.RunningAt = machine.Suspended, true, 7
	}
	return inv
}

// fillLine creates a holder of the object and waiters with the sequence numbers 1 to 9, of
// which the third was removed, and a holder of the same key in a scope.
func (s *scanned) fillLine() {
	s.change(func(txn *store.Txn) {
		txn.PutInvocation(lineMember(0, 0))
		txn.PutLock(lineObject, machine.Lock{Holder: scanID(0), Head: 1, Tail: 10})
		for place := uint64(1); place < 10; place++ {
			if place == 3 {
				continue
			}
			txn.PutInvocation(lineMember(int(place), place))
			txn.PutWaiting(lineObject, place, scanID(int(place)))
		}
		txn.PutLock(machine.Object{Scope: "s", Service: "Counter", Key: "a"}, machine.Lock{Holder: scanID(77)})
	})
}

func TestLockQueuesAreListed(t *testing.T) {
	s := newScanned(t)
	s.fillLine()
	rows, _, _ := s.all(Scan{Table: LockQueues, Detail: Whole}, nil)
	require.Len(t, rows, 1, "scoped objects have vqueues")
	q := rows[0].Queue
	require.Equal(t, ids.OfVQueue("", "", "Counter", "a"), q.ID)
	require.Equal(t, flowcontrol.QueueKey{Service: "Counter"}, q.Key)
	require.Equal(t, "a", q.Object)
	require.EqualValues(t, 8, q.Stages[flowcontrol.Inbox])
	require.EqualValues(t, 1, q.Stages[flowcontrol.Suspended])
	require.Equal(t, flowcontrol.Queued{ID: scanID(1), At: 1}, q.Head)
	require.Equal(t, flowcontrol.ByKey, q.Blocked.Cause)

	rows, _, _ = s.all(Scan{Table: LockQueues, Services: []string{"Other"}}, nil)
	require.Empty(t, rows)
}

func TestPositionsInLockQueues(t *testing.T) {
	s := newScanned(t)
	s.fillLine()
	for place, want := range map[int]uint64{1: 0, 2: 1, 4: 2, 9: 7} {
		for _, table := range []Table{Waiting, Invocations} {
			rows, _, _ := s.all(Scan{Table: table, ID: scanID(place), Ahead: true}, nil)
			require.Len(t, rows, 1)
			require.Equal(t, &want, rows[0].Ahead, "place %d", place)
		}
	}
	rows, _, _ := s.all(Scan{Table: Waiting, ID: scanID(2)}, nil)
	require.Nil(t, rows[0].Ahead, "not requested")
	rows, _, _ = s.all(Scan{Table: Invocations, ID: scanID(0), Ahead: true}, nil)
	require.Nil(t, rows[0].Ahead, "it is not queued")
	rows, _, _ = s.all(Scan{Table: Waiting, ID: scanID(0), Ahead: true}, nil)
	require.Empty(t, rows)
}

func TestHeadOfAVQueueMayWaitForItsKey(t *testing.T) {
	s := newScanned(t)
	key := flowcontrol.QueueKey{Scope: "s", Service: "Counter"}
	waiting := func(n int, object, limit string) *machine.Invocation {
		inv := lineMember(n, 1)
		inv.Target.Scope, inv.Target.Key, inv.Flow = "s", object, &machine.Flow{}
		inv.LimitKey = limit
		return inv
	}
	s.change(func(txn *store.Txn) {
		q := flowcontrol.VQueue{}
		q.Stages[flowcontrol.Inbox] = 2
		txn.PutVQueue(key, q)
		for object, inv := range map[string]*machine.Invocation{"a": waiting(6, "a", ""), "b": waiting(5, "b", ""), "c": waiting(4, "c", "other")} {
			txn.PutInvocation(inv)
			txn.PutWaiting(machine.Object{Scope: "s", Service: "Counter", Key: object}, 1, inv.ID)
		}
	})
	rows, _, _ := s.all(Scan{Table: Queues, Detail: Whole}, nil)
	require.Len(t, rows, 1)
	require.Equal(t, flowcontrol.Queued{ID: scanID(5), At: 5}, rows[0].Queue.Head)
	require.Equal(t, flowcontrol.ByKey, rows[0].Queue.Blocked.Cause)
}

func TestPositionsInVQueues(t *testing.T) {
	s := newScanned(t)
	key := flowcontrol.QueueKey{Scope: "s", Service: "S"}
	waiting := func(n int, priority uint8, place uint64) *machine.Invocation {
		return &machine.Invocation{ID: scanID(n), Status: machine.Inboxed, Priority: priority, QueueSeq: place, Flow: &machine.Flow{},
			Target: machine.Target{Scope: "s", Service: "S", Handler: "h"}}
	}
	s.change(func(txn *store.Txn) {
		q := flowcontrol.VQueue{Waiting: 5}
		q.Lanes[0], q.Lanes[2] = flowcontrol.Lane{Head: 2, Tail: 6}, flowcontrol.Lane{Head: 0, Tail: 2}
		txn.PutVQueue(key, q)
		for n, place := range []uint64{2, 4, 5} { // sequence number 3 was removed
			txn.PutInvocation(waiting(n, 0, place))
			txn.PutQueued(key, 0, place, flowcontrol.Queued{ID: scanID(n), At: int64(place) * flowcontrol.PriorityHeadStart})
		}
		for n, place := range []uint64{0, 1} { // they have waited two minutes longer
			txn.PutInvocation(waiting(10+n, 2, place))
			txn.PutQueued(key, 2, place, flowcontrol.Queued{ID: scanID(10 + n), At: 6 * flowcontrol.PriorityHeadStart})
		}
	})
	for n, want := range map[int]uint64{0: 0, 10: 1, 11: 2, 1: 3, 2: 4} {
		rows, _, _ := s.all(Scan{Table: Invocations, Detail: Whole, ID: scanID(n), Ahead: true}, nil)
		require.Len(t, rows, 1)
		require.Equal(t, &want, rows[0].Ahead, "invocation %d", n)
	}
}
