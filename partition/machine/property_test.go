package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// A history checks the invariants and the order of queues after every command.
func TestInvariantsHoldInEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newHistory(t, 2, true).run(60)
	})
}

// The invariants require that admission exceeds no limit and that no admissible invocation
// waits.
func TestInvariantsHoldUnderFlowControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 1, true)
		h.scoped = 90
		h.drawFlow(0)
		h.run(80)
	})
}

func TestEverythingInScopesEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 1, false)
		h.scoped = 90
		h.drawFlow(0)
		h.run(60)
		h.drain(nil)
		h.checkExpiry()
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
					fresh.machine.Tighten()
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
			for _, id := range h.ids { // dumps omit some fields
				want, err := h.parts[p].state.Invocation(id)
				require.NoError(t, err)
				got, err := fresh.state.Invocation(id)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		}
	})
}

// A history checks that nothing ends twice.
func TestEverythingAcceptedEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, false)
		h.run(40)
		h.drain(nil)
		h.checkExpiry()
	})
}

func TestEverythingEndsOnceItIsCancelledOrResumed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, true)
		h.run(60)
		h.drain(func(id ids.Invocation) machine.Command {
			if h.status(id) == machine.Paused && h.chance(50) {
				return &machine.Resume{Target: id}
			}
			return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal)}
		})
		h.checkExpiry()
	})
}

func TestInvariantsHoldIfTimersContinueAlmostEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, true)
		h.tighten()
		h.run(60)
	})
}

func TestEverythingEndsIfTimersContinueAlmostEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, true)
		h.tighten()
		h.run(60)
		h.drain(func(id ids.Invocation) machine.Command {
			return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal)}
		})
		h.checkExpiry()
	})
}

// purgeDelay is the time after which a purge is repeated that had to wait.
const purgeDelay = 1000

// checkExpiry checks that after their retention nothing remains of the invocations except
// the state of objects. Operators may create state, and shared handlers promises, for a
// workflow that never runs.
func (h *history) checkExpiry() {
	left := `^(meta|state (\S+:)?Counter/|sent|outgoing|delivered)`
	if h.full {
		left = `^(meta|state|promise|sent|outgoing|delivered)`
	}
	h.now += 10 * machine.MinRetention
	for p, part := range h.parts {
		for round := 0; round < 4 || h.tight && round < 100 && len(part.state.Timers()) > 0; round++ {
			h.apply(p, &machine.FireTimers{Timers: part.state.Timers()})
			h.now += purgeDelay
		}
		for _, row := range part.state.Dump(h.names) {
			require.Regexp(h, left, row.Key, row)
		}
	}
}

// drain runs until every handler has ended. Handlers that have not ended after a while are pushed, if
// push is set.
func (h *history) drain(push func(ids.Invocation) machine.Command) {
	h.resumeQueues()
	for round := range 1000 {
		living := h.living()
		if len(living) == 0 {
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
		}
		for _, id := range living {
			inv, err := h.parts[h.owner(id)].state.Invocation(id)
			require.NoError(h, err)
			if inv != nil && inv.Status == machine.Invoked {
				steps := []machine.Step{machinetest.Output(journal.Result{Value: []byte("v")}), machinetest.End()}
				h.apply(h.owner(id), &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: steps})
			} else if round >= 50 && push != nil {
				h.apply(h.owner(id), push(id))
			}
		}
	}
	require.Empty(h, h.living(), "still alive: %v", h.names)
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
	want := machine.OK
	if len(c.Messages) == 0 {
		want = machine.Existing
	}
	require.Equal(h, want, h.apply(to, c).Code)
}
