package store

import (
	"iter"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

func drawCounter(t *rapid.T) flowcontrol.CounterKey {
	return flowcontrol.CounterKey{
		Scope:    rapid.SampledFrom([]string{"s", "s\x00", "t"}).Draw(t, "counter"),
		LimitKey: flowcontrol.LimitKey{L1: rapid.SampledFrom([]string{"", "a"}).Draw(t, "l1")},
	}
}

func drawVQueue(t *rapid.T) flowcontrol.QueueKey {
	k := drawCounter(t)
	return flowcontrol.QueueKey{Scope: k.Scope, LimitKey: k.LimitKey, Service: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "queue")}
}

// flowOperations are those of operations that are about flow control.
var flowOperations = map[string]func(t *rapid.T, w *world, all ...machine.State){
	"put counter": func(t *rapid.T, _ *world, all ...machine.State) {
		k, c := drawCounter(t), flowcontrol.Counter{Running: rapid.Uint64Range(0, 2).Draw(t, "running")}
		for _, s := range all {
			s.PutCounter(k, c)
		}
	},
	"put vqueue": func(t *rapid.T, _ *world, all ...machine.State) {
		k, q := drawVQueue(t), flowcontrol.VQueue{Waiting: rapid.Uint64Range(0, 2).Draw(t, "waiting")}
		for _, s := range all {
			s.PutVQueue(k, q)
		}
	},
	"put queued": func(t *rapid.T, w *world, all ...machine.State) {
		w.seq++
		k, priority, place, who := drawVQueue(t), rapid.ByteRange(0, 1).Draw(t, "priority"), rapid.Uint64Range(0, 3).Draw(t, "place"), drawID(t)
		for _, s := range all {
			s.PutQueued(k, priority, place, flowcontrol.Queued{ID: who, At: int64(w.seq)})
		}
	},
	"delete queued": func(t *rapid.T, _ *world, all ...machine.State) {
		k, priority, place := drawVQueue(t), rapid.ByteRange(0, 1).Draw(t, "priority"), rapid.Uint64Range(0, 3).Draw(t, "place")
		for _, s := range all {
			s.DeleteQueued(k, priority, place)
		}
	},
	"put child": func(t *rapid.T, _ *world, all ...machine.State) {
		k, place, c := drawCounter(t), rapid.Uint64Range(0, 3).Draw(t, "place"), flowcontrol.Child{Name: "c", Queue: rapid.Bool().Draw(t, "queue")}
		for _, s := range all {
			s.PutChild(k, place, c)
		}
	},
	"delete child": func(t *rapid.T, _ *world, all ...machine.State) {
		k, place := drawCounter(t), rapid.Uint64Range(0, 3).Draw(t, "place")
		for _, s := range all {
			s.DeleteChild(k, place)
		}
	},
	"put rules": func(_ *rapid.T, w *world, all ...machine.State) {
		w.seq++
		b := &flowcontrol.Book{Version: uint32(w.seq), Rules: []flowcontrol.Rule{{Pattern: flowcontrol.Pattern{Scope: "*"}, Version: uint32(w.seq)}}}
		for _, s := range all {
			s.PutRules(b)
		}
	},
}

// flowReadable is what both a State and a View can be asked about flow control.
type flowReadable interface {
	Counter(flowcontrol.CounterKey) (flowcontrol.Counter, error)
	VQueue(flowcontrol.QueueKey) (flowcontrol.VQueue, error)
	flowcontrol.QueuedReader
	Rules() (*flowcontrol.Book, error)
}

func requireSameFlow(t *rapid.T, want, got flowReadable) {
	same(t, drawCounter(t), want.Counter, got.Counter)
	q := drawVQueue(t)
	same(t, q, want.VQueue, got.VQueue)
	priority := rapid.ByteRange(0, 1).Draw(t, "priority")
	before := rapid.Uint64Range(0, 4).Draw(t, "before")
	same(t, rapid.Uint64Range(0, 3).Draw(t, "place"),
		func(n uint64) (numbered[flowcontrol.Queued], error) {
			return numbering(want.FirstQueued(q, priority, n, before))
		},
		func(n uint64) (numbered[flowcontrol.Queued], error) {
			return numbering(got.FirstQueued(q, priority, n, before))
		})
	same(t, "rules", func(string) (*flowcontrol.Book, error) { return want.Rules() }, func(string) (*flowcontrol.Book, error) { return got.Rules() })
	require.Equal(t, listCounters(t, want), listCounters(t, got))
}

// numbered is a row and its sequence number.
type numbered[V any] struct {
	Seq   uint64
	Value V
}

func numbering[V any](seq uint64, v V, err error) (numbered[V], error) {
	return numbered[V]{seq, v}, err
}

func listCounters(t require.TestingT, s flowReadable) (all []flowcontrol.NamedCounter) {
	if tables, ok := s.(flowcontrol.Tables); ok {
		all, err := tables.Counters(flowcontrol.CounterKey{}, math.MaxInt)
		require.NoError(t, err)
		return all
	}
	all = []flowcontrol.NamedCounter{}
	for c, err := range s.(*View).AllCounters() {
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// requireSameQueues compares the list of vqueues.
func requireSameQueues(t *rapid.T, twin *machinetest.State, v *View) {
	next, stop := iter.Pull2(v.VQueues())
	defer stop()
	for k, q := range twin.VQueues() {
		got, err, more := next()
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, NamedVQueue{k, q}, got)
	}
	_, _, more := next()
	require.False(t, more)
}

func contractFlow(t *testing.T, s *tables) {
	k := flowcontrol.CounterKey{Scope: "s", LimitKey: flowcontrol.LimitKey{L1: "a"}}
	q := flowcontrol.QueueKey{Scope: "s", LimitKey: k.LimitKey, Service: "S"}
	counter := func() flowcontrol.Counter {
		c, err := s.Counter(k)
		require.NoError(t, err)
		return c
	}
	require.Zero(t, counter())
	s.PutCounter(k, flowcontrol.Counter{Running: 1})
	require.EqualValues(t, 1, counter().Running, "own writes are seen")
	s.next()
	require.EqualValues(t, 1, counter().Running)
	s.PutCounter(flowcontrol.CounterKey{Scope: "s"}, flowcontrol.Counter{Running: 2})
	require.Equal(t, []uint64{2, 1}, running(t, s), "above before below")
	s.next()
	s.PutCounter(k, flowcontrol.Counter{})
	require.Zero(t, counter())
	require.Equal(t, []uint64{2}, running(t, s))
	s.next()
	require.Zero(t, counter())
	require.Equal(t, []uint64{2}, running(t, s))

	s.PutVQueue(q, flowcontrol.VQueue{Waiting: 1})
	s.PutQueued(q, 9, 7, flowcontrol.Queued{ID: testID(1), At: 5})
	s.PutChild(k, 1, flowcontrol.Child{Name: "S", Queue: true})
	s.next()
	_, who, err := s.FirstQueued(q, 9, 0, 8)
	require.NoError(t, err)
	require.Equal(t, flowcontrol.Queued{ID: testID(1), At: 5}, who)
	_, child, err := s.FirstChild(k, 0, 5)
	require.NoError(t, err)
	require.Equal(t, flowcontrol.Child{Name: "S", Queue: true}, child)
	s.DeleteQueued(q, 9, 7)
	s.DeleteChild(k, 1)
	s.PutVQueue(q, flowcontrol.VQueue{})
	s.next()
	_, who, err = s.FirstQueued(q, 9, 0, 8)
	require.NoError(t, err)
	require.Zero(t, who)
	queue, err := s.VQueue(q)
	require.NoError(t, err)
	require.Zero(t, queue)

	book, err := s.Rules()
	require.NoError(t, err)
	require.Equal(t, &flowcontrol.Book{}, book, "an empty book is a book")
	s.PutRules(&flowcontrol.Book{Version: 3})
	s.next()
	book, err = s.Rules()
	require.NoError(t, err)
	require.EqualValues(t, 3, book.Version)
}

func running(t *testing.T, s *tables) (all []uint64) {
	for _, c := range listCounters(t, s) {
		all = append(all, c.Running)
	}
	return all
}
