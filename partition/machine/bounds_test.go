package machine_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// counting counts the bytes of journal entries that commands read, and the entries that they
// append.
type counting struct {
	*machinetest.State
	read, appended int
	state          int // values read or deleted one by one
	lookups        int // of notifications
}

func (c *counting) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	c.lookups++
	return c.State.Notified(id, n)
}

func (c *counting) Values(o machine.Object) iter.Seq2[machine.StateEntry, error] {
	return func(yield func(machine.StateEntry, error) bool) {
		for e, err := range c.State.Values(o) {
			if c.state++; !yield(e, err) {
				return
			}
		}
	}
}

func (c *counting) DeleteValue(o machine.Object, key []byte) {
	c.state++
	c.State.DeleteValue(o, key)
}

func (c *counting) Entry(id ids.Invocation, index uint32) (journal.Entry, error) {
	e, err := c.State.Entry(id, index)
	c.read += len(e.Payload)
	return e, err
}

func (c *counting) AppendEntry(id ids.Invocation, index uint32, e journal.Entry) {
	c.appended++
	c.State.AppendEntry(id, index, e)
}

// bounded applies entries of one command and counts what each of them ends.
type bounded struct {
	t     *testing.T
	st    *counting
	m     *machine.Machine
	level feature.Level
	now   int64
	most  int // invocations that one entry has ended
	// What one log entry has read and appended.
	mostRead, mostAppended int
}

func newBounded(t *testing.T, level feature.Level) *bounded {
	b := &bounded{t: t, st: &counting{State: machinetest.NewStrict()}, m: machine.New(machine.Shards{Count: 1}), level: level, now: 1000}
	b.apply(&machine.Lead{Epoch: 1})
	b.most = 0
	return b
}

func (b *bounded) apply(c machine.Command) {
	b.t.Helper()
	b.st.read, b.st.appended = 0, 0
	o, effects, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, c, nil)
	require.NoError(b.t, err)
	require.Contains(b.t, []machine.Code{machine.OK, machine.Existing}, o.Code)
	ended := 0
	for _, e := range effects {
		if _, ok := e.(*machine.Finish); ok {
			ended++
		}
	}
	b.most, b.mostRead, b.mostAppended = max(b.most, ended), max(b.mostRead, b.st.read), max(b.mostAppended, b.st.appended)
}

// settle fires the due timers, in commands as large as those of a leader.
func (b *bounded) settle() (entries int) {
	for {
		require.Empty(b.t, b.st.Broken(machinetest.Names{}))
		var due []machine.Timer
		for _, t := range b.st.Timers() {
			if t.At <= b.now && len(due) < 512 {
				due = append(due, t)
			}
		}
		if len(due) == 0 {
			return entries
		}
		b.apply(&machine.FireTimers{Timers: due})
		entries++
	}
}

func (b *bounded) invoke(id ids.Invocation, to machine.Target, input []byte) uint64 {
	b.apply(&machine.Invoke{ID: id, Target: to, Input: input, Retention: machine.Retention{Completion: 1 << 40, Journal: 1 << 40}})
	inv, err := b.st.Invocation(id)
	require.NoError(b.t, err)
	return inv.Attempt
}

// TestOneEntryKillsABoundedNumberOfInvocations kills an invocation with thousands of pending
// calls, each of which has one.
func TestOneEntryKillsABoundedNumberOfInvocations(t *testing.T) {
	const children = 1500
	for level, most := range map[feature.Level]int{feature.Level3: 2*children + 1, feature.Level4: 800} {
		b := newBounded(t, level)
		service := machine.Target{Service: "S", Handler: "h"}
		id := func(kind byte, n int) ids.Invocation {
			return ids.NewInvocation(0, [16]byte{kind, byte(n), byte(n >> 8)})
		}
		call := func(caller ids.Invocation, attempt uint64, kind byte, from, upto int) {
			var steps []machine.Step
			for n := from; n < upto; n++ {
				callee := machine.Callee{ID: id(kind, n), Retention: machine.Retention{Completion: 1 << 40, Journal: 1 << 40}}
				steps = append(steps, machinetest.Call(uint32(2*(n-from)+1), uint32(2*(n-from)+2), service, nil, callee))
			}
			b.apply(&machine.Progress{ID: caller, Attempt: attempt, Steps: steps})
		}
		root := id(1, 0)
		call(root, b.invoke(root, service, journal.NewInput(nil, nil)), 2, 0, children)
		for n := range children {
			child, err := b.st.Invocation(id(2, n))
			require.NoError(t, err)
			call(child.ID, child.Attempt, 3, n, n+1)
		}
		b.apply(&machine.Kill{Target: root})
		entries := b.settle()
		require.LessOrEqual(t, b.most, most)
		require.Equal(t, level >= feature.Level4, entries > 0)
		for n := range children {
			for kind := range byte(2) {
				inv, err := b.st.Invocation(id(2+kind, n))
				require.NoError(t, err)
				require.True(t, inv.Killed, "%d of kind %d", n, kind)
			}
		}
	}
}

func (b *bounded) update(id ids.Invocation, o machine.Object, value string) {
	r := &journal.StateReplacement{State: []journal.StatePair{{Key: []byte("k"), Value: []byte(value)}}}
	b.apply(machinetest.Update(id, o, r))
}

// TestOneEntryAppliesABoundedNumberOfStateUpdates ends the handler that many updates of its
// object wait for, and many handlers that one update each waits for.
func TestOneEntryAppliesABoundedNumberOfStateUpdates(t *testing.T) {
	const updates = 600
	id := func(kind byte, n int) ids.Invocation {
		return ids.NewInvocation(0, [16]byte{kind, byte(n), byte(n >> 8)})
	}
	for _, keys := range []int{1, 20} {
		for level, most := range map[feature.Level]int{feature.Level3: updates + keys + 1, feature.Level4: 300} {
			b := newBounded(t, level)
			key := func(n int) machine.Target {
				return machine.Target{Service: "O", Handler: "h", Key: string(rune('a' + n)), Type: target.ObjectExclusive}
			}
			root := id(1, 0)
			attempt := b.invoke(root, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
			for n := range keys {
				callee := machine.Callee{ID: id(2, n), Type: target.ObjectExclusive, Retention: machine.Retention{Completion: 1 << 40, Journal: 1 << 40}}
				b.apply(&machine.Progress{ID: root, Attempt: attempt, Steps: []machine.Step{machinetest.Call(uint32(2*n+1), uint32(2*n+2), key(n), nil, callee)}})
			}
			value := string(make([]byte, 100))
			for n := range updates {
				b.update(id(3, n), key(n%keys).Object(), value)
			}
			b.apply(&machine.Kill{Target: root})
			b.settle()
			require.LessOrEqual(t, b.most, most, "%d keys at level %d", keys, level)
			for n := range updates {
				inv, err := b.st.Invocation(id(3, n))
				require.NoError(t, err)
				require.Equal(t, machine.Completed, inv.Status)
				require.Nil(t, inv.Result.Failure)
			}
			for n := range keys {
				lock, err := b.st.Lock(key(n).Object())
				require.NoError(t, err)
				require.Zero(t, lock)
			}
		}
	}
}

// A restart does not read the part of a long journal that it does not need.
func TestARestartReadsOnlyWhatItCopies(t *testing.T) {
	b := newBounded(t, feature.Level4)
	old := ids.NewInvocation(0, [16]byte{1})
	attempt := b.invoke(old, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
	value := journal.Result{Value: make([]byte, 4<<10)}
	var steps []machine.Step
	for i := range uint32(500) {
		steps = append(steps, machinetest.Run(i+1, "step"), machinetest.RunCompletion(i+1, value))
	}
	b.apply(&machine.Progress{ID: old, Attempt: attempt, Steps: append(steps, machinetest.Output(journal.Result{}), machinetest.End())})
	for from, length := range map[uint32]uint32{0: 1, 1: 3, 4: 5} {
		b.mostRead = 0
		restarted := ids.NewInvocation(0, [16]byte{2, byte(from)})
		b.apply(&machine.Restart{Target: old, New: restarted, From: from})
		require.Less(t, b.mostRead, 32<<10)
		inv, err := b.st.Invocation(restarted)
		require.NoError(t, err)
		require.Equal(t, length, inv.Length, "from %d", from)
	}
}

// TestOneEntryReadsABoundedPartOfAKilledJournal kills invocations with a sleep and many
// calls. Every second call has its result.
func TestOneEntryReadsABoundedPartOfAKilledJournal(t *testing.T) {
	const invocations, calls = 3, 1500
	input := make([]byte, 16<<10)
	service := machine.Target{Service: "S", Handler: "h"}
	id := func(kind byte, n int) ids.Invocation {
		return ids.NewInvocation(0, [16]byte{kind, byte(n), byte(n >> 8)})
	}
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		b := newBounded(t, level)
		root := func(n int) ids.Invocation { return id(1, n) }
		child := func(n, i int) ids.Invocation { return id(byte(2+n), i) }
		for n := range invocations {
			attempt := b.invoke(root(n), service, journal.NewInput(nil, nil))
			steps := []machine.Step{machinetest.Sleep(1, 1<<40)}
			for i := range calls {
				callee := machine.Callee{ID: child(n, i), Retention: machine.Retention{Completion: 1 << 40, Journal: 1 << 40}}
				steps = append(steps, machinetest.Call(uint32(2*i+2), uint32(2*i+3), service, input, callee))
			}
			b.apply(&machine.Progress{ID: root(n), Attempt: attempt, Steps: steps})
			for i := 0; i < calls; i += 2 {
				inv, err := b.st.Invocation(child(n, i))
				require.NoError(t, err)
				b.apply(&machine.Progress{ID: inv.ID, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
			}
		}
		b.mostRead = 0
		o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: level}, &machine.Kill{Target: root(0)}, nil)
		require.NoError(t, err)
		require.Equal(t, machine.OK, o.Code)
		b.apply(&machine.Kill{Target: root(1)})
		b.apply(&machine.Kill{Target: root(2)})
		b.settle()
		require.Equal(t, level >= feature.Level4, b.mostRead <= 16<<20+16<<10, "%d bytes", b.mostRead)
		for n := range invocations {
			inv, err := b.st.Invocation(root(n))
			require.NoError(t, err)
			require.Equal(t, machine.Completed, inv.Status)
			require.True(t, inv.Killed)
			require.Zero(t, inv.Sleeps)
			for i := range calls {
				inv, err := b.st.Invocation(child(n, i))
				require.NoError(t, err)
				require.Equal(t, machine.Completed, inv.Status)
				require.Equal(t, i%2 == 1, inv.Killed, "call %d", i)
			}
		}
	}
}

// TestOnePurgeFailsABoundedNumberOfWaiters purges a workflow with several promises, each of
// which has as many waiters as allowed.
func TestOnePurgeFailsABoundedNumberOfWaiters(t *testing.T) {
	const promises, waiters = 3, 5000
	run := machine.Target{Service: "W", Key: "k", Handler: "run", Type: target.WorkflowRun}
	shared := machine.Target{Service: "W", Key: "k", Handler: "ask", Type: target.WorkflowShared}
	flow := ids.NewInvocation(1, [16]byte{1})
	purge := map[string]func(b *bounded){
		"by operator": func(b *bounded) { b.apply(&machine.Purge{Target: flow}) },
		"by timer":    func(b *bounded) { b.now = 1 << 40 },
		"by a new run": func(b *bounded) {
			b.now = 1 << 40
			key := "again"
			b.apply(&machine.Invoke{ID: flow, Request: 2, Target: run, IdempotencyKey: &key, Input: journal.NewInput(nil, nil)})
		},
	}
	for how, purge := range purge {
		for _, level := range []feature.Level{feature.Level3, feature.Level4} {
			b := newBounded(t, level)
			attempt := b.invoke(flow, run, journal.NewInput(nil, nil))
			other := ids.NewInvocation(2, [16]byte{2})
			asking := b.invoke(other, shared, journal.NewInput(nil, nil))
			completion := uint32(0)
			for p := range promises {
				var steps []machine.Step
				for range waiters {
					completion++
					steps = append(steps, machinetest.GetPromise(completion, string(rune('a'+p))))
				}
				b.apply(&machine.Progress{ID: other, Attempt: asking, Steps: steps})
			}
			b.apply(&machine.Progress{ID: flow, Attempt: attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
			b.mostAppended = 0
			purge(b)
			for range 4 { // a purge that waits for responses is repeated
				b.settle()
				b.now += 1000
			}
			require.Equal(t, level >= feature.Level4, b.mostAppended <= 14_000, "%s: %d answers", how, b.mostAppended)
			for range b.st.Promises(run.Object()) {
				require.Fail(t, "a promise was not deleted")
			}
			inv, err := b.st.Invocation(flow)
			require.NoError(t, err)
			require.True(t, inv == nil || inv.Status == machine.Invoked)
			for c := range completion {
				settled, err := b.st.Notified(other, journal.Completion(c+1))
				require.NoError(t, err)
				require.Equal(t, journal.Failed, settled)
			}
			require.Empty(t, b.st.Faults())
		}
	}
}

// TestStateIsClearedAndListedWithoutReadingIt covers everything that clears the state of an
// object, and the list of its keys.
func TestStateIsClearedAndListedWithoutReadingIt(t *testing.T) {
	const keys = 1000
	object := machine.Target{Service: "O", Handler: "h", Key: "k", Type: target.ObjectExclusive}
	workflow := machine.Target{Service: "W", Handler: "run", Key: "k", Type: target.WorkflowRun}
	id := ids.NewInvocation(0, [16]byte{1})
	for name, test := range map[string]struct {
		to machine.Target
		do func(b *bounded, attempt uint64)
	}{
		"clear all": {object, func(b *bounded, attempt uint64) {
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.ClearAllState()}})
		}},
		"purge": {workflow, func(b *bounded, attempt uint64) {
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
			b.apply(&machine.Purge{Target: id})
		}},
		"state update": {object, func(b *bounded, attempt uint64) {
			b.update(ids.NewInvocation(0, [16]byte{2}), object.Object(), "v")
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
		}},
		"keys": {object, func(b *bounded, attempt uint64) {
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.GetStateKeys(1), machinetest.ClearAllState()}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBounded(t, feature.Level4)
			attempt := b.invoke(id, test.to, journal.NewInput(nil, nil))
			for n := range keys {
				b.st.PutValue(test.to.Object(), fmt.Append(nil, n), []byte("v"))
			}
			b.st.state = 0
			test.do(b, attempt)
			require.Zero(t, b.st.state)
			for e := range b.st.State.Values(test.to.Object()) {
				require.Equal(t, "k", string(e.Key))
			}
		})
	}
}

// TestSuspensionsReadABoundedPartOfAJournal suspends a handler on a signal that has arrived before
// the handler stored very much. It is woken once in vain, and then waits.
func TestSuspensionsReadABoundedPartOfAJournal(t *testing.T) {
	for level, most := range map[feature.Level]int{feature.Level3: 1 << 30, feature.Level4: 18 << 20} {
		b := newBounded(t, level)
		id := ids.NewInvocation(0, [16]byte{1})
		attempt := b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
		signal := journal.NamedSignal("again")
		b.apply(&machine.Signal{Target: id, ID: signal})
		reattempt := func() uint64 {
			inv, err := b.st.Invocation(id)
			require.NoError(t, err)
			return inv.Attempt
		}
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{{Kind: machine.StepYield}}}) // the signal is known from now on
		attempt = reattempt()
		for n := range uint32(40) {
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{
				machinetest.Run(n+1, ""), machinetest.RunCompletion(n+1, journal.Result{Value: make([]byte, 1<<20)}),
			}})
		}
		suspend := machine.Step{Kind: machine.StepSuspend, Await: &journal.Future{Names: []string{"again"}, Combinator: journal.CombineFirstCompleted}}
		suspensions := 0
		for status := machine.Invoked; status == machine.Invoked; suspensions++ {
			b.apply(&machine.Progress{ID: id, Attempt: reattempt(), Steps: []machine.Step{suspend}})
			inv, err := b.st.Invocation(id)
			require.NoError(t, err)
			status = inv.Status
		}
		require.LessOrEqual(t, b.mostRead, most)
		require.LessOrEqual(t, suspensions, 2)
	}
}

// TestARestartWithoutAResultReadsOnlyThePrefix restarts an invocation from a call without a
// result.
func TestARestartWithoutAResultReadsOnlyThePrefix(t *testing.T) {
	b := newBounded(t, feature.Level4)
	id := ids.NewInvocation(0, [16]byte{1})
	service := machine.Target{Service: "S", Handler: "h"}
	attempt := b.invoke(id, service, journal.NewInput(nil, nil))
	callee := machine.Callee{ID: ids.NewInvocation(0, [16]byte{2})}
	b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.Call(1, 2, service, nil, callee)}})
	for n := range uint32(40) {
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{
			machinetest.Run(n+3, ""), machinetest.RunCompletion(n+3, journal.Result{Value: make([]byte, 1<<20)}),
		}})
	}
	b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
	b.st.read = 0
	o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, &machine.Restart{Target: id, New: ids.NewInvocation(0, [16]byte{3}), From: 1}, nil)
	require.NoError(t, err)
	require.Equal(t, machine.Unanswered, o.Code)
	require.Less(t, b.st.read, 1<<20)
}

// TestOneEntryReadsABoundedNumberOfStates updates objects whose keys are free, with commands of one
// log entry. Each update reads the state of its object, to compare the version.
func TestOneEntryReadsABoundedNumberOfStates(t *testing.T) {
	const objects, large = 8, 1 << 20
	for level, updated := range map[feature.Level]int{feature.Level3: objects, feature.Level4: 4} {
		b := newBounded(t, level)
		id := func(kind byte, n int) ids.Invocation { return ids.NewInvocation(0, [16]byte{kind, byte(n)}) }
		object := func(n int) machine.Object { return machine.Object{Service: "Counter", Key: fmt.Sprint(n)} }
		state := []journal.StatePair{{Key: []byte("k"), Value: make([]byte, large)}}
		for n := range objects {
			b.apply(machinetest.Update(id(1, n), object(n), &journal.StateReplacement{State: state}))
		}
		version := machine.NewStateVersion()
		version.Add(machine.StateEntry{Key: state[0].Key, Value: state[0].Value})
		for n := range objects {
			c := machinetest.Update(id(2, n), object(n), &journal.StateReplacement{Version: version.String()})
			outcome, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: level, Command: n}, c, nil)
			require.NoError(t, err)
			require.Equal(t, machine.OK, outcome.Code)
			inv, err := b.st.Invocation(c.ID)
			require.NoError(t, err)
			require.Equal(t, n < updated, inv.Status == machine.Completed, "update %d at level %d", n, level)
			require.Empty(t, b.st.Broken(machinetest.Names{}))
		}
		if level >= feature.Level4 {
			b.apply(&machine.Kill{Target: id(2, objects-1)}) // while it is delayed
		}
		b.settle()
		for n := range objects {
			inv, err := b.st.Invocation(id(2, n))
			require.NoError(t, err)
			require.Equal(t, machine.Completed, inv.Status)
			_, found, err := b.st.Value(object(n), state[0].Key)
			require.NoError(t, err)
			require.Equal(t, inv.Killed, found, "state of object %d at level %d", n, level)
		}
	}
}

// TestDelayedKillSparesALaterInvocation kills a caller of many. One of its callees ends before the
// timer that kills it fires, and another invocation gets the same ID.
func TestDelayedKillSparesALaterInvocation(t *testing.T) {
	const callees = 400
	b := newBounded(t, feature.Level4)
	service := machine.Target{Service: "S", Handler: "h"}
	id := func(n int) ids.Invocation { return ids.NewInvocation(0, [16]byte{2, byte(n), byte(n >> 8)}) }
	root, key := ids.NewInvocation(0, [16]byte{1}), "k"
	attempt := b.invoke(root, service, journal.NewInput(nil, nil))
	invoke := machine.Invoke{ID: id(callees), Target: service, Input: journal.NewInput(nil, nil), IdempotencyKey: &key, Request: 1}
	b.apply(&invoke)
	var steps []machine.Step
	for n := range callees + 1 {
		steps = append(steps, machinetest.Call(uint32(2*n+1), uint32(2*n+2), service, nil, machine.Callee{ID: id(n)}))
	}
	b.apply(&machine.Progress{ID: root, Attempt: attempt, Steps: steps})
	b.apply(&machine.Kill{Target: root})
	first, err := b.st.Invocation(invoke.ID)
	require.NoError(t, err)
	require.Equal(t, machine.Invoked, first.Status)
	b.apply(&machine.Progress{ID: invoke.ID, Attempt: first.Attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
	b.now++
	invoke.Request = 2
	b.apply(&invoke)
	b.settle()
	second, err := b.st.Invocation(invoke.ID)
	require.NoError(t, err)
	require.NotNil(t, second, "it was killed, and its retention is over")
	require.NotEqual(t, first.Life, second.Life)
	require.Equal(t, machine.Invoked, second.Status)
	for n := range callees {
		callee, err := b.st.Invocation(id(n))
		require.NoError(t, err)
		require.True(t, callee == nil || callee.Killed, "callee %d", n)
	}
}

// TestSignalsThatAreNotAwaitedAreBounded sends signals to a handler that awaits very many other
// results, in each of which every signal is searched for.
func TestSignalsThatAreNotAwaitedAreBounded(t *testing.T) {
	const leaves, signals = 50_000, 400
	sleeping := func(n int) (f journal.Future) {
		f.Combinator = journal.CombineAllCompleted
		for i := range uint32(n) {
			f.Completions = append(f.Completions, i+1)
		}
		return f
	}
	nested := sleeping(1)
	nested.Nested = make([]journal.Future, leaves) // without leaves
	for name, await := range map[string]journal.Future{"leaves": sleeping(leaves), "nodes": nested} {
		for level, want := range map[feature.Level]machine.Status{feature.Level3: machine.Suspended, feature.Level4: machine.Invoked} {
			b := newBounded(t, level)
			service := machine.Target{Service: "S", Handler: "h"}
			id, other := ids.NewInvocation(0, [16]byte{1}), ids.NewInvocation(0, [16]byte{2})
			attempt := b.invoke(id, service, journal.NewInput(nil, nil))
			b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{
				machinetest.Sleep(1, 1<<40), {Kind: machine.StepSuspend, Await: &await},
			}})
			var steps []machine.Step
			for i := range uint32(signals) {
				steps = append(steps, machinetest.SendSignal(id, journal.NumberedSignal(17+i), nil))
			}
			b.apply(&machine.Progress{ID: other, Attempt: b.invoke(other, service, journal.NewInput(nil, nil)), Steps: steps})
			inv, err := b.st.Invocation(id)
			require.NoError(t, err)
			require.Equal(t, want, inv.Status, "%s at level %d", name, level)
		}
	}
}

// TestASignalDoesNotMakeNotificationsExpensive lets thousands of sleeps end that a handler awaits
// together, after a signal that it may not have consumed.
func TestASignalDoesNotMakeNotificationsExpensive(t *testing.T) {
	const sleeps = 4000
	for name, early := range map[string]bool{"before the suspension": true, "while suspended": false} {
		for _, level := range []feature.Level{feature.Level3, feature.Level4} {
			t.Run(fmt.Sprint(name, ", level ", level), func(t *testing.T) {
				b := newBounded(t, level)
				id := ids.NewInvocation(0, [16]byte{1})
				attempt := b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
				signal := func() { b.apply(&machine.Signal{Target: id, ID: journal.NamedSignal("x")}) }
				if early {
					signal()
				}
				all := journal.Future{Combinator: journal.CombineAllCompleted}
				var steps []machine.Step
				for n := range uint32(sleeps) {
					steps = append(steps, machinetest.Sleep(n+1, b.now+1000))
					all.Completions = append(all.Completions, n+1)
				}
				await := journal.Future{Combinator: journal.CombineFirstCompleted, Signals: []uint32{journal.CancelSignal}, Nested: []journal.Future{all}}
				b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: append(steps, machinetest.SuspendOn(await))})
				if !early {
					signal()
				}
				b.now += 1000
				b.st.lookups = 0
				entries := b.settle()
				inv, err := b.st.Invocation(id)
				require.NoError(t, err)
				require.Equal(t, machine.Invoked, inv.Status)
				require.Equal(t, attempt+1, inv.Attempt, "it ran once more")
				require.Equal(t, uint32(1+sleeps+1+sleeps), inv.Seen, "with all results")
				require.Less(t, entries, 10)
				require.Equal(t, level >= feature.Level4, b.st.lookups <= 3*sleeps, "%d lookups", b.st.lookups)
			})
		}
	}
}

// TestOneEntryLooksUpABoundedNumberOfAwaitedResults suspends invocations that await very many
// results, with commands of one log entry. Those that run once more suspend in the next one.
func TestOneEntryLooksUpABoundedNumberOfAwaitedResults(t *testing.T) {
	const invocations = 6
	for level, entries := range map[feature.Level]int{feature.Level3: 1, feature.Level4: 6} {
		b := newBounded(t, level)
		all := journal.Future{Combinator: journal.CombineAllCompleted}
		for n := range uint32(journal.MaxLeaves) {
			all.Completions = append(all.Completions, n+1)
		}
		running := map[ids.Invocation]uint64{}
		for n := range invocations {
			id := ids.NewInvocation(0, [16]byte{1, byte(n)})
			running[id] = b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
		}
		most, taken := 0, 0
		for ; len(running) > 0; taken++ {
			b.st.lookups = 0
			place := 0
			for id, attempt := range running {
				c := &machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.SuspendOn(all)}}
				o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: level, Command: place}, c, nil)
				require.NoError(t, err)
				require.Equal(t, machine.OK, o.Code)
				place++
				inv, err := b.st.Invocation(id)
				require.NoError(t, err)
				if running[id] = inv.Attempt; inv.Status == machine.Suspended {
					delete(running, id)
				}
			}
			most = max(most, b.st.lookups)
		}
		require.LessOrEqual(t, taken, entries)
		require.Equal(t, level >= feature.Level4, most <= 128<<10+2*journal.MaxLeaves, "%d lookups", most)
	}
}

// TestOneEntryEvaluatesABoundedNumberOfLeaves ends thousands of sleeps in one log entry that a
// handler awaits together.
func TestOneEntryEvaluatesABoundedNumberOfLeaves(t *testing.T) {
	const sleeps = 6000
	for level, seen := range map[feature.Level]int{feature.Level3: sleeps, feature.Level4: 2000} {
		b := newBounded(t, level)
		id := ids.NewInvocation(0, [16]byte{1})
		attempt := b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
		all := journal.Future{Combinator: journal.CombineAllCompleted}
		var steps []machine.Step
		for n := range uint32(sleeps) {
			steps = append(steps, machinetest.Sleep(n+1, b.now+1000))
			all.Completions = append(all.Completions, n+1)
		}
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: append(steps, machinetest.SuspendOn(all))})
		b.now += 1000
		b.apply(&machine.FireTimers{Timers: b.st.Timers()})
		inv, err := b.st.Invocation(id)
		require.NoError(t, err)
		require.Equal(t, machine.Invoked, inv.Status)
		require.Equal(t, attempt+1, inv.Attempt)
		require.Equal(t, uint32(1+2*sleeps), inv.Length)
		require.Equal(t, level >= feature.Level4, inv.Seen < inv.Length, "it runs before all results are there")
		require.LessOrEqual(t, inv.Seen, uint32(1+sleeps+seen))
	}
}

// A deletion writes its key, too, so that of a long key is carried out only if older servers have stored
// the key.
func TestLongKeysThatDoNotExistAreNotDeleted(t *testing.T) {
	b := newBounded(t, feature.Level1)
	id, to := ids.NewInvocation(1, [16]byte{1}), machine.Target{Service: "S", Key: "k", Handler: "h", Type: target.ObjectExclusive}
	attempt := b.invoke(id, to, journal.NewInput(nil, nil))
	long := strings.Repeat("k", limits.Key+1)
	b.st.PutValue(to.Object(), []byte(long), []byte("v"))
	clear := func(key string) (deleted int) {
		before := b.st.state
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{machinetest.ClearState(key)}})
		return b.st.state - before
	}
	require.Equal(t, 1, clear("short"))
	require.Equal(t, 0, clear(long+"x"))
	require.Equal(t, 1, clear(long))
	_, found, err := b.st.Value(to.Object(), []byte(long))
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, 0, clear(long))
}
