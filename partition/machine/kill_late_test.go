package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// Killing a caller kills the call that it waits for in another partition, but not an invocation that
// has taken over the ID of that call meanwhile.
func TestKillsOfCallsDoNotReachLaterInvocations(t *testing.T) {
	for _, reused := range []bool{false, true} {
		w := newWorld(2)
		apply := func(p int, c machine.Command) {
			o, _, err := w.parts[p].machine.Apply(w.parts[p].state, machine.Header{Epoch: 1, Time: w.now, Level: feature.Level4}, c, nil)
			require.NoError(t, err)
			require.Equal(t, machine.OK, o.Code)
		}
		status := func(name string) machine.Status {
			id := w.id(name)
			inv, err := w.parts[w.owner(id)].state.Invocation(id)
			require.NoError(t, err)
			return inv.Status
		}
		progress := func(name string, steps ...machine.Step) {
			id := w.id(name)
			inv, err := w.parts[w.owner(id)].state.Invocation(id)
			require.NoError(t, err)
			apply(w.owner(id), &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: steps})
		}
		deliver := func(seq uint64) {
			apply(1, &machine.Deliver{From: 0, FirstSeq: seq, Messages: []machine.Message{w.parts[0].state.Outgoing(1, seq)}})
		}
		run, input := parseTarget("Wf/w/run", "workflow"), journal.NewInput(nil, nil)
		apply(0, &machine.Invoke{ID: w.id("caller@0"), Target: parseTarget("Greeter/greet", "service"), Input: input})
		progress("caller@0", machinetest.Call(1, 2, run, nil, machine.Callee{ID: w.id("callee@1")}))
		deliver(1)
		if reused {
			progress("callee@1", machinetest.Output(journal.Result{}), machinetest.End())
			apply(1, &machine.Invoke{ID: w.id("callee@1"), Target: run, Input: input})
			require.Equal(t, machine.Invoked, status("callee@1"))
		}
		apply(0, &machine.Kill{Target: w.id("caller@0")})
		require.Equal(t, machine.Completed, status("caller@0"))
		deliver(2)
		want := machine.Completed
		if reused {
			want = machine.Invoked
		}
		require.Equal(t, want, status("callee@1"), "reused: %v", reused)
		for _, p := range w.parts {
			require.Empty(t, p.state.Broken(w.names))
		}
	}
}
