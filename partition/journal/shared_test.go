package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/proto/service"
)

func TestParsePromise(t *testing.T) {
	get, err := ParsePromise(GetPromise, marshal(t, &service.GetPromiseCommandMessage{Key: "p", ResultCompletionId: 3}))
	require.NoError(t, err)
	require.Equal(t, PromiseCommand{Key: "p", Completion: 3}, get)

	peek, err := ParsePromise(PeekPromise, marshal(t, &service.PeekPromiseCommandMessage{Key: "p", ResultCompletionId: 3}))
	require.NoError(t, err)
	require.Equal(t, get, peek)

	done, err := ParsePromise(CompletePromise, marshal(t, &service.CompletePromiseCommandMessage{
		Key: "p", ResultCompletionId: 3,
		Completion: &service.CompletePromiseCommandMessage_CompletionValue{CompletionValue: &service.Value{Content: []byte("v")}},
	}))
	require.NoError(t, err)
	require.Equal(t, PromiseCommand{Key: "p", Completion: 3, Result: Result{Value: []byte("v")}}, done)

	done, err = ParsePromise(CompletePromise, marshal(t, &service.CompletePromiseCommandMessage{
		Key:        "p",
		Completion: &service.CompletePromiseCommandMessage_CompletionFailure{CompletionFailure: &service.Failure{Code: 418, Message: "no"}},
	}))
	require.NoError(t, err)
	require.Equal(t, PromiseCommand{Key: "p", Result: Result{Failure: &Failure{Code: 418, Message: "no"}}}, done)

	_, err = ParsePromise(CompletePromise, marshal(t, &service.CompletePromiseCommandMessage{Key: "p"}))
	require.ErrorIs(t, err, ErrPayload, "no result")
	for _, typ := range []Type{GetPromise, PeekPromise, CompletePromise} {
		_, err = ParsePromise(typ, []byte{0xff})
		require.ErrorIs(t, err, ErrPayload, typ)
	}
}

func TestParseSendSignal(t *testing.T) {
	target := ids.NewInvocation(7, [16]byte{1})
	void := &service.SendSignalCommandMessage_Void{Void: &service.Void{}}
	idx := &service.SendSignalCommandMessage_Idx{Idx: 1}
	for name, c := range map[string]struct {
		m    *service.SendSignalCommandMessage
		want SignalCommand
	}{
		"cancel": {
			&service.SendSignalCommandMessage{TargetInvocationId: target.String(), SignalId: idx, Result: void},
			SignalCommand{Target: target, ID: NumberedSignal(CancelSignal)},
		},
		"named, value": {
			&service.SendSignalCommandMessage{
				TargetInvocationId: target.String(), SignalId: &service.SendSignalCommandMessage_Name{Name: "go"},
				Result: &service.SendSignalCommandMessage_Value{Value: &service.Value{Content: []byte("v")}},
			},
			SignalCommand{Target: target, ID: NamedSignal("go"), Result: &Result{Value: []byte("v")}},
		},
		"failure": {
			&service.SendSignalCommandMessage{
				TargetInvocationId: target.String(), SignalId: idx,
				Result: &service.SendSignalCommandMessage_Failure{Failure: &service.Failure{Code: 1}},
			},
			SignalCommand{Target: target, ID: NumberedSignal(1), Result: &Result{Failure: &Failure{Code: 1}}},
		},
	} {
		got, err := ParseSendSignal(marshal(t, c.m))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for name, m := range map[string]*service.SendSignalCommandMessage{
		"bad target":  {TargetInvocationId: "inv_x", SignalId: idx, Result: void},
		"no signal":   {TargetInvocationId: target.String(), Result: void},
		"empty name":  {TargetInvocationId: target.String(), SignalId: &service.SendSignalCommandMessage_Name{}, Result: void},
		"no result":   {TargetInvocationId: target.String(), SignalId: idx},
		"nothing set": {},
	} {
		_, err := ParseSendSignal(marshal(t, m))
		require.ErrorIs(t, err, ErrPayload, name)
	}
	_, err := ParseSendSignal([]byte{0xff})
	require.ErrorIs(t, err, ErrPayload)
}

func TestParseCompleteAwakeable(t *testing.T) {
	awakeable := ids.Awakeable{Invocation: ids.NewInvocation(7, [16]byte{1}), Signal: 17}
	value := &service.CompleteAwakeableCommandMessage_Value{Value: &service.Value{}}
	got, err := ParseCompleteAwakeable(marshal(t, &service.CompleteAwakeableCommandMessage{AwakeableId: awakeable.String(), Result: value}))
	require.NoError(t, err)
	require.Equal(t, SignalCommand{Target: awakeable.Invocation, ID: NumberedSignal(17), Result: &Result{}}, got)

	got, err = ParseCompleteAwakeable(marshal(t, &service.CompleteAwakeableCommandMessage{
		AwakeableId: awakeable.String(),
		Result:      &service.CompleteAwakeableCommandMessage_Failure{Failure: &service.Failure{Message: "no"}},
	}))
	require.NoError(t, err)
	require.Equal(t, &Result{Failure: &Failure{Message: "no"}}, got.Result)

	for name, m := range map[string]*service.CompleteAwakeableCommandMessage{
		"bad id":    {AwakeableId: "sign_1x", Result: value},
		"no result": {AwakeableId: awakeable.String()},
	} {
		_, err := ParseCompleteAwakeable(marshal(t, m))
		require.ErrorIs(t, err, ErrPayload, name)
	}
	_, err = ParseCompleteAwakeable([]byte{0xff})
	require.ErrorIs(t, err, ErrPayload)
}

func TestParseAttach(t *testing.T) {
	id := ids.NewInvocation(7, [16]byte{1})
	scope, key := "s", "k"
	for name, c := range map[string]struct {
		m    *service.AttachInvocationCommandMessage
		want ids.Invocation
	}{
		"id": {
			&service.AttachInvocationCommandMessage{Target: &service.AttachInvocationCommandMessage_InvocationId{InvocationId: id.String()}}, id,
		},
		"idempotent request": {
			&service.AttachInvocationCommandMessage{Target: &service.AttachInvocationCommandMessage_IdempotentRequestTarget{
				IdempotentRequestTarget: &service.IdempotentRequestTarget{ServiceName: "S", ServiceKey: &key, HandlerName: "h", IdempotencyKey: "i", Scope: &scope},
			}},
			ids.OfIdempotent("s", "S", "k", "h", "i"),
		},
		"workflow": {
			&service.AttachInvocationCommandMessage{Target: &service.AttachInvocationCommandMessage_WorkflowTarget{
				WorkflowTarget: &service.WorkflowTarget{WorkflowName: "W", WorkflowKey: "k"},
			}},
			ids.OfWorkflow("", "W", "k"),
		},
	} {
		c.m.ResultCompletionId = 9
		for _, typ := range []Type{AttachInvocation, GetInvocationOutput} {
			got, err := ParseAttach(typ, marshal(t, c.m))
			require.NoError(t, err, name)
			require.Equal(t, AttachCommand{Target: c.want, Completion: 9}, got, name)
		}
	}
	comma := &service.AttachInvocationCommandMessage{Target: &service.AttachInvocationCommandMessage_WorkflowTarget{
		WorkflowTarget: &service.WorkflowTarget{WorkflowName: "W", WorkflowKey: "k,1", Scope: &scope},
	}}
	got, err := ParseAttach(AttachInvocation, marshal(t, comma))
	require.NoError(t, err)
	require.Equal(t, AttachCommand{
		Target: ids.OfWorkflow("s", "W", "k,1"), Legacy: ids.LegacyOfWorkflow("s", "W", "k,1"), Named: Named{Scope: "s", Service: "W", Key: "k,1"},
	}, got)
	for name, m := range map[string]*service.AttachInvocationCommandMessage{
		"no target": {ResultCompletionId: 9},
		"bad id":    {Target: &service.AttachInvocationCommandMessage_InvocationId{InvocationId: "x"}},
	} {
		_, err := ParseAttach(AttachInvocation, marshal(t, m))
		require.ErrorIs(t, err, ErrPayload, name)
	}
	_, err = ParseAttach(AttachInvocation, []byte{0xff})
	require.ErrorIs(t, err, ErrPayload)
}

func TestRepeatableSignals(t *testing.T) {
	for _, id := range []NotificationID{NamedSignal("go"), NumberedSignal(CancelSignal), NumberedSignal(ids.FirstAwakeable - 1)} {
		require.True(t, id.Repeats(), id)
	}
	for _, id := range []NotificationID{Completion(1), Completion(99), NumberedSignal(ids.FirstAwakeable), NumberedSignal(1 << 30)} {
		require.False(t, id.Repeats(), id)
	}
}
