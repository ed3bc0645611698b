package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// attached is an invocation of the first of two partitions that others attach to.
type attached struct {
	t      *testing.T
	m      *machine.Machine
	st     *machinetest.State
	callee ids.Invocation
}

func newAttached(t *testing.T) *attached {
	a := &attached{t: t, m: machine.New(machine.Shards{Self: 0, Count: 2}), st: machinetest.New(), callee: ids.NewInvocation(1, [16]byte{1})}
	a.apply(&machine.Lead{Epoch: 1, Node: "n"})
	a.invoke(a.callee)
	return a
}

func (a *attached) apply(c machine.Command) []machine.Effect {
	a.t.Helper()
	outcome, effects, err := a.m.Apply(a.st, machine.Header{Epoch: 1, Time: 1000}, c, nil)
	require.NoError(a.t, err)
	require.Equal(a.t, machine.OK, outcome.Code)
	return effects
}

func (a *attached) invoke(id ids.Invocation) {
	a.apply(&machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil)})
}

// caller returns the nth caller of a partition.
func caller(partition uint64, n int) ids.Invocation {
	return ids.NewInvocation(partition<<63|uint64(n), [16]byte{2, byte(n >> 8), byte(n)})
}

// attach makes a caller of this partition attach.
func (a *attached) attach(id ids.Invocation) {
	a.invoke(id)
	inv, err := a.st.Invocation(id)
	require.NoError(a.t, err)
	step := machinetest.Attach(1, a.callee)
	a.apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{step}})
}

func (a *attached) sinks() []machine.Sink {
	inv, err := a.st.Invocation(a.callee)
	require.NoError(a.t, err)
	return inv.Sinks
}

func TestEndedWaitersAreRemovedWhenTheListDoubles(t *testing.T) {
	a := newAttached(t)
	for n := range 500 {
		a.attach(caller(0, n))
		if n%10 != 0 {
			a.apply(&machine.Kill{Target: caller(0, n)})
		}
	}
	require.Less(t, len(a.sinks()), 150)
	waiting := map[ids.Invocation]bool{}
	for _, sink := range a.sinks() {
		waiting[sink.Caller] = true
	}
	for n := 0; n < 500; n += 10 {
		require.True(t, waiting[caller(0, n)], "caller %d is still waiting", n)
	}
}

func TestTheNumberOfWaitersIsBounded(t *testing.T) {
	const most = 10_000
	a := newAttached(t)
	from := uint64(0)
	deliver := func(first, count int) (effects []machine.Effect) {
		d := &machine.Deliver{From: 1, FirstSeq: from + 1}
		for n := range count {
			sink := machine.Sink{Caller: caller(1, first+n), Completion: 1, Type: journal.AttachInvocationCompletion}
			d.Messages = append(d.Messages, &machine.Attach{Target: a.callee, Sink: sink})
		}
		from += uint64(count)
		return a.apply(d)
	}
	for n := 0; n < most; n += 1000 {
		require.Empty(t, deliver(n, 1000))
	}
	require.Len(t, a.sinks(), most)
	effects := deliver(most, 1)
	require.Len(t, effects, 1)
	refusal := effects[0].(*machine.Send).Message.(*machine.Complete)
	require.Equal(t, caller(1, most), refusal.Sink.Caller)
	require.EqualValues(t, 429, refusal.Result.Failure.Code)
	require.Len(t, a.sinks(), most)

	told := 0
	for _, e := range a.apply(&machine.Kill{Target: a.callee}) {
		if send, ok := e.(*machine.Send); ok {
			require.NotNil(t, send.Message.(*machine.Complete).Result.Failure, fmt.Sprint(send))
			told++
		}
	}
	require.Equal(t, most, told)
}

// One handler can request a promise any number of times.
func TestTheNumberOfWaitersForAPromiseIsBounded(t *testing.T) {
	const most, key = 10_000, "p"
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		c := newBacklog(t, level)
		object := machine.Object{Service: "W", Key: "k"}
		run := machine.Target{Service: "W", Key: "k", Handler: "run", Type: target.WorkflowRun}
		flow, other := ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(2, [16]byte{2})
		shared := run
		shared.Handler, shared.Type = "ask", target.WorkflowShared
		c.invoke(flow, run)
		c.invoke(other, shared)
		var steps []machine.Step
		for n := range uint32(most + 1) {
			steps = append(steps, machinetest.GetPromise(1+n, key))
		}
		c.entry(c.progress(other, steps...))
		p, err := c.st.Promise(object, key)
		require.NoError(t, err)
		how, err := c.st.Notified(other, journal.Completion(most+1))
		require.NoError(t, err)
		if level < feature.Level4 {
			require.Len(t, p.Waiting, most+1, "as older replicas accept them")
			require.Equal(t, journal.Pending, how)
			continue
		}
		require.Len(t, p.Waiting, most)
		require.Equal(t, journal.Failed, how)
		inv, err := c.st.Invocation(other)
		require.NoError(t, err)
		e, err := c.st.Entry(other, inv.Length-1)
		require.NoError(t, err)
		n, err := journal.ParseNotification(e.Payload)
		require.NoError(t, err)
		require.EqualValues(t, 429, n.Failure.Code)
		c.entry(c.progress(flow, machinetest.CompletePromise(1, key, journal.Result{Value: []byte("x")})))
		c.settle()
		how, err = c.st.Notified(other, journal.Completion(most))
		require.NoError(t, err)
		require.Equal(t, journal.Succeeded, how)
	}
}

// lookups counts the records that are read.
type lookups struct {
	*machinetest.State
	n int
}

func (l *lookups) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	l.n++
	return l.State.Invocation(id)
}

// A list whose length stays close to a power of two must not be searched for each new waiter.
func TestRemovingEndedWaitersIsCheapWhenTheyAreReplaced(t *testing.T) {
	for _, live := range []int{255, 250, 256, 260} {
		st := &lookups{State: machinetest.New()}
		m := machine.New(machine.Shards{Count: 1})
		apply := func(c machine.Command) {
			_, _, err := m.Apply(st, machine.Header{Epoch: 1, Time: 1000, Level: feature.Level4}, c, nil)
			require.NoError(t, err)
		}
		apply(&machine.Lead{Epoch: 1})
		service := machine.Target{Service: "S", Handler: "h"}
		callee := ids.NewInvocation(1, [16]byte{1})
		apply(&machine.Invoke{ID: callee, Target: service, Input: journal.NewInput(nil, nil)})
		attach := func(n int) {
			id := caller(0, n)
			apply(&machine.Invoke{ID: id, Target: service, Input: journal.NewInput(nil, nil)})
			inv, err := st.State.Invocation(id)
			require.NoError(t, err)
			st.n = 0
			apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.Attach(1, callee)}})
		}
		for n := range live {
			attach(n)
		}
		const replaced = 600
		sum := 0
		for n := range replaced {
			apply(&machine.Kill{Target: caller(0, n)})
			attach(live + n)
			sum += st.n
		}
		require.Less(t, sum/replaced, 16, "records read for each of %d waiters", live)
		inv, err := st.State.Invocation(callee)
		require.NoError(t, err)
		require.Less(t, len(inv.Sinks), 2*live+50, "ended waiters are removed")
	}
}
