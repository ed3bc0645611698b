package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// The invariants and the order of queues are checked by history after every
// command.
func TestInvariantsHoldInEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newHistory(t, 2, true).run(60)
	})
}

func TestRestartsAtAnyPointChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, true)
		h.run(40)
		for p, log := range h.logs {
			fresh := newWorld(2).parts[p]
			for i, l := range log {
				if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
					fresh.state = fresh.state.Reload()
					fresh.machine = machine.New(machine.Shards{Self: uint32(p), Count: 2})
				}
				outcome, effects, err := fresh.machine.Apply(fresh.state, l.header, l.command, nil)
				require.NoError(t, err)
				require.Equal(t, machinetest.Outcome(l.outcome), machinetest.Outcome(outcome), "command %d", i)
				var texts []string
				for _, e := range effects {
					texts = append(texts, h.names.Effect(e))
				}
				require.Equal(t, l.effects, texts, "command %d", i)
			}
			require.Equal(t, h.parts[p].state.Dump(h.names), fresh.state.Dump(h.names))
			for _, id := range h.ids { // dumps leave fields out
				want, err := h.parts[p].state.Invocation(id)
				require.NoError(t, err)
				got, err := fresh.state.Invocation(id)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
	})
}

func TestEverythingAcceptedEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, false)
		h.run(40)
		h.drain()
		require.Empty(t, h.alive, "still alive: %v", h.names)
		for p := range h.parts {
			for _, id := range h.ids {
				inv, err := h.parts[p].state.Invocation(id)
				require.NoError(t, err)
				if inv != nil {
					require.Equal(t, machine.Completed, inv.Status, h.names.Of(id))
				}
			}
		}
		// And after their retention nothing is left of them but the state of objects.
		h.now += 10 * machine.MinRetention
		for p, part := range h.parts {
			h.apply(p, &machine.FireTimers{Timers: part.state.Timers()})
			h.apply(p, &machine.FireTimers{Timers: part.state.Timers()})
			for _, row := range part.state.Dump(h.names) {
				require.Regexp(t, `^(meta|state Counter/|sent|outgoing|delivered)`, row.Key, row)
			}
		}
	})
}

// drain lets every handler come to its end.
func (h *history) drain() {
	for range 1000 {
		if len(h.alive) == 0 {
			return
		}
		h.now += 100
		for p, part := range h.parts {
			h.apply(p, &machine.FireTimers{Timers: part.state.Timers()})
			for from := range h.parts {
				if from != p {
					h.shipAll(from, p)
				}
			}
			for _, name := range h.sortedNames() {
				inv, err := part.state.Invocation(h.ids[name])
				require.NoError(h, err)
				if inv != nil && inv.Status == machine.Invoked {
					steps := []machine.Step{machinetest.Output(journal.Result{Value: []byte("v")}), machinetest.End()}
					h.apply(p, &machine.Progress{ID: inv.ID, Attempt: inv.Attempt, Steps: steps})
				}
			}
		}
	}
}

func (h *history) shipAll(from, to int) {
	delivered, err := h.parts[to].state.LastDelivered(uint32(from))
	require.NoError(h, err)
	c := &machine.Deliver{From: uint32(from), FirstSeq: delivered + 1}
	for seq := delivered + 1; ; seq++ {
		msg := h.parts[from].state.Outgoing(uint32(to), seq)
		if msg == nil {
			break
		}
		c.Messages = append(c.Messages, msg)
	}
	require.Equal(h, machine.OK, h.apply(to, c).Code)
}
