package machine_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// newTrustingWorld returns a world of one partition with tables that do not check the
// machine.
func newTrustingWorld() *world {
	w := newWorld(1)
	meta := *w.parts[0].state.Meta()
	w.parts[0].state = machinetest.New()
	*w.parts[0].state.Meta() = meta
	return w
}

func (w *world) must(t *testing.T, c machine.Command) []machine.Effect {
	t.Helper()
	p := w.parts[0]
	outcome, effects, err := p.machine.Apply(p.state, machine.Header{Epoch: 1, Time: w.now}, c, nil)
	require.NoError(t, err)
	require.Equal(t, machine.OK, outcome.Code)
	return effects
}

// shallow makes deep recursion below it fail the test program.
func shallow(t *testing.T) {
	before := debug.SetMaxStack(1 << 20)
	t.Cleanup(func() { debug.SetMaxStack(before) })
}

func TestThousandsOfQueuedUpdatesApplyInOrderInOneCommand(t *testing.T) {
	shallow(t)
	const changes = 20_000
	w := newTrustingWorld()
	holder, o := w.id("holder"), machine.Object{Service: "Counter", Key: "k"}
	w.must(t, &machine.Invoke{ID: holder, Target: parseTarget("Counter/k/add", "object"), Input: journal.NewInput(nil, nil)})
	for n := range changes {
		state := []journal.StatePair{{Key: []byte("count"), Value: fmt.Append(nil, n)}}
		w.must(t, machinetest.Update(w.id(fmt.Sprint("u", n)), o, &journal.StateReplacement{State: state}))
	}
	next := w.id("next")
	w.must(t, &machine.Invoke{ID: next, Target: parseTarget("Counter/k/add", "object"), Input: journal.NewInput(nil, nil)})

	finished := 0
	for _, e := range w.must(t, &machine.Kill{Target: holder}) {
		switch e := e.(type) {
		case *machine.Finish:
			if e.ID != holder {
				require.Equal(t, w.id(fmt.Sprint("u", finished)), e.ID)
				finished++
			}
		case *machine.Run:
			require.Equal(t, next, e.Invocation.ID)
			require.Equal(t, changes, finished, "the next handler starts when all updates are done")
		}
	}
	require.Equal(t, changes, finished)
	value, found, err := w.parts[0].state.Value(o, []byte("count"))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, fmt.Sprint(changes-1), string(value))
}

func TestAKillReachesTheEndOfALongChainOfCalls(t *testing.T) {
	shallow(t)
	const calls = 20_000
	w := newTrustingWorld()
	name := func(n int) string { return fmt.Sprint("c", n) }
	w.must(t, &machine.Invoke{ID: w.id(name(0)), Target: parseTarget("Greeter/greet", "service"), Input: journal.NewInput(nil, nil)})
	for n := range calls {
		call := machinetest.Call(1, 2, parseTarget("Greeter/greet", "service"), nil, machine.Callee{ID: w.id(name(n + 1))})
		inv, err := w.parts[0].state.Invocation(w.id(name(n)))
		require.NoError(t, err)
		w.must(t, &machine.Progress{ID: inv.ID, Attempt: inv.Attempt, Steps: []machine.Step{call, machinetest.Suspend(2)}})
	}
	w.must(t, &machine.Kill{Target: w.id(name(0))})
	last, err := w.parts[0].state.Invocation(w.id(name(calls)))
	require.NoError(t, err)
	require.Equal(t, machine.Completed, last.Status)
	require.True(t, last.Killed)
}
