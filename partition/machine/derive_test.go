package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// Two requests whose keys are equal when joined with commas: with the same scope, so the
// same partition, and the same legacy ID.
var (
	firstNamed  = machine.Target{Scope: "tenant", Service: "Counter", Key: "k1,add,x", Handler: "add", Type: target.ObjectShared}
	secondNamed = machine.Target{Scope: "tenant", Service: "Counter", Key: "k1", Handler: "add", Type: target.ObjectShared}
)

// named returns a request with either its legacy ID or its level 2 ID.
func named(t machine.Target, idempotencyKey string, legacy bool) *machine.Invoke {
	id, former, ok := machine.Derived(&t, &idempotencyKey)
	if legacy {
		id = former
	}
	if !ok {
		panic("not ambiguous")
	}
	return &machine.Invoke{ID: id, Target: t, IdempotencyKey: &idempotencyKey, Input: journal.NewInput(nil, nil), Retention: machine.Retention{Completion: 3_600_000}}
}

func first(legacy bool) *machine.Invoke  { return named(firstNamed, "y", legacy) }
func second(legacy bool) *machine.Invoke { return named(secondNamed, "x,add,y", legacy) }

func TestKeysWithEqualJoinsAreDistinctInvocations(t *testing.T) {
	require.Equal(t, first(true).ID, second(true).ID)
	l := newLives(t, feature.Level1, 0, machine.Target{})
	require.Equal(t, machine.OK, l.apply(first(true)).Code)
	require.Equal(t, machine.Existing, l.apply(second(true)).Code, "the first release cannot distinguish them")

	for _, legacy := range []bool{true, false} { // nodes may not know the level yet
		l = newLives(t, feature.Level2, 0, machine.Target{})
		require.Equal(t, machine.OK, l.apply(first(legacy)).Code)
		require.Equal(t, machine.OK, l.apply(second(legacy)).Code)
		for _, late := range []bool{true, false} {
			for _, c := range []*machine.Invoke{first(late), second(late)} {
				o := l.apply(c)
				require.Equal(t, machine.Existing, o.Code)
				id, _, _ := machine.Derived(&c.Target, c.IdempotencyKey)
				require.Equal(t, late, o.ID == id, "the outcome has the ID if it differs from the requested one")
			}
		}
	}
}

// An invocation that was created before the level rose is found by its own keys afterwards,
// and by no others.
func TestInvocationsOfLevelOneAreFoundAfterTheLevelRises(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		l := newLives(t, feature.Level1, 0, machine.Target{})
		require.Equal(t, machine.OK, l.apply(first(true)).Code)
		l.level = feature.Level2
		o := l.apply(first(legacy))
		require.Equal(t, machine.Existing, o.Code)
		require.Equal(t, !legacy, o.ID == first(true).ID)
		o = l.apply(second(legacy))
		require.Equal(t, machine.OK, o.Code, "another key identifies another invocation")
		require.Equal(t, machine.Existing, l.apply(second(!legacy)).Code)
	}
}

// A handler that attaches by keys finds the invocation with these keys, whatever its ID.
func TestHandlersAttachByKeysWithCommas(t *testing.T) {
	attach := func(l *lives, s string, completion uint32) {
		inv, err := l.s.Invocation(l.id())
		require.NoError(l, err)
		to := map[string]*machine.Invoke{"first": first(false), "second": second(false)}[s]
		m := service.AttachInvocationCommandMessage{ResultCompletionId: completion, Target: &service.AttachInvocationCommandMessage_IdempotentRequestTarget{
			IdempotentRequestTarget: &service.IdempotentRequestTarget{
				Scope: &to.Target.Scope, ServiceName: to.Target.Service, ServiceKey: &to.Target.Key, HandlerName: to.Target.Handler, IdempotencyKey: *to.IdempotencyKey,
			},
		}}
		payload, err := m.MarshalVT()
		require.NoError(l, err)
		o := l.apply(&machine.Progress{ID: l.id(), Attempt: inv.Attempt, Steps: []machine.Step{
			{Kind: machine.StepCommand, Type: journal.GetInvocationOutput, Payload: payload},
		}})
		require.Equal(l, machine.OK, o.Code)
	}
	answered := func(l *lives, completion uint32) journal.Settled {
		s, err := l.s.Notified(l.id(), journal.Completion(completion))
		require.NoError(l, err)
		return s
	}
	for _, made := range []feature.Level{feature.Level1, feature.Level2} {
		l := newLives(t, made, 0, machine.Target{Service: "S", Handler: "h"})
		require.Equal(t, machine.OK, l.request(1).Code) // the handler that attaches
		require.Equal(t, machine.OK, l.apply(first(made == feature.Level1)).Code)
		l.level = feature.Level2
		attach(l, "first", 1)
		attach(l, "second", 2)
		require.Equal(t, journal.Succeeded, answered(l, 1), "it exists")
		require.Equal(t, journal.Failed, answered(l, 2), "it does not exist")
	}
}

// A handler with a legacy ID that attaches to its own keys would wait forever. Other keys with the same legacy ID are not its own.
func TestHandlersDoNotAttachToThemselvesByKeysWithCommas(t *testing.T) {
	l := newLives(t, feature.Level1, 0, machine.Target{})
	require.Equal(t, machine.OK, l.apply(first(true)).Code)
	l.level = feature.Level2
	for i, to := range []*machine.Invoke{first(false), second(false)} {
		completion := uint32(i + 1)
		m := service.AttachInvocationCommandMessage{ResultCompletionId: completion, Target: &service.AttachInvocationCommandMessage_IdempotentRequestTarget{
			IdempotentRequestTarget: &service.IdempotentRequestTarget{
				Scope: &to.Target.Scope, ServiceName: to.Target.Service, ServiceKey: &to.Target.Key, HandlerName: to.Target.Handler, IdempotencyKey: *to.IdempotencyKey,
			},
		}}
		payload, err := m.MarshalVT()
		require.NoError(t, err)
		inv, err := l.s.Invocation(first(true).ID)
		require.NoError(t, err)
		step := machine.Step{Kind: machine.StepCommand, Type: journal.AttachInvocation, Payload: payload}
		require.Equal(t, machine.OK, l.apply(&machine.Progress{ID: inv.ID, Attempt: inv.Attempt, Steps: []machine.Step{step}}).Code)
		last, err := l.s.Entry(inv.ID, inv.Length+1)
		require.NoError(t, err)
		n, err := journal.ParseNotification(last.Payload)
		require.NoError(t, err)
		require.Equal(t, journal.Completion(completion), n.ID)
		result, ok := n.Result()
		require.True(t, ok)
		require.EqualValues(t, []uint32{409, 404}[i], result.Failure.Code)
	}
}
