package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestAPausedScopeStartsNothing pauses a scope in which nothing is queued yet: invocations of all
// services and limit keys wait, until it is resumed.
func TestAPausedScopeStartsNothing(t *testing.T) {
	b := newBounded(t, feature.Level4)
	status := func(id ids.Invocation) machine.Status {
		inv, err := b.st.Invocation(id)
		require.NoError(t, err)
		return inv.Status
	}
	var made []ids.Invocation
	invoke := func(scope, service, limitKey string) ids.Invocation {
		id := ids.NewInvocation(1, [16]byte{byte(len(made) + 1)})
		made = append(made, id)
		b.apply(&machine.Invoke{ID: id, Target: machine.Target{Scope: scope, Service: service, Handler: "h"}, LimitKey: limitKey, Input: journal.NewInput(nil, nil)})
		return id
	}
	running := invoke("s", "A", "")
	scope := flowcontrol.QueueKey{Scope: "s"}
	b.apply(&machine.PauseQueue{Queue: scope, Paused: true, By: "10.0.0.1"})
	b.apply(&machine.PauseQueue{Queue: scope, Paused: true, By: "10.0.0.2"})
	require.Equal(t, machine.Invoked, status(running), "what runs continues")
	waiting := []ids.Invocation{invoke("s", "A", ""), invoke("s", "B", "x"), invoke("s", "B", "x/y")}
	for _, id := range waiting {
		require.Equal(t, machine.Inboxed, status(id))
	}
	require.Equal(t, machine.Invoked, status(invoke("t", "A", "")), "another scope")
	counter, err := b.st.Counter(flowcontrol.CounterKey{Scope: "s"})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1", counter.Pause.By, "the first pause is kept")

	b.apply(&machine.Kill{Target: running})
	b.now += 1 << 30
	b.settle()
	for _, id := range waiting {
		require.Equal(t, machine.Inboxed, status(id))
	}
	b.apply(&machine.PauseQueue{Queue: scope})
	b.settle()
	for _, id := range waiting {
		require.Equal(t, machine.Invoked, status(id))
		b.apply(&machine.Kill{Target: id})
	}
	b.settle()
	counter, err = b.st.Counter(flowcontrol.CounterKey{Scope: "s"})
	require.NoError(t, err)
	require.Zero(t, counter, "no row is left")
	require.Empty(t, b.st.Broken(machinetest.Names{}))

	// A pause outlives the invocations of its scope.
	b.apply(&machine.PauseQueue{Queue: scope, Paused: true})
	require.Equal(t, machine.Inboxed, status(invoke("s", "C", "")))
}

// The admin API refuses such scopes as well. A counter with such a name could end all replicas: it is
// continued from when the rules change.
func TestInvalidScopesCannotBePaused(t *testing.T) {
	b := newBounded(t, feature.Level4)
	for _, scope := range []string{"a/b", "*", "a b", "\xff"} {
		o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: scope}, Paused: true}, nil)
		require.NoError(t, err)
		require.Equal(t, machine.NotFound, o.Code, scope)
	}
	require.Empty(t, b.st.AllCounters())
}

// Below feature level 4, a queue without a service does not exist.
func TestScopesCannotBePausedBelowLevel4(t *testing.T) {
	b := newBounded(t, feature.Level3)
	o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: "s"}, Paused: true}, nil)
	require.NoError(t, err)
	require.Equal(t, machine.NotFound, o.Code)
}
