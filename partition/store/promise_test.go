package store

import (
	"fmt"
	"iter"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/partition/machine"
)

func waitedFor(callers ...byte) (p machine.Promise) {
	for _, n := range callers {
		p.Waiting = append(p.Waiting, machine.Sink{Caller: testID(n), Life: uint64(n) + 1, Completion: 3, Type: journal.GetPromiseCompletion})
	}
	return p
}

func completedWith(value string) machine.Promise {
	return machine.Promise{Result: &journal.Result{Value: []byte(value)}}
}

// allPromises yields the promises of all workflows.
func allPromises(v *View) iter.Seq2[WorkflowPromise, error] {
	return func(yield func(WorkflowPromise, error) bool) {
		err := v.WalkPromises(nil, func(_ Place, p WorkflowPromise) (Visit, error) {
			return Visit{Stop: !yield(p, nil)}, nil
		})
		if err != nil {
			yield(WorkflowPromise{}, err)
		}
	}
}

func listPromises(t require.TestingT, all iter.Seq2[machine.NamedPromise, error]) (found []machine.NamedPromise) {
	for p, err := range all {
		require.NoError(t, err)
		found = append(found, p)
	}
	return found
}

func contractPromises(t *testing.T, s *tables) {
	o := machine.Object{Service: "Signup", Key: "a"}
	others := []machine.Object{
		{Service: "Signup", Key: ""}, {Service: "Signup", Key: "a\x00"}, {Service: "Signup", Key: "a\x00\x01"}, {Service: "Signup", Key: "aa"},
		{Scope: "Signup", Service: "a"}, {Scope: "s", Service: "Signup", Key: "a"},
	}
	promise := func(key string) machine.Promise {
		p, err := s.Promise(o, key)
		require.NoError(t, err)
		return p
	}
	require.Zero(t, promise("b"))
	require.Empty(t, listPromises(t, s.Promises(o)))
	s.PutPromise(o, "b", waitedFor(1, 2))
	s.PutValue(o, []byte("b"), []byte("a value of the same name"))
	for _, other := range others {
		s.PutPromise(other, "b", completedWith("other"))
	}
	require.Equal(t, waitedFor(1, 2), promise("b"), "own writes are seen")
	s.next()
	require.Equal(t, waitedFor(1, 2), promise("b"))
	require.Zero(t, promise(""))
	require.Zero(t, promise("b\x00"))

	failed := machine.Promise{Result: &journal.Result{Failure: &journal.Failure{
		Code: 500, Message: "no", Metadata: []journal.Metadata{{Key: "k", Value: "v"}},
	}}}
	s.PutPromise(o, "b", completedWith("yes"))
	s.PutPromise(o, "", failed)
	s.PutPromise(o, "a\x00", completedWith("")) // void and empty look alike
	s.PutPromise(o, "c", waitedFor(3))
	want := []machine.NamedPromise{
		{Key: "", Promise: failed}, {Key: "a\x00", Promise: machine.Promise{Result: &journal.Result{}}},
		{Key: "b", Promise: completedWith("yes")}, {Key: "c", Promise: waitedFor(3)},
	}
	requirePromises := func() {
		t.Helper()
		got := listPromises(t, s.Promises(o))
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].Key, got[i].Key)
			require.Equal(t, describePromise(want[i].Promise), describePromise(got[i].Promise))
			require.Equal(t, describePromise(want[i].Promise), describePromise(promise(want[i].Key)))
		}
	}
	requirePromises()
	s.next()
	requirePromises()
	for range s.Promises(o) { // stopping is allowed
		break
	}

	s.DeletePromise(o, "b")
	require.Zero(t, promise("b"))
	s.PutPromise(o, "b", waitedFor(4))
	want[2].Promise = waitedFor(4)
	requirePromises()
	s.next()
	requirePromises()
	for _, p := range listPromises(t, s.Promises(o)) {
		s.DeletePromise(o, p.Key)
	}
	require.Empty(t, listPromises(t, s.Promises(o)))
	s.next()
	require.Empty(t, listPromises(t, s.Promises(o)))
	v, found, err := s.Value(o, []byte("b"))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "a value of the same name", string(v))
	for _, other := range others {
		require.Equal(t, []machine.NamedPromise{{Key: "b", Promise: completedWith("other")}}, listPromises(t, s.Promises(other)))
	}
}

// describePromise is the content of a promise; the tables need not tell an empty
// value from none.
func describePromise(p machine.Promise) string {
	if p.Result == nil {
		return fmt.Sprintf("waiting %v", p.Waiting)
	}
	return fmt.Sprintf("value %q failure %v waiting %v", p.Result.Value, p.Result.Failure, p.Waiting)
}

func TestViewsListPromises(t *testing.T) {
	p := partition(t, open(t), 1)
	a, b := machine.Object{Service: "Signup", Key: "a"}, machine.Object{Scope: "s", Service: "Signup", Key: "\x00"}
	commit(t, p, 1, func(s machine.State) {
		s.PutPromise(b, "late", completedWith("1"))
		s.PutPromise(a, "two", waitedFor(2))
		s.PutPromise(a, "one", completedWith("1"))
		s.PutValue(a, []byte("zero"), []byte("no promise"))
		s.PutLock(a, machine.Lock{Holder: testID(1)})
	})
	v := p.View()
	commit(t, p, 2, func(s machine.State) { s.DeletePromise(a, "one") })
	ofA := []machine.NamedPromise{{Key: "one", Promise: completedWith("1")}, {Key: "two", Promise: waitedFor(2)}}
	require.Equal(t, ofA, listPromises(t, v.Promises(a)))
	require.Empty(t, listPromises(t, v.Promises(machine.Object{Service: "Signup"})))
	got, err := v.Promise(a, "two")
	require.NoError(t, err)
	require.Equal(t, waitedFor(2), got)
	got, err = v.Promise(a, "three")
	require.NoError(t, err)
	require.Zero(t, got)

	var all []WorkflowPromise
	for p, err := range allPromises(v) {
		require.NoError(t, err)
		all = append(all, p)
	}
	require.Equal(t, []WorkflowPromise{{a, ofA[0]}, {a, ofA[1]}, {b, machine.NamedPromise{Key: "late", Promise: completedWith("1")}}}, all)
	for range allPromises(v) {
		break
	}
	require.NoError(t, v.Close())
	for _, err := range allPromises(v) {
		require.Error(t, err, "a closed view")
	}
}

func TestDamagedPromisesAreReported(t *testing.T) {
	p := partition(t, open(t), 1)
	o := machine.Object{Service: "Signup", Key: "a"}
	commit(t, p, 1, func(machine.State) {})
	require.NoError(t, p.db.pebble.Set(p.space.promise(nil, &o, "bad"), []byte{0xff}, pebble.NoSync))
	v := p.View()
	defer v.Close()
	_, err := v.Promise(o, "bad")
	require.ErrorIs(t, err, ErrDamaged)
	for _, err := range v.Promises(o) {
		require.ErrorIs(t, err, ErrDamaged)
	}
	txn := p.Begin()
	defer txn.Discard()
	_, err = txn.Promise(o, "bad")
	require.ErrorIs(t, err, ErrDamaged)
	n := 0
	for _, err := range txn.Promises(o) {
		require.ErrorIs(t, err, ErrDamaged)
		n++
	}
	require.Equal(t, 1, n)
}
