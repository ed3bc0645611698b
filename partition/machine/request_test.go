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

// apply applies commands that must not fail, at one time.
func apply(t *testing.T, s *machinetest.State, commands ...machine.Command) (outcomes []machine.Outcome) {
	t.Helper()
	m := machine.New(machine.Shards{Count: 1})
	for _, c := range commands {
		outcome, _, err := m.Apply(s, machine.Header{Epoch: 1, Time: 1000}, c, nil)
		require.NoError(t, err)
		outcomes = append(outcomes, outcome)
	}
	require.Empty(t, s.Broken(nil))
	require.Empty(t, s.Faults())
	return outcomes
}

func TestRetriedCancelTakesEffectOnce(t *testing.T) {
	s := machinetest.NewStrict()
	id := ids.NewInvocation(1, [16]byte{15: 1})
	cancel := func(request uint64) *machine.Signal {
		return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal), Request: request}
	}
	apply(t, s, &machine.Lead{Epoch: 1}, &machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil)})
	length := func() uint32 {
		inv, err := s.Invocation(id)
		require.NoError(t, err)
		return inv.Length
	}
	outcomes := apply(t, s, cancel(7), cancel(7), cancel(8), cancel(7))
	require.Equal(t, uint32(3), length(), "the input and two cancels")
	for _, o := range outcomes {
		require.Equal(t, machine.OK, o.Code)
	}
	for request := range uint64(8) {
		apply(t, s, cancel(100+request))
	}
	apply(t, s, cancel(107), cancel(0), cancel(0))
	require.Equal(t, uint32(13), length(), "requests without a number are never deduplicated")
}

func TestEndedWaitersOfAPromiseAreRemoved(t *testing.T) {
	s := machinetest.NewStrict()
	target := machine.Target{Service: "W", Key: "k", Handler: "h", Type: target.WorkflowShared}
	apply(t, s, &machine.Lead{Epoch: 1})
	const n = 200
	for i := range n {
		id := ids.NewInvocation(1, [16]byte{14: 1, 15: byte(i)})
		apply(t, s, &machine.Invoke{ID: id, Target: target, Input: journal.NewInput(nil, nil)})
		inv, err := s.Invocation(id)
		require.NoError(t, err)
		apply(t, s, &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.GetPromise(1, "p")}}, &machine.Kill{Target: id})
	}
	p, err := s.Promise(target.Object(), "p")
	require.NoError(t, err)
	require.Less(t, len(p.Waiting), 32)
}

// blindState fails if an invocation is looked up.
type blindState struct {
	*machinetest.State
	t *testing.T
}

func (s blindState) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	s.t.Errorf("%s was looked up", id)
	return nil, nil
}

func TestAFreshInvocationIsNotLookedUp(t *testing.T) {
	s := machinetest.NewStrict()
	m := machine.New(machine.Shards{Count: 1})
	id := ids.NewInvocation(1, [16]byte{15: 1})
	c := &machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil), Fresh: true}
	_, _, err := m.Apply(s, machine.Header{Epoch: 1, Time: 1000, Level: feature.Level3}, &machine.Lead{Epoch: 1}, nil)
	require.NoError(t, err)
	for _, want := range []machine.Code{machine.OK, machine.Existing} {
		o, _, err := m.Apply(s, machine.Header{Epoch: 1, Time: 1000, Level: feature.Level3}, c, nil)
		require.NoError(t, err)
		require.Equal(t, want, o.Code, "below the level of the mark")
	}
	c.ID[23] = 2
	o, effects, err := m.Apply(blindState{s, t}, machine.Header{Epoch: 1, Time: 1000, Level: feature.Level4}, c, nil)
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	require.Len(t, effects, 1)
	require.Empty(t, s.Broken(nil))
	require.Empty(t, s.Faults())
}
