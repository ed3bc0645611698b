package store

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	handlertype "platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// entries applies log entries of one command to the tables.
type entries struct {
	p     *Partition
	m     *machine.Machine
	index uint64
	now   int64
}

func newEntries(t *testing.T) *entries {
	e := &entries{p: partition(t, open(t), 1), m: machine.New(machine.Shards{Count: 1}), now: 1000}
	e.apply(t, &machine.Lead{Epoch: 1})
	return e
}

func (e *entries) apply(t *testing.T, c machine.Command) {
	e.index++
	txn := e.p.Begin()
	o, _, err := e.m.Apply(txn, machine.Header{Epoch: 1, Time: e.now, Level: feature.Level4}, c, nil)
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	require.NoError(t, txn.Commit(e.index, 1))
}

// handler starts an invocation and returns what stores its steps in one entry.
func (e *entries) handler(t *testing.T, id ids.Invocation, of machine.Target) func(steps ...machine.Step) {
	e.apply(t, &machine.Invoke{ID: id, Target: of, Input: journal.NewInput(nil, nil)})
	view := e.p.View()
	defer view.Close()
	inv, err := view.Invocation(id)
	require.NoError(t, err)
	return func(steps ...machine.Step) { e.apply(t, &machine.Progress{ID: id, Attempt: inv.Attempt, Steps: steps}) }
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The commands of a handler that are in one log entry may concern the same promise or invocation, whose
// row may be large: it has a result of 8 MiB, or 10,000 waiters.
func TestRepeatedAccessToARowCostsItsSizeOnce(t *testing.T) {
	const most = 256 << 20
	repeat := func(n int, step func(completion uint32) machine.Step) (steps []machine.Step) {
		for i := range n {
			steps = append(steps, step(uint32(i+2)))
		}
		return steps
	}
	workflow := machine.Target{Service: "W", Key: "k", Handler: "h", Type: handlertype.WorkflowShared}
	service := machine.Target{Service: "S", Handler: "h"}
	id, other := ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(1, [16]byte{2})
	large := journal.Result{Value: make([]byte, 8<<20)}
	for name, step := range map[string]func(completion uint32) machine.Step{
		"waiting for a promise":       func(c uint32) machine.Step { return machinetest.GetPromise(c, "pending") },
		"reading a completed promise": func(c uint32) machine.Step { return machinetest.PeekPromise(c, "completed") },
		"completing a promise again":  func(c uint32) machine.Step { return machinetest.CompletePromise(c, "completed", journal.Result{}) },
		"waiting for an invocation":   func(c uint32) machine.Step { return machinetest.Attach(c, other) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntries(t)
			of := workflow
			if name == "waiting for an invocation" {
				of = service
			}
			e.handler(t, other, service)
			store := e.handler(t, id, of)
			if of == workflow {
				store(machinetest.CompletePromise(1, "completed", large))
			}
			steps := repeat(12_000, step)
			require.Less(t, allocated(func() { store(steps...) }), uint64(most))
		})
	}
}

// Each of the results that a suspended handler awaits together shortens the await, which is copied once, and not evaluated leaf
// by leaf.
func TestAResultOfALongAwaitCopiesItOnce(t *testing.T) {
	const awaited, ended = 90_000, 100
	e := newEntries(t)
	id := ids.NewInvocation(1, [16]byte{1})
	store := e.handler(t, id, machine.Target{Service: "S", Handler: "h"})
	all := journal.Future{Combinator: journal.CombineAllCompleted}
	for i := range uint32(awaited) {
		all.Completions = append(all.Completions, i+1)
	}
	var steps []machine.Step
	for i := range uint32(ended) {
		steps = append(steps, machinetest.Sleep(i+1, 5000))
	}
	store(append(steps, machinetest.SuspendOn(journal.Future{Combinator: journal.CombineFirstCompleted, Signals: []uint32{journal.CancelSignal}, Nested: []journal.Future{all}}))...)
	e.now = 5000
	require.Less(t, allocated(func() {
		for i := range uint32(ended) {
			e.apply(t, &machine.FireTimers{Timers: []machine.Timer{{At: 5000, Kind: machine.TimerSleep, ID: id, Completion: i + 1}}})
		}
	}), uint64(ended*awaited*6))
	view := e.p.View()
	inv, err := view.Invocation(id)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	require.Equal(t, awaited-ended, len(inv.Await.Nested[0].Completions))
}
