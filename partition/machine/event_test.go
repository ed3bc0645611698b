package machine_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestHistoryKeepsTheNewestEvents checks the bounds, beside those that the invariants check:
// as much as fits is kept, and the newest of it.
func TestHistoryKeepsTheNewestEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(1)
		st, id := w.parts[0].state, w.id("a")
		apply := func(c machine.Command) {
			w.now++
			outcome, _, err := w.parts[0].machine.Apply(st, machine.Header{Level: feature.Level4, Epoch: 1, Time: w.now}, c, nil)
			require.NoError(rt, err)
			require.Equal(rt, machine.OK, outcome.Code)
			require.Empty(rt, st.Faults())
			require.Empty(rt, st.Broken(w.names))
		}
		apply(&machine.Invoke{ID: id, Target: parseTarget("Greeter/greet", "service"), Input: journal.NewInput(nil, nil)})
		const events = machine.MaxEvents + 20
		var sent []int64
		for range events {
			f := &machine.AttemptFailure{
				Code: 500, Message: strings.Repeat("ä", rapid.IntRange(0, 3000).Draw(rt, "message")),
				Stacktrace: strings.Repeat("s", rapid.SampledFrom([]int{0, 0, 100, 70_000}).Draw(rt, "stack")),
			}
			apply(&machine.Progress{ID: id, Attempt: 1, Steps: []machine.Step{{Kind: machine.StepRetry, Failure: f}}})
			sent = append(sent, w.now)
		}
		inv, err := st.Invocation(id)
		require.NoError(rt, err)
		h := inv.History
		require.EqualValues(rt, events, h.Next)
		kept := int(h.Next - h.First)
		require.Positive(rt, kept)
		for n := h.First; n < h.Next; n++ {
			e, err := st.Event(id, n)
			require.NoError(rt, err)
			require.Equal(rt, sent[n], e.At)
			require.True(rt, strings.ToValidUTF8(e.Failure.Message, "?") == e.Failure.Message)
		}
		const largest = 13 << 10 // of an event
		require.True(rt, kept == machine.MaxEvents || h.Bytes > machine.MaxEventBytes-largest, "%d events with %d bytes", kept, h.Bytes)
	})
}

func TestBriefFailuresAreUnchanged(t *testing.T) {
	f := &machine.AttemptFailure{Message: strings.Repeat("m", 4<<10), Stacktrace: strings.Repeat("s", 8<<10), RelatedName: strings.Repeat("n", 256), RelatedIndex: new(uint32(math.MaxUint32))}
	require.Same(t, f, f.Brief())
	longer := *f
	longer.Stacktrace += "t"
	brief := longer.Brief()
	require.Equal(t, strings.Repeat("s", 8<<10-3)+"…", brief.Stacktrace)
	require.Equal(t, f.Message, brief.Message)
	require.Equal(t, brief, brief.Brief())
}

// TestAPauseForAnotherDeploymentIsOneEvent pauses an invocation whose attempts fail, to resume it on
// another deployment, which succeeds or not.
func TestAPauseForAnotherDeploymentIsOneEvent(t *testing.T) {
	const before, latest = ids.Deployment("dp_before"), ids.Deployment("dp_latest")
	for moved, resume := range map[bool]*machine.Resume{
		true:  {Repin: &machine.Repin{Deployment: latest, Min: 5, Max: 7}},
		false: {},
	} {
		b := newBounded(t, feature.Level4)
		id := ids.NewInvocation(1, [16]byte{1})
		attempt := b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Pin: machine.Pin{Deployment: before, Protocol: 6}, Steps: []machine.Step{machinetest.Run(1, "step")}})
		b.apply(&machine.Pause{Target: id, Repin: latest})
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{{Kind: machine.StepYield}}})
		inv, err := b.st.Invocation(id)
		require.NoError(t, err)
		require.Equal(t, machine.Paused, inv.Status)
		require.Equal(t, machine.BeforeRepin, inv.LastPause.Cause)
		resume.Target = id
		b.apply(resume)

		inv, err = b.st.Invocation(id)
		require.NoError(t, err)
		require.Equal(t, machine.Invoked, inv.Status)
		if !moved {
			require.Zero(t, inv.History, "nothing has happened")
			require.Nil(t, inv.LastPause)
			continue
		}
		require.EqualValues(t, 1, inv.History.Next)
		e, err := b.st.Event(id, 0)
		require.NoError(t, err)
		require.Equal(t, machine.LeftPause, e.Kind)
		require.Equal(t, machine.BeforeRepin, e.Pause.Cause)
		require.Equal(t, string(latest), e.Pause.Reason)
	}
}

// TestAPauseByAnOperatorOutlastsOneForAnotherDeployment pauses an invocation to resume it on another
// deployment, and an operator pauses it as well, before the pause takes effect or afterwards.
func TestAPauseByAnOperatorOutlastsOneForAnotherDeployment(t *testing.T) {
	for _, early := range []bool{true, false} {
		b := newBounded(t, feature.Level4)
		id := ids.NewInvocation(1, [16]byte{1})
		attempt := b.invoke(id, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
		b.apply(&machine.Pause{Target: id, Repin: "dp_latest"})
		pause := &machine.Pause{Target: id, By: "10.0.0.1", Reason: "incident"}
		if early {
			b.apply(pause)
		}
		b.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: []machine.Step{{Kind: machine.StepYield}}})
		if !early {
			b.apply(pause)
		}

		inv, err := b.st.Invocation(id)
		require.NoError(t, err)
		require.Equal(t, machine.Paused, inv.Status)
		require.Equal(t, machine.PausedByOperator, inv.LastPause.Cause)
		require.Equal(t, "incident", inv.LastPause.Reason)
		require.EqualValues(t, 1, inv.History.Next)
		e, err := b.st.Event(id, 0)
		require.NoError(t, err)
		require.Equal(t, machine.EnteredPause, e.Kind)
		require.Equal(t, "10.0.0.1", e.Pause.By)
	}
}
