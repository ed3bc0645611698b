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

// lives is a partition in which one ID is reused repeatedly.
type lives struct {
	*testing.T
	m      *machine.Machine
	s      *machinetest.State
	level  feature.Level
	now    int64
	target machine.Target
	kept   int64
}

func newLives(t *testing.T, level feature.Level, kept int64, target machine.Target) *lives {
	l := &lives{T: t, m: machine.New(machine.Shards{Count: 1}), s: machinetest.NewStrict(), level: level, now: 1000, target: target, kept: kept}
	l.apply(&machine.Lead{Epoch: 1})
	return l
}

func (l *lives) id() ids.Invocation { return ids.NewInvocation(1, [16]byte{15: 1}) }

func (l *lives) apply(c machine.Command) machine.Outcome {
	l.Helper()
	o, _, err := l.m.Apply(l.s, machine.Header{Epoch: 1, Time: l.now, Level: l.level}, c, nil)
	require.NoError(l, err)
	require.Empty(l, l.s.Broken(nil))
	require.Empty(l, l.s.Faults())
	return o
}

func (l *lives) request(n uint64) machine.Outcome {
	l.Helper()
	inv := &machine.Invoke{
		ID: l.id(), Request: n, Target: l.target, Input: journal.NewInput(nil, nil), Retention: machine.Retention{Completion: l.kept},
	}
	if l.target.Type != target.WorkflowRun {
		inv.IdempotencyKey = new("key")
	}
	return l.apply(inv)
}

func (l *lives) end(result string) {
	l.Helper()
	inv, err := l.s.Invocation(l.id())
	require.NoError(l, err)
	o := l.apply(&machine.Progress{ID: l.id(), Attempt: inv.Attempt, Steps: []machine.Step{
		machinetest.Output(journal.Result{Value: []byte(result)}), machinetest.End(),
	}})
	require.Equal(l, machine.OK, o.Code)
}

// pass advances time and fires timers.
func (l *lives) pass(ms int64) {
	l.now += ms
	l.apply(&machine.FireTimers{Timers: l.s.Timers()})
}

func (l *lives) wantResult(o machine.Outcome, own bool, result string) {
	l.Helper()
	require.Equal(l, machine.Existing, o.Code)
	require.Equal(l, own, o.Own)
	require.NotNil(l, o.Result)
	require.Equal(l, result, string(o.Result.Value))
}

var reused = map[string]machine.Target{
	"idempotent": {Service: "S", Handler: "h"},
	"object":     {Service: "O", Key: "k", Handler: "h", Type: target.ObjectExclusive},
	"workflow":   {Service: "W", Key: "k", Handler: "run", Type: target.WorkflowRun},
}

// Attaching to an invocation by its ID finds nothing once its retention is over, also before its timer has fired.
func TestAttachesDoNotFindExpiredInvocations(t *testing.T) {
	for _, kept := range []int64{0, 5000} {
		l := newLives(t, feature.Level2, kept, reused["idempotent"])
		require.Equal(t, machine.OK, l.request(1).Code)
		l.end("first")
		waiting := ids.NewInvocation(1, [16]byte{15: 2})
		require.Equal(t, machine.OK, l.apply(&machine.Invoke{ID: waiting, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil)}).Code)
		inv, err := l.s.Invocation(waiting)
		require.NoError(t, err)
		attach := machinetest.Attach(1, l.id())
		require.Equal(t, machine.OK, l.apply(&machine.Progress{ID: waiting, Attempt: inv.Attempt, Steps: []machine.Step{attach}}).Code)
		how, err := l.s.Notified(waiting, journal.Completion(1))
		require.NoError(t, err)
		require.Equal(t, map[int64]journal.Settled{0: journal.Failed, 5000: journal.Succeeded}[kept], how)
	}
}

// An expired invocation is invisible to callers, except for the request that created it.
func TestARetentionBelowAMinuteIsHonoured(t *testing.T) {
	for name, target := range reused {
		for _, kept := range []int64{0, 1, 5000} {
			for _, fires := range []bool{true, false} { // the timer has fired, or is about to
				t.Run(name, func(t *testing.T) {
					l := newLives(t, feature.Level2, kept, target)
					require.Equal(t, machine.OK, l.request(1).Code)
					l.end("first")
					ended := l.now
					if kept > 0 {
						l.wantResult(l.request(2), false, "first")
					}
					l.wantResult(l.request(1), true, "first")
					if l.now += kept; fires {
						l.pass(0)
						inv, err := l.s.Invocation(l.id())
						require.NoError(t, err)
						require.Nil(t, inv, "forgotten")
					}
					l.wantResult(l.request(1), true, "first")

					require.Equal(t, machine.OK, l.request(2).Code, "it runs again")
					l.wantResult(l.request(1), true, "first")
					require.Nil(t, l.request(2).Result)
					l.end("second")
					l.wantResult(l.request(1), true, "first")
					l.wantResult(l.request(2), true, "second")
					l.pass(kept)
					require.Equal(t, machine.OK, l.request(3).Code)
					l.wantResult(l.request(2), true, "second")
					l.end("third")

					l.now = ended + machine.MinRetention - 1
					l.pass(0)
					l.wantResult(l.request(1), true, "first")
					l.pass(3 * machine.MinRetention)
					for _, row := range l.s.Dump(nil) {
						require.Regexp(t, "^meta", row.Key, "all other rows are deleted")
					}
				})
			}
		}
	}
}

// Servers of the first release keep results for a minute.
func TestARetentionBelowAMinuteIsAMinuteAtTheFirstLevel(t *testing.T) {
	l := newLives(t, feature.Level1, 0, reused["idempotent"])
	require.Equal(t, machine.OK, l.request(1).Code)
	l.end("first")
	l.pass(machine.MinRetention - 1)
	l.wantResult(l.request(2), false, "first")
	l.level = feature.Level2
	l.wantResult(l.request(2), false, "first")
	l.pass(1)
	require.Equal(t, machine.OK, l.request(2).Code)
}

// The promises and state of a workflow are deleted with its run.
func TestAPurgedWorkflowLeavesNothingToTheNextRun(t *testing.T) {
	l := newLives(t, feature.Level2, 10, reused["workflow"])
	require.Equal(t, machine.OK, l.request(1).Code)
	l.end("first")
	l.s.PutValue(l.target.Object(), []byte("k"), []byte("v"))
	l.now += 10
	require.Equal(t, machine.OK, l.request(2).Code)
	for range l.s.Values(l.target.Object()) {
		t.Fatal("the state of the previous run still exists")
	}
}
