package store

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// world is the small set of ids, objects and so on that histories are about, so
// that operations meet.
type world struct {
	events map[ids.Invocation]machine.History
	length map[ids.Invocation]uint32
	sent   map[uint32]uint64
	seq    uint64
}

var worldKeys = []string{"", "a", "a\x00", "a\x00\x01", "a\x00\xff", "b", "\xff\xff"}

// countPromises counts the promises of all objects there are.
func (w *world) countPromises(s machine.State) (n int) {
	for _, scope := range worldKeys {
		for _, service := range worldKeys {
			for _, key := range worldKeys {
				for range s.Promises(machine.Object{Scope: scope, Service: service, Key: key}) {
					n++
				}
			}
		}
	}
	return n
}

func drawKey(t *rapid.T, label string) string { return rapid.SampledFrom(worldKeys).Draw(t, label) }

func drawObject(t *rapid.T) machine.Object {
	if rapid.Bool().Draw(t, "common") {
		return machine.Object{Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")}
	}
	return machine.Object{Scope: drawKey(t, "scope"), Service: drawKey(t, "service"), Key: drawKey(t, "key")}
}

func drawStream(t *rapid.T) machine.Stream {
	return machine.Stream{
		Subscription: drawKey(t, "subscription"), Incarnation: rapid.Uint64Range(0, 2).Draw(t, "incarnation"),
		Topic: drawKey(t, "topic"), TopicID: [16]byte{rapid.ByteRange(0, 1).Draw(t, "topic id")}, Partition: rapid.Uint32Range(0, 1).Draw(t, "partition"),
	}
}

func drawID(t *rapid.T) ids.Invocation { return testID(rapid.ByteRange(1, 4).Draw(t, "id")) }

var worldNotes = []journal.NotificationID{
	journal.Completion(1), journal.Completion(256), journal.NumberedSignal(1), journal.NamedSignal("a"), journal.NamedSignal("a\x00"),
}

func drawNote(t *rapid.T) journal.NotificationID {
	return rapid.SampledFrom(worldNotes).Draw(t, "note")
}

// unused reports whether there is nothing that belongs to an ID.
func (w *world) unused(id ids.Invocation, twin machine.State) bool {
	inv, _ := twin.Invocation(id)
	return inv == nil && w.length[id] == 0 && !slices.ContainsFunc(worldNotes, func(n journal.NotificationID) bool {
		how, _ := twin.Notified(id, n)
		return how != journal.Pending
	})
}

func drawTimer(t *rapid.T) machine.Timer {
	return machine.Timer{
		At: rapid.Int64Range(-3, 3).Draw(t, "at"), Kind: machine.TimerKind(rapid.ByteRange(0, 2).Draw(t, "timer")),
		ID: drawID(t), Completion: rapid.Uint32Range(0, 2).Draw(t, "completion"),
		Name: rapid.SampledFrom([]string{"", "", "s", "s/a"}).Draw(t, "name"),
	}
}

// operations apply the same drawn change to several tables.
var operations = map[string]func(t *rapid.T, w *world, all ...machine.State){
	"put invocation": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		inv := machine.Invocation{ID: drawID(t), Status: machine.Status(rapid.ByteRange(1, 6).Draw(t, "status")), Attempt: w.seq}
		fresh := w.unused(inv.ID, all[0]) && rapid.Bool().Draw(t, "fresh")
		for _, s := range all {
			if fresh {
				s.Absent(inv.ID)
			}
			copied := inv
			s.PutInvocation(&copied)
		}
	},
	"delete invocation": func(t *rapid.T, _ *world, all ...machine.State) {
		id := drawID(t)
		for _, s := range all {
			s.DeleteInvocation(id)
		}
	},
	"append entries": func(t *rapid.T, w *world, all ...machine.State) {
		id := drawID(t)
		for range rapid.SampledFrom([]int{1, 2, manyRows}).Draw(t, "entries") {
			w.seq++
			for _, s := range all {
				s.AppendEntry(id, w.length[id], journal.Entry{Type: journal.Run, AppendedAt: int64(w.seq), Payload: fmt.Append(nil, w.seq)})
			}
			w.length[id]++
		}
	},
	"delete journal": func(t *rapid.T, w *world, all ...machine.State) {
		id := drawID(t)
		for _, s := range all {
			s.DeleteJournal(id, w.length[id])
		}
		w.length[id] = 0
	},
	"put events": func(t *rapid.T, w *world, all ...machine.State) {
		id := drawID(t)
		h := w.events[id]
		for range rapid.SampledFrom([]int{1, 2, manyRows}).Draw(t, "events") {
			for _, s := range all {
				s.PutEvent(id, h.Next, machine.Event{Kind: machine.AttemptFailed, Attempts: h.Next + 1})
			}
			h.Next++
		}
		w.events[id] = h
	},
	"delete events": func(t *rapid.T, w *world, all ...machine.State) {
		id := drawID(t)
		h := w.events[id]
		first := h.First
		h.First += rapid.Uint32Range(0, h.Next-h.First).Draw(t, "events")
		for _, s := range all {
			s.DeleteEvents(id, first, h.First)
		}
		w.events[id] = h
	},
	"put notified": func(t *rapid.T, _ *world, all ...machine.State) {
		id, note, how := drawID(t), drawNote(t), journal.Settled(rapid.ByteRange(1, 3).Draw(t, "how"))
		for _, s := range all {
			s.PutNotified(id, note, how)
		}
	},
	"put value": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		o, key := drawObject(t), drawKey(t, "name")
		for _, s := range all {
			s.PutValue(o, []byte(key), fmt.Append(nil, w.seq))
		}
	},
	"delete value": func(t *rapid.T, _ *world, all ...machine.State) {
		o, key := drawObject(t), drawKey(t, "name")
		for _, s := range all {
			s.DeleteValue(o, []byte(key))
		}
	},
	"put values": func(t *rapid.T, w *world, all ...machine.State) { // more than are deleted one by one
		w.seq++
		o := drawObject(t)
		for i := range manyRows {
			for _, s := range all {
				s.PutValue(o, []byte{byte(i)}, fmt.Append(nil, w.seq))
			}
		}
	},
	"delete values": func(t *rapid.T, _ *world, all ...machine.State) {
		o := drawObject(t)
		for _, s := range all {
			s.DeleteValues(o)
		}
	},
	"put promise": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		o, key, p := drawObject(t), drawKey(t, "name"), completedWith(fmt.Sprint(w.seq))
		if rapid.Bool().Draw(t, "waiting") {
			p = waitedFor(rapid.SliceOfN(rapid.ByteRange(1, 4), 1, 3).Draw(t, "callers")...)
		}
		for _, s := range all {
			s.PutPromise(o, key, p)
		}
	},
	"delete promise": func(t *rapid.T, _ *world, all ...machine.State) {
		o, key := drawObject(t), drawKey(t, "name")
		for _, s := range all {
			s.DeletePromise(o, key)
		}
	},
	"put lock": func(t *rapid.T, _ *world, all ...machine.State) {
		o, l := drawObject(t), machine.Lock{Tail: rapid.Uint64Range(0, 2).Draw(t, "tail")}
		if rapid.Bool().Draw(t, "held") {
			l.Holder = drawID(t)
		}
		for _, s := range all {
			s.PutLock(o, l)
		}
	},
	"put waiting": func(t *rapid.T, _ *world, all ...machine.State) {
		o, seq, id := drawObject(t), rapid.Uint64Range(0, 300).Draw(t, "seq"), drawID(t)
		for _, s := range all {
			s.PutWaiting(o, seq, id)
		}
	},
	"delete waiting": func(t *rapid.T, _ *world, all ...machine.State) {
		o, seq := drawObject(t), rapid.Uint64Range(0, 300).Draw(t, "seq")
		for _, s := range all {
			s.DeleteWaiting(o, seq)
		}
	},
	"put timer": func(t *rapid.T, _ *world, all ...machine.State) {
		timer := drawTimer(t)
		for _, s := range all {
			s.PutTimer(timer)
		}
	},
	"delete timer": func(t *rapid.T, _ *world, all ...machine.State) {
		timer := drawTimer(t)
		for _, s := range all {
			s.DeleteTimer(timer)
		}
	},
	"send": func(t *rapid.T, w *world, all ...machine.State) {
		to := rapid.Uint32Range(1, 3).Draw(t, "to")
		for range rapid.SampledFrom([]int{1, manyRows}).Draw(t, "messages") {
			w.sent[to]++
			for _, s := range all {
				s.PutOutgoing(to, w.sent[to], &machine.Complete{Result: journal.Result{Value: fmt.Append(nil, w.sent[to])}})
			}
		}
	},
	"acknowledge": func(t *rapid.T, w *world, all ...machine.State) {
		to := rapid.Uint32Range(1, 3).Draw(t, "to")
		upto := rapid.Uint64Range(0, w.sent[to]+1).Draw(t, "upto")
		for _, s := range all {
			s.DeleteOutgoing(to, upto)
		}
	},
	"deliver": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		from := rapid.Uint32Range(1, 3).Draw(t, "from")
		for _, s := range all {
			s.PutLastDelivered(from, w.seq)
		}
	},
	"ingest": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		stream := drawStream(t)
		for _, s := range all {
			s.PutIngested(stream, machine.Ingested{Generation: w.seq / 3, Last: int64(w.seq), Before: int64(w.seq) - 2})
		}
	},
	"put position": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		p := machine.StreamPosition{Stream: drawStream(t), Next: int64(w.seq)}
		for _, s := range all {
			s.PutPosition(&p)
		}
	},
	"put dead letter": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		l := machine.DeadLetter{Stream: drawStream(t), Offset: rapid.Int64Range(0, 3).Draw(t, "offset"), Value: fmt.Append(nil, w.seq)}
		for _, s := range all {
			s.PutDeadLetter(&l)
			s.PutDeadLetters(l.Stream.Subscription, machine.DeadLetters{Records: w.seq % 3, Bytes: w.seq % 3})
		}
	},
	"delete dead letter": func(t *rapid.T, _ *world, all ...machine.State) {
		l := machine.DeadLetter{Stream: drawStream(t), Offset: rapid.Int64Range(0, 3).Draw(t, "offset")}
		for _, s := range all {
			s.DeleteDeadLetter(l.Stream.Subscription, l.ID())
		}
	},
	"delete streams": func(t *rapid.T, _ *world, all ...machine.State) {
		subscription, before := drawKey(t, "subscription"), rapid.Uint64Range(0, 3).Draw(t, "before")
		positions := rapid.Bool().Draw(t, "positions")
		for _, s := range all {
			s.DeleteStreams(subscription, before, positions)
		}
	},
	"meta": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		for _, s := range all {
			*s.Meta() = machine.Meta{Epoch: w.seq, Clock: int64(w.seq), Attempt: w.seq}
		}
	},
}

// readable is what both a State and a View can be asked.
type readable interface {
	Invocation(ids.Invocation) (*machine.Invocation, error)
	Entry(ids.Invocation, uint32) (journal.Entry, error)
	Notified(ids.Invocation, journal.NotificationID) (journal.Settled, error)
	Value(machine.Object, []byte) ([]byte, bool, error)
	Promise(machine.Object, string) (machine.Promise, error)
	Promises(machine.Object) iter.Seq2[machine.NamedPromise, error]
	Lock(machine.Object) (machine.Lock, error)
	FirstWaiting(o machine.Object, from, before uint64) (uint64, ids.Invocation, error)
	LastSent(uint32) (uint64, error)
	LastDelivered(uint32) (uint64, error)
	Ingested(machine.Stream) (machine.Ingested, error)
	FirstIncarnation(string) (uint64, error)
	Position(machine.Stream) (*machine.StreamPosition, error)
	DeadLetter(string, machine.DeadLetterID) (*machine.DeadLetter, error)
	DeadLetters(string) (machine.DeadLetters, error)
	flowReadable
}

// requireAlike compares the results of reading everything that the operations can have
// touched, drawn rather than all of it.
func requireAlike(t *rapid.T, w *world, want, got readable) {
	for id := byte(1); id <= 4; id++ {
		same(t, testID(id), want.Invocation, got.Invocation)
		length := w.length[testID(id)]
		for i := range length + 1 {
			a, errA := want.Entry(testID(id), i)
			b, errB := got.Entry(testID(id), i)
			require.Equal(t, errA == nil, errB == nil, "entry %d of %d", i, length)
			require.Equal(t, a, b)
		}
		note := drawNote(t)
		same(t, note, func(n journal.NotificationID) (journal.Settled, error) { return want.Notified(testID(id), n) },
			func(n journal.NotificationID) (journal.Settled, error) { return got.Notified(testID(id), n) })
	}
	for range 5 {
		o, key, seq := drawObject(t), []byte(drawKey(t, "name")), rapid.Uint64Range(0, 300).Draw(t, "seq")
		a, foundA, errA := want.Value(o, key)
		b, foundB, errB := got.Value(o, key)
		require.NoError(t, errA)
		require.NoError(t, errB)
		require.Equal(t, foundA, foundB)
		require.Equal(t, string(a), string(b))
		same(t, string(key), func(k string) (machine.Promise, error) { return want.Promise(o, k) },
			func(k string) (machine.Promise, error) { return got.Promise(o, k) })
		require.Equal(t, listPromises(t, want.Promises(o)), listPromises(t, got.Promises(o)))
		same(t, o, want.Lock, got.Lock)
		before := rapid.Uint64Range(0, 301).Draw(t, "before")
		same(t, seq, func(n uint64) (numbered[ids.Invocation], error) { return numbering(want.FirstWaiting(o, n, before)) },
			func(n uint64) (numbered[ids.Invocation], error) { return numbering(got.FirstWaiting(o, n, before)) })
	}
	requireSameFlow(t, want, got)
	for peer := uint32(1); peer <= 3; peer++ {
		same(t, peer, want.LastSent, got.LastSent)
		same(t, peer, want.LastDelivered, got.LastDelivered)
	}
	for range 5 {
		stream := drawStream(t)
		same(t, stream, want.Ingested, got.Ingested)
		same(t, stream, want.Position, got.Position)
		same(t, stream.Subscription, want.FirstIncarnation, got.FirstIncarnation)
		same(t, stream.Subscription, want.DeadLetters, got.DeadLetters)
		id := machine.DeadLetterID{Topic: stream.Topic, Partition: stream.Partition, Offset: rapid.Int64Range(0, 3).Draw(t, "offset")}
		same(t, id, func(id machine.DeadLetterID) (*machine.DeadLetter, error) {
			return want.DeadLetter(stream.Subscription, id)
		}, func(id machine.DeadLetterID) (*machine.DeadLetter, error) {
			return got.DeadLetter(stream.Subscription, id)
		})
	}
}

func same[K, V any](t *rapid.T, key K, want, got func(K) (V, error)) {
	a, err := want(key)
	require.NoError(t, err)
	b, err := got(key)
	require.NoError(t, err)
	require.Equal(t, a, b, "%v", key)
}

// requireSameState compares with a transaction: also timers and values in order.
func requireSameState(t *rapid.T, w *world, want, got machine.State) {
	requireAlike(t, w, want, got)
	for id, h := range w.events {
		for n := h.First; n < h.Next; n++ {
			same(t, n, func(n uint32) (machine.Event, error) { return want.Event(id, n) }, func(n uint32) (machine.Event, error) { return got.Event(id, n) })
		}
	}
	require.Equal(t, want.Meta(), got.Meta())
	timer := drawTimer(t)
	same(t, timer, want.HasTimer, got.HasTimer)
	o := drawObject(t)
	require.Equal(t, listValues(t, want, o), listValues(t, got, o))
	from, most := drawCounter(t), rapid.IntRange(1, 3).Draw(t, "most")
	same(t, from, func(k flowcontrol.CounterKey) ([]flowcontrol.NamedCounter, error) { return want.Counters(k, most) },
		func(k flowcontrol.CounterKey) ([]flowcontrol.NamedCounter, error) { return got.Counters(k, most) })
	k, place := drawCounter(t), rapid.Uint64Range(0, 3).Draw(t, "place")
	before := rapid.Uint64Range(0, 4).Draw(t, "before")
	same(t, place, func(n uint64) (numbered[flowcontrol.Child], error) { return numbering(want.FirstChild(k, n, before)) },
		func(n uint64) (numbered[flowcontrol.Child], error) { return numbering(got.FirstChild(k, n, before)) })
}

func listValues(t require.TestingT, s machine.State, o machine.Object) (all []string) {
	var keys []string
	for key, err := range s.Keys(o) {
		require.NoError(t, err)
		keys = append(keys, fmt.Sprintf("%q", key))
	}
	for e, err := range s.Values(o) {
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("%q=%q", e.Key, e.Value))
	}
	for i, row := range all {
		require.True(t, strings.HasPrefix(row, keys[i]+"="))
	}
	require.Len(t, keys, len(all))
	return all
}

// requireSameView compares everything that can be listed.
func requireSameView(t *rapid.T, w *world, twin *machinetest.State, v *View) {
	requireAlike(t, w, twin, v)
	for id, length := range w.length {
		entries, _, err := v.Journal(id, length, math.MaxInt)
		require.NoError(t, err)
		require.Len(t, entries, int(length))
	}
	for id, h := range w.events {
		events, err := v.Events(id)
		require.NoError(t, err)
		require.Len(t, events, int(h.Next-h.First))
		for i := range events {
			same(t, h.First+uint32(i), func(n uint32) (machine.Event, error) { return twin.Event(id, n) },
				func(uint32) (machine.Event, error) { return events[i], nil })
		}
	}
	var timers []machine.Timer
	for from := (machine.Timer{At: -5}); ; {
		due, more, err := v.Timers(from, machine.Timer{At: 5}, 2, 2)
		require.NoError(t, err)
		timers = append(timers, due...)
		if !more {
			break
		}
		from = due[len(due)-1]
		from.Name += "\x00"
	}
	require.ElementsMatch(t, twin.Timers(), timers)
	require.True(t, slices.IsSortedFunc(timers, machine.Timer.Compare))
	for to, last := range w.sent {
		first, messages, _, err := v.Outgoing(to, 0, 1<<20, 1<<30)
		require.NoError(t, err)
		for i, m := range messages {
			require.Equal(t, twin.Outgoing(to, first+uint64(i)), m)
		}
		if n := uint64(len(messages)); n > 0 {
			require.Equal(t, last, first+n-1)
			require.Nil(t, twin.Outgoing(to, first-1))
		} else {
			require.Nil(t, twin.Outgoing(to, last))
		}
	}
	requireSameQueues(t, twin, v)
	n := 0
	for p, err := range allPromises(v) {
		require.NoError(t, err)
		same(t, p.Key, func(k string) (machine.Promise, error) { return twin.Promise(p.Workflow, k) },
			func(string) (machine.Promise, error) { return p.Promise, nil })
		n++
	}
	require.Equal(t, w.countPromises(twin), n)
	for inv, err := range v.Live() {
		require.NoError(t, err)
		require.NotEqual(t, machine.Completed, inv.Status)
	}
	for inv, err := range v.Done() {
		require.NoError(t, err)
		require.Equal(t, machine.Completed, inv.Status)
	}
}

func TestTablesAgreeWithInMemoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		cutAt(t, rapid.SampledFrom([]int{0, 1, 9, 30}).Draw(t, "large row"))
		collect(t, rapid.SampledFrom([]int{0, 1, 40}).Draw(t, "collected rows"))
		holdLarge(t, rapid.SampledFrom([]int{0, 1, 300}).Draw(t, "large set"))
		db := openAt(t, dir)
		defer func() { require.NoError(t, db.Close()) }()
		p := partition(t, db, 5)
		twin, w := machinetest.New(), &world{length: map[ids.Invocation]uint32{}, sent: map[uint32]uint64{}, events: map[ids.Invocation]machine.History{}}
		txn, index := p.Begin(), uint64(0)
		commit := func() {
			index++
			require.NoError(t, txn.Commit(index, index/3))
		}
		actions := map[string]func(*rapid.T){
			"commit": func(*rapid.T) { commit(); txn = p.Begin() },
			"flush":  func(*rapid.T) { flush(t, db) },
			"settle": func(*rapid.T) { commit(); require.NoError(t, p.Settle()); txn = p.Begin() },
			"forget": func(*rapid.T) { commit(); p.cache = newCache(100); txn = p.Begin() },
			"reopen": func(*rapid.T) {
				commit()
				flush(t, db)
				require.NoError(t, db.Close())
				db = openAt(t, dir)
				p = partition(t, db, 5)
				txn = p.Begin()
			},
			"look": func(t *rapid.T) {
				commit()
				v := p.View()
				defer v.Close()
				requireSameView(t, w, twin, v)
				requireChunks(t, p)
				txn = p.Begin()
			},
			"": func(t *rapid.T) { requireSameState(t, w, twin, txn) },
		}
		for name, apply := range flowOperations {
			actions[name] = func(t *rapid.T) { apply(t, w, twin, txn) }
		}
		for name, apply := range operations {
			actions[name] = func(t *rapid.T) { apply(t, w, twin, txn) }
		}
		t.Repeat(actions)
	})
}
