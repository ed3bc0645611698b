package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// tables is a State with a function that ends the current batch.
type tables struct {
	machine.State
	settle func() machine.State
}

// implementations must behave the same: in memory; one transaction; one transaction per
// step; and one transaction and flush per step.
var implementations = map[string]func(t *testing.T) *tables{
	"memory": func(t *testing.T) *tables {
		s := machinetest.New()
		return &tables{s, func() machine.State { return s }}
	},
	"one transaction": func(t *testing.T) *tables {
		p := partition(t, open(t), 3)
		txn := p.Begin()
		return &tables{txn, func() machine.State { return txn }}
	},
	"many transactions": func(t *testing.T) *tables { return stepwise(t, false) },
	"written by each": func(t *testing.T) *tables {
		collect(t, 1)
		return stepwise(t, false)
	},
	"flushed": func(t *testing.T) *tables { return stepwise(t, true) },
	"in chunks": func(t *testing.T) *tables {
		cutAt(t, 5)
		return stepwise(t, true)
	},
}

func stepwise(t *testing.T, flushed bool) *tables {
	db := open(t)
	p := partition(t, db, 3)
	txn, index := p.Begin(), uint64(0)
	return &tables{txn, func() machine.State {
		index++
		require.NoError(t, txn.Commit(index, 1))
		if flushed {
			settle(t, db)
			flush(t, db)
			p.cache = newCache(p.db.opts.RecordCacheBytes)
		}
		txn = p.Begin()
		return txn
	}}
}

// TestContract specifies what the machine relies on. settle is called where a batch may end.
func TestContract(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, s *tables){
		"invocations": contractInvocations,
		"journals":    contractJournals,
		"histories":   contractHistories,
		"values":      contractValues,
		"promises":    contractPromises,
		"locks":       contractLocks,
		"timers":      contractTimers,
		"outbox":      contractOutbox,
		"flow":        contractFlow,
	} {
		for implementation, fresh := range implementations {
			t.Run(name+"/"+implementation, func(t *testing.T) { run(t, fresh(t)) })
		}
	}
}

func (s *tables) next() { s.State = s.settle() }

func testID(n byte) ids.Invocation { return ids.NewInvocation(uint64(n)<<56, [16]byte{n}) }

func contractInvocations(t *testing.T, s *tables) {
	a, b := testID(1), testID(2)
	find := func(id ids.Invocation) *machine.Invocation {
		inv, err := s.Invocation(id)
		require.NoError(t, err)
		return inv
	}
	require.Nil(t, find(a))
	s.PutInvocation(&machine.Invocation{ID: a, Status: machine.Invoked, Length: 1})
	require.EqualValues(t, 1, find(a).Length, "own writes are visible")
	s.next()
	require.Nil(t, find(b))

	changed := find(a)
	changed.Length = 9
	require.EqualValues(t, 1, find(a).Length, "changing a returned record has no effect without PutInvocation")
	s.PutInvocation(changed)
	require.EqualValues(t, 9, find(a).Length)
	s.next()
	require.EqualValues(t, 9, find(a).Length)

	done := find(a)
	done.Status = machine.Completed
	done.Result = &journal.Result{Value: []byte("r")}
	s.PutInvocation(done)
	s.PutInvocation(&machine.Invocation{ID: b, Status: machine.Suspended})
	s.next()
	require.Equal(t, machine.Completed, find(a).Status)
	require.Equal(t, []byte("r"), find(a).Result.Value)

	s.DeleteInvocation(a)
	require.Nil(t, find(a))
	s.next()
	require.Nil(t, find(a))
	require.Equal(t, machine.Suspended, find(b).Status)
	s.PutInvocation(&machine.Invocation{ID: a, Status: machine.Scheduled})
	s.next()
	require.Equal(t, machine.Scheduled, find(a).Status, "an ID may be reused")
}

func contractJournals(t *testing.T, s *tables) {
	for _, length := range []uint32{3, manyRows + 5} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { contractJournal(t, s, length) })
	}
}

func contractJournal(t *testing.T, s *tables, length uint32) {
	a, b := testID(1), testID(2)
	entry := func(i uint32) journal.Entry {
		return journal.Entry{Type: journal.Run, AppendedAt: int64(i), Payload: fmt.Append(nil, "payload", i)}
	}
	notes := []journal.NotificationID{journal.Completion(1), journal.NumberedSignal(1), journal.NamedSignal("1"), journal.NamedSignal("\x00")}
	for i := range length {
		notes = append(notes, journal.Completion(100+i))
	}
	write := func(id ids.Invocation) {
		for i := range length {
			s.AppendEntry(id, i, entry(i))
		}
		for i, n := range notes {
			s.PutNotified(id, n, journal.Settled(1+i%3))
		}
	}
	requireJournal := func(id ids.Invocation, there bool) {
		t.Helper()
		for i := range length {
			e, err := s.Entry(id, i)
			require.Equal(t, there, err == nil, "entry %d: %v", i, err)
			if there {
				require.Equal(t, entry(i), e)
			}
		}
		for i, n := range notes {
			got, err := s.Notified(id, n)
			require.NoError(t, err)
			want := journal.Pending
			if there {
				want = journal.Settled(1 + i%3)
			}
			require.Equal(t, want, got, n)
		}
	}
	requireJournal(a, false)
	write(a)
	requireJournal(a, true)
	write(b)
	s.next()
	requireJournal(a, true)
	_, err := s.Entry(a, length)
	require.Error(t, err)

	s.DeleteJournal(a, length)
	requireJournal(a, false)
	write(a)
	requireJournal(a, true)
	s.next()
	requireJournal(a, true)
	s.DeleteJournal(a, length)
	s.next()
	requireJournal(a, false)
	requireJournal(b, true)
	s.DeleteJournal(b, length)
	s.next()
}

func contractHistories(t *testing.T, s *tables) {
	for _, length := range []uint32{3, manyRows + 5} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { contractHistory(t, s, length) })
	}
}

func contractHistory(t *testing.T, s *tables, length uint32) {
	a, b := testID(1), testID(2)
	event := func(i uint32) machine.Event {
		return machine.Event{Kind: machine.AttemptFailed, At: int64(i), Failure: &machine.AttemptFailure{Message: fmt.Sprint("failure ", i)}}
	}
	write := func(id ids.Invocation) {
		for i := range length {
			s.PutEvent(id, i, event(i))
		}
	}
	requireEvents := func(id ids.Invocation, first, next uint32) {
		t.Helper()
		for i := range length {
			e, err := s.Event(id, i)
			require.Equal(t, first <= i && i < next, err == nil, "event %d: %v", i, err)
			if err == nil {
				require.Equal(t, event(i), e)
			}
		}
	}
	requireEvents(a, 0, 0)
	write(a)
	write(b)
	requireEvents(a, 0, length)
	s.next()
	requireEvents(a, 0, length)
	s.DeleteEvents(a, 0, 2)
	requireEvents(a, 2, length)
	s.next()
	requireEvents(a, 2, length)
	s.DeleteEvents(a, 2, length)
	requireEvents(a, 0, 0)
	s.next()
	requireEvents(a, 0, 0)
	requireEvents(b, 0, length)
	s.DeleteEvents(b, 0, length)
	s.next()
}

func contractValues(t *testing.T, s *tables) {
	plain := machine.Object{Service: "Counter", Key: "a"}
	others := []machine.Object{
		{Service: "Counter", Key: ""}, {Service: "Counter", Key: "a\x00"}, {Service: "Counter", Key: "a\x00\x01"}, {Service: "Counter", Key: "aa"},
		{Scope: "Counter", Service: "a"}, {Service: "Counter\x00a"}, {Scope: "s", Service: "Counter", Key: "a"},
	}
	s.PutValue(plain, []byte("b"), []byte("2"))
	s.PutValue(plain, []byte("a"), []byte("1"))
	for _, o := range others {
		s.PutValue(o, []byte("b"), []byte("other"))
	}
	list := func(o machine.Object) (all []string) {
		for e, err := range s.Values(o) {
			require.NoError(t, err)
			all = append(all, string(e.Key)+"="+string(e.Value))
		}
		return all
	}
	require.Equal(t, []string{"a=1", "b=2"}, list(plain))
	s.next()
	s.PutValue(plain, []byte(""), []byte(""))
	s.PutValue(plain, []byte("b\x00"), []byte("3"))
	s.PutValue(plain, []byte("a"), []byte("4"))
	s.DeleteValue(plain, []byte("b"))
	s.DeleteValue(plain, []byte("missing"))
	want := []string{"=", "a=4", "b\x00=3"}
	require.Equal(t, want, list(plain))
	s.next()
	require.Equal(t, want, list(plain))

	v, found, err := s.Value(plain, []byte(""))
	require.NoError(t, err)
	require.True(t, found, "an empty value exists")
	require.Empty(t, v)
	_, found, err = s.Value(plain, []byte("b"))
	require.NoError(t, err)
	require.False(t, found)

	for range s.Values(plain) { // the consumer may stop
		break
	}
	var keys [][]byte
	for e := range s.Values(plain) {
		keys = append(keys, e.Key)
	}
	for _, k := range keys {
		s.DeleteValue(plain, k)
	}
	require.Empty(t, list(plain))
	s.next()
	require.Empty(t, list(plain))
	for _, o := range others {
		require.Equal(t, []string{"b=other"}, list(o))
	}
}

func contractLocks(t *testing.T, s *tables) {
	o, other := machine.Object{Service: "Counter", Key: "k"}, machine.Object{Service: "Counter", Key: "k\x00"}
	lock := func() machine.Lock {
		l, err := s.Lock(o)
		require.NoError(t, err)
		return l
	}
	waiting := func(seq uint64) ids.Invocation {
		_, id, err := s.FirstWaiting(o, seq, seq+1)
		require.NoError(t, err)
		return id
	}
	require.Zero(t, lock())
	s.PutLock(o, machine.Lock{Holder: testID(1)})
	s.PutLock(other, machine.Lock{Holder: testID(9)})
	require.Equal(t, testID(1), lock().Holder)
	s.next()
	s.PutLock(o, machine.Lock{Holder: testID(1), Tail: 2})
	s.PutWaiting(o, 0, testID(2))
	s.PutWaiting(o, 1, testID(3))
	require.Equal(t, testID(3), waiting(1))
	s.next()
	require.EqualValues(t, 2, lock().Tail)
	require.Equal(t, testID(2), waiting(0))
	s.DeleteWaiting(o, 0)
	require.Zero(t, waiting(0))
	s.PutLock(o, machine.Lock{})
	require.Zero(t, lock())
	s.next()
	require.Zero(t, lock())
	require.Zero(t, waiting(0))
	require.Equal(t, testID(3), waiting(1))
	l, err := s.Lock(other)
	require.NoError(t, err)
	require.Equal(t, testID(9), l.Holder)
}

func contractTimers(t *testing.T, s *tables) {
	timer := machine.Timer{At: 5, Kind: machine.TimerPurge, ID: testID(1), Completion: 2}
	has := func(timer machine.Timer) bool {
		ok, err := s.HasTimer(timer)
		require.NoError(t, err)
		return ok
	}
	require.False(t, has(timer))
	s.PutTimer(timer)
	s.PutTimer(timer)
	require.True(t, has(timer))
	s.next()
	require.True(t, has(timer))
	for i, change := range []func(*machine.Timer){
		func(t *machine.Timer) { t.At++ }, func(t *machine.Timer) { t.Kind++ },
		func(t *machine.Timer) { t.ID = testID(2) }, func(t *machine.Timer) { t.Completion++ },
	} {
		other := timer
		change(&other)
		require.False(t, has(other), i)
	}
	s.DeleteTimer(timer)
	require.False(t, has(timer))
	s.next()
	require.False(t, has(timer))
}

func contractOutbox(t *testing.T, s *tables) {
	const to, other = 7, 8
	counter := func(read func(uint32) (uint64, error), peer uint32) uint64 {
		n, err := read(peer)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, counter(s.LastSent, to))
	for seq := range uint64(100) {
		s.PutOutgoing(to, seq+1, &machine.Invoke{ID: testID(byte(seq))})
		if slices.Contains([]uint64{3, 60}, seq) {
			s.next()
		}
	}
	s.PutOutgoing(other, 1, &machine.Complete{Sink: machine.Sink{Caller: testID(1)}})
	require.EqualValues(t, 100, counter(s.LastSent, to))
	s.DeleteOutgoing(to, 2)
	s.DeleteOutgoing(to, 2)
	s.next()
	s.DeleteOutgoing(to, 90)
	s.DeleteOutgoing(to, 50)
	s.next()
	require.EqualValues(t, 100, counter(s.LastSent, to), "sequence numbers are never reused")
	s.DeleteOutgoing(to, 1000)
	s.next()
	require.EqualValues(t, 100, counter(s.LastSent, to))
	require.EqualValues(t, 1, counter(s.LastSent, other))
	s.PutLastSent(other, 1<<32)
	require.EqualValues(t, 1<<32, counter(s.LastSent, other))
	s.next()
	s.PutOutgoing(other, 1<<32+1, &machine.Complete{Sink: machine.Sink{Caller: testID(1)}})
	s.next()
	s.DeleteOutgoing(other, 1<<32+1)
	s.next()
	require.EqualValues(t, 1<<32+1, counter(s.LastSent, other))

	require.Zero(t, counter(s.LastDelivered, to))
	s.PutLastDelivered(to, 5)
	require.EqualValues(t, 5, counter(s.LastDelivered, to))
	s.next()
	require.EqualValues(t, 5, counter(s.LastDelivered, to))
	require.Zero(t, counter(s.LastDelivered, other))
}
