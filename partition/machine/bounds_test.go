package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// bounded applies entries of one command and counts what each of them ends.
type bounded struct {
	t     *testing.T
	st    *machinetest.State
	m     *machine.Machine
	level feature.Level
	most  int // invocations that one entry has ended
}

func newBounded(t *testing.T, level feature.Level) *bounded {
	b := &bounded{t: t, st: machinetest.NewStrict(), m: machine.New(machine.Shards{Count: 1}), level: level}
	b.apply(&machine.Lead{Epoch: 1})
	b.most = 0
	return b
}

func (b *bounded) apply(c machine.Command) {
	b.t.Helper()
	o, effects, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: 1000, Level: b.level}, c, nil)
	require.NoError(b.t, err)
	require.Equal(b.t, machine.OK, o.Code)
	ended := 0
	for _, e := range effects {
		if _, ok := e.(*machine.Finish); ok {
			ended++
		}
	}
	b.most = max(b.most, ended)
}

// settle fires the due timers, in commands as large as those of a leader.
func (b *bounded) settle() (entries int) {
	for {
		require.Empty(b.t, b.st.Broken(machinetest.Names{}))
		var due []machine.Timer
		for _, t := range b.st.Timers() {
			if t.At <= 1000 && len(due) < 512 {
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
