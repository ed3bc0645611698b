package machine_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// drawOperator generates a signal, an operator command or a state update.
func (h *history) drawOperator(p int) {
	if n := h.number("operation", 0, 9); n == 0 {
		h.drawUpdate(p)
		return
	}
	target, ok := h.drawKnown(p)
	if !ok {
		return
	}
	before := h.status(target)
	switch h.number("operation", 1, 9) {
	case 1, 2, 3:
		h.apply(p, &machine.Signal{Target: target, ID: h.drawSignal(), Result: h.drawOptional(), Request: uint64(h.number("request", 0, 3))})
	case 4:
		outcome := h.apply(p, &machine.Kill{Target: target})
		require.Equal(h, before != 0 && before != machine.Completed, outcome.Code == machine.OK)
		want := []machine.Status{0, machine.Completed}
		if h.tight {
			want = append(want, machine.Paused) // a timer continues
		}
		require.Contains(h, want, h.status(target))
	case 5:
		c := &machine.Pause{Target: target}
		if h.level >= feature.Level4 && h.chance(30) {
			c.Repin = "dp_2"
		}
		h.apply(p, c)
		switch {
		case before == machine.Invoked && h.level >= feature.Level2:
			require.Equal(h, machine.Invoked, h.status(target))
			inv, err := h.parts[p].state.Invocation(target)
			require.NoError(h, err)
			require.True(h, inv.Pausing)
		case before == machine.Invoked || before == machine.Suspended:
			require.Equal(h, machine.Paused, h.status(target))
		}
	case 6:
		h.apply(p, &machine.Resume{Target: target, Repin: h.drawRepin()})
	case 7:
		outcome := h.apply(p, &machine.Purge{Target: target, Journal: h.chance(50)})
		require.Equal(h, before == machine.Completed, outcome.Code == machine.OK)
	default:
		h.drawRestart(p, target)
	}
}

// drawKnown draws an invocation of the partition, which may have been purged.
func (h *history) drawKnown(p int) (ids.Invocation, bool) {
	var known []ids.Invocation
	for _, name := range h.sortedNames() {
		if id := h.ids[name]; h.owner(id) == p {
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return ids.Invocation{}, false
	}
	return known[h.number("which", 0, len(known)-1)], true
}

func (h *history) drawUpdate(p int) {
	h.fresh++
	o := machine.Object{Service: "Counter", Key: fmt.Sprintf("k%d@%d", h.number("key", 1, 2), p)}
	if h.chance(30) {
		o = machine.Object{Service: "Wf", Key: fmt.Sprintf("w%d@%d", h.number("key", 1, 2), p)}
	}
	r := &journal.StateReplacement{}
	for range h.number("pairs", 0, 2) {
		r.State = append(r.State, journal.StatePair{Key: fmt.Appendf(nil, "k%d", h.number("key", 1, 3)), Value: []byte("u")})
	}
	if h.chance(50) {
		r.Version = h.version(p, o)
	}
	h.apply(p, machinetest.Update(h.id(fmt.Sprintf("u%d@%d", h.fresh, p)), o, r))
}

// drawRestart also checks the initial journal of the new invocation: the commands up to the
// index, each with its completions, in the order of the old journal.
func (h *history) drawRestart(p int, target ids.Invocation) {
	st := h.parts[p].state
	old, err := st.Invocation(target)
	require.NoError(h, err)
	h.fresh++
	c := &machine.Restart{
		Target: target, New: h.id(fmt.Sprintf("r%d@%d", h.fresh, p)),
		From: uint32(h.number("from", 0, 8)), Keep: h.chance(50), Repin: h.drawRepin(),
	}
	var want []journal.Entry
	if old != nil {
		for i := range old.Length {
			e, err := st.Entry(target, i)
			require.NoError(h, err)
			want = append(want, e)
		}
	}
	if h.apply(p, c).Code != machine.OK {
		require.Zero(h, h.status(c.New))
		return
	}
	inv, err := st.Invocation(c.New)
	require.NoError(h, err)
	var at int
	for i := range inv.Length {
		e, err := st.Entry(c.New, i)
		require.NoError(h, err)
		for at < len(want) && (want[at].Type != e.Type || string(want[at].Payload) != string(e.Payload)) {
			require.Greater(h, at, int(c.From), "entry %d is missing", at)
			at++
		}
		require.Less(h, at, len(want), "entry %d is not from the old journal", i)
		require.True(h, at <= int(c.From) || e.Type.IsNotification() && e.Type != journal.Signal, "entry %d", i)
		at++
	}
	_, waits := h.open(inv)
	require.Empty(h, waits)
	again := h.apply(p, c)
	require.Equal(h, machine.OK, again.Code)
}

func (h *history) drawRepin() *machine.Repin {
	if h.chance(60) {
		return nil
	}
	return &machine.Repin{Deployment: "dp_2", Min: 5, Max: uint8(h.number("max", 5, 7))}
}

func (h *history) drawSignal() journal.NotificationID {
	switch n := h.number("signal", 0, 5); n {
	case 0, 1:
		return journal.NamedSignal("go")
	case 2:
		return journal.NumberedSignal(2)
	case 3, 4:
		return journal.NumberedSignal(uint32(14 + n)) // an awakeable
	}
	return journal.NumberedSignal(journal.CancelSignal)
}

func (h *history) drawOptional() *journal.Result {
	if h.chance(30) {
		return nil
	}
	r := h.drawResult()
	return &r
}

// drawShared draws a step that involves other invocations or promises.
func (h *history) drawShared(inv *machine.Invocation, id, wait func() uint32) machine.Step {
	key := fmt.Sprintf("p%d", h.number("promise", 1, 2))
	n := h.number("shared", 0, 7)
	if inv.Target.Type.Workflow() && n >= 4 {
		switch n {
		case 4:
			return machinetest.PeekPromise(id(), key)
		case 5:
			return machinetest.CompletePromise(id(), key, h.drawResult())
		}
		return machinetest.GetPromise(wait(), key)
	}
	to, _ := h.drawKnown(h.number("owner", 0, len(h.parts)-1))
	if to.IsZero() {
		to = inv.ID
	}
	switch n % 4 {
	case 0:
		return machinetest.SendSignal(to, h.drawSignal(), h.drawOptional())
	case 1:
		return machinetest.CompleteAwakeable(to, 17, h.drawResult())
	case 2:
		return machinetest.Attach(wait(), to)
	}
	return machinetest.GetOutput(wait(), to)
}
