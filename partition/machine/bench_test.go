package machine_test

import (
	"encoding/binary"
	"testing"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// bench applies commands to tables in memory and deletes completed invocations.
type bench struct {
	b       *testing.B
	machine *machine.Machine
	state   *machinetest.State
	effects []machine.Effect
	header  machine.Header
	last    uint64
}

func newBench(b *testing.B) *bench {
	b.ReportAllocs()
	x := &bench{b: b, machine: machine.New(machine.Shards{Count: 1}), state: machinetest.New(), header: machine.Header{Epoch: 1, Time: 1000}}
	*x.state.Meta() = machine.Meta{Epoch: 1, Clock: 1000}
	return x
}

func (x *bench) id() (id ids.Invocation) {
	x.last++
	binary.BigEndian.PutUint64(id[16:], x.last)
	return id
}

func (x *bench) apply(c machine.Command) {
	outcome, effects, err := x.machine.Apply(x.state, x.header, c, x.effects[:0])
	if err != nil || outcome.Code != machine.OK {
		x.b.Fatal(outcome.Code, err)
	}
	x.effects = effects
}

// expire deletes a completed invocation, so that the maps stay small.
func (x *bench) expire(id ids.Invocation) {
	inv, _ := x.state.Invocation(id)
	x.state.DeleteInvocation(id)
	x.state.DeleteTimer(machine.Timer{At: inv.ExpiresAt, Kind: machine.TimerPurge, ID: id})
}

// BenchmarkEcho is a call of a handler without steps: two commands.
func BenchmarkEcho(b *testing.B) {
	x := newBench(b)
	to := machine.Target{Service: "Greeter", Handler: "greet"}
	input := journal.NewInput([]journal.Header{{Key: "content-type", Value: "application/json"}}, []byte(`"hi"`))
	steps := []machine.Step{machinetest.Output(journal.Result{Value: []byte(`"hi"`)}), machinetest.End()}
	for b.Loop() {
		id := x.id()
		x.apply(&machine.Invoke{ID: id, Target: to, Input: input, ServerVersion: "1"})
		x.apply(&machine.Progress{ID: id, Attempt: x.state.Meta().Attempt, Steps: steps})
		x.expire(id)
	}
}

// BenchmarkObject is the same for an exclusive handler that writes its state.
func BenchmarkObject(b *testing.B) {
	x := newBench(b)
	to := machine.Target{Service: "Counter", Key: "k", Handler: "add", Type: target.ObjectExclusive}
	input := journal.NewInput(nil, []byte("1"))
	steps := []machine.Step{machinetest.SetState("count", []byte("7")), machinetest.Output(journal.Result{Value: []byte("7")}), machinetest.End()}
	for b.Loop() {
		id := x.id()
		x.apply(&machine.Invoke{ID: id, Target: to, Input: input})
		x.apply(&machine.Progress{ID: id, Attempt: x.state.Meta().Attempt, Steps: steps})
		x.expire(id)
	}
}

// BenchmarkSteps is a handler with ten run blocks, each step a command of its own.
func BenchmarkSteps(b *testing.B) {
	x := newBench(b)
	to := machine.Target{Service: "Stepper", Handler: "run"}
	input := journal.NewInput(nil, nil)
	var runs [][]machine.Step
	for n := range uint32(10) {
		runs = append(runs, []machine.Step{machinetest.Run(n+1, "r")}, []machine.Step{machinetest.RunCompletion(n+1, journal.Result{Value: []byte("1")})})
	}
	end := []machine.Step{machinetest.Output(journal.Result{Value: []byte(`"hi"`)}), machinetest.End()}
	for b.Loop() {
		id := x.id()
		x.apply(&machine.Invoke{ID: id, Target: to, Input: input})
		attempt := x.state.Meta().Attempt
		for _, steps := range runs {
			x.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: steps})
		}
		x.apply(&machine.Progress{ID: id, Attempt: attempt, Steps: end})
		x.expire(id)
	}
}

// BenchmarkScopedEcho is the echo in a scope that is below its limit.
func BenchmarkScopedEcho(b *testing.B) {
	x := newBench(b)
	x.limit(100)
	to := machine.Target{Scope: "tenant", Service: "Greeter", Handler: "greet"}
	input := journal.NewInput([]journal.Header{{Key: "content-type", Value: "application/json"}}, []byte(`"hi"`))
	steps := []machine.Step{machinetest.Output(journal.Result{Value: []byte(`"hi"`)}), machinetest.End()}
	for b.Loop() {
		id := x.id()
		x.apply(&machine.Invoke{ID: id, Target: to, Input: input, ServerVersion: "1"})
		x.apply(&machine.Progress{ID: id, Attempt: x.state.Meta().Attempt, Steps: steps})
		x.expire(id)
	}
}

// BenchmarkBackloggedEcho is the echo in a scope at its limit: each invocation is queued
// behind a thousand others.
func BenchmarkBackloggedEcho(b *testing.B) {
	x := newBench(b)
	x.limit(1)
	to := machine.Target{Scope: "tenant", Service: "Greeter", Handler: "greet"}
	input := journal.NewInput(nil, []byte(`"hi"`))
	steps := []machine.Step{machinetest.Output(journal.Result{Value: []byte(`"hi"`)}), machinetest.End()}
	invoke := func() { x.apply(&machine.Invoke{ID: x.id(), Target: to, Input: input}) }
	for range 1000 {
		invoke()
	}
	var running ids.Invocation
	for b.Loop() {
		invoke()
		binary.BigEndian.PutUint64(running[16:], binary.BigEndian.Uint64(running[16:])+1)
		x.apply(&machine.Progress{ID: running, Attempt: x.state.Meta().Attempt, Steps: steps})
		x.expire(running)
	}
}

func (x *bench) limit(n uint32) {
	rule := flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: flowcontrol.Any}, Limits: flowcontrol.Limits{Concurrency: n}}
	x.apply(&machine.SetRules{Book: &flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{rule}}})
}
