package invoker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
	"platform/proto/service"
)

// A command that the attempt accepts but the machine refuses would end the attempt without an
// explanation, so both allow the same commands to the handlers of each type.
func TestAttemptAndMachineAllowTheSameCommands(t *testing.T) {
	id := ids.NewInvocation(1, [16]byte{15: 1})
	value := &service.Value{Content: []byte("1")}
	messages := map[journal.Type]interface{ MarshalVT() ([]byte, error) }{
		journal.Output:            &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Value{Value: value}},
		journal.GetLazyState:      &service.GetLazyStateCommandMessage{Key: []byte("k"), ResultCompletionId: 1},
		journal.SetState:          &service.SetStateCommandMessage{Key: []byte("k"), Value: value},
		journal.ClearState:        &service.ClearStateCommandMessage{Key: []byte("k")},
		journal.ClearAllState:     &service.ClearAllStateCommandMessage{},
		journal.GetLazyStateKeys:  &service.GetLazyStateKeysCommandMessage{ResultCompletionId: 1},
		journal.GetEagerState:     &service.GetEagerStateCommandMessage{Key: []byte("k"), Result: &service.GetEagerStateCommandMessage_Value{Value: value}},
		journal.GetEagerStateKeys: &service.GetEagerStateKeysCommandMessage{Value: &service.StateKeys{}},
		journal.GetPromise:        &service.GetPromiseCommandMessage{Key: "p", ResultCompletionId: 1},
		journal.PeekPromise:       &service.PeekPromiseCommandMessage{Key: "p", ResultCompletionId: 1},
		journal.CompletePromise: &service.CompletePromiseCommandMessage{
			Key: "p", ResultCompletionId: 1, Completion: &service.CompletePromiseCommandMessage_CompletionValue{CompletionValue: value},
		},
		journal.Sleep: &service.SleepCommandMessage{WakeUpTime: 5000, ResultCompletionId: 1},
		journal.SendSignal: &service.SendSignalCommandMessage{
			TargetInvocationId: id.String(), SignalId: &service.SendSignalCommandMessage_Name{Name: "s"}, Result: &service.SendSignalCommandMessage_Value{Value: value},
		},
		journal.Run: &service.RunCommandMessage{ResultCompletionId: 1},
		journal.AttachInvocation: &service.AttachInvocationCommandMessage{
			Target: &service.AttachInvocationCommandMessage_InvocationId{InvocationId: id.String()}, ResultCompletionId: 1,
		},
		journal.GetInvocationOutput: &service.AttachInvocationCommandMessage{
			Target: &service.AttachInvocationCommandMessage_InvocationId{InvocationId: id.String()}, ResultCompletionId: 1,
		},
		journal.CompleteAwakeable: &service.CompleteAwakeableCommandMessage{
			AwakeableId: ids.Awakeable{Invocation: id, Signal: ids.FirstAwakeable}.String(), Result: &service.CompleteAwakeableCommandMessage_Value{Value: value},
		},
	}
	for _, typ := range journal.Types() {
		switch {
		case !typ.IsCommand(), typ == journal.Input:
			continue
		case typ == journal.Call, typ == journal.OneWayCall: // depend on the callee, not on the caller
			continue
		}
		require.Contains(t, messages, typ, "a message of the command")
		payload, err := messages[typ].MarshalVT()
		require.NoError(t, err)
		for _, of := range []target.Type{target.Service, target.ObjectExclusive, target.ObjectShared, target.WorkflowRun, target.WorkflowShared} {
			inv := &machine.Invocation{ID: id, Target: machine.Target{Service: "S", Key: "k", Handler: "h", Type: of}}
			step, _, refusal := new(Invoker).step(inv, 0, &protocol.Message{Type: typ, Payload: payload}, new(completions))
			require.Equal(t, refusal == nil, applies(t, inv, step), "%s of a handler of type %d: the attempt says %v", typ, of, refusal)
		}
	}
}

// applies reports whether the machine accepts a step of an attempt.
func applies(t *testing.T, inv *machine.Invocation, step machine.Step) bool {
	t.Helper()
	m, s := machine.New(machine.Shards{Count: 1}), machinetest.NewStrict()
	var o machine.Outcome
	for _, c := range []machine.Command{
		&machine.Lead{Epoch: 1},
		&machine.Invoke{ID: inv.ID, Target: inv.Target, Input: journal.NewInput(nil, nil)},
		&machine.Progress{ID: inv.ID, Attempt: 1, Pin: machine.Pin{Deployment: "dp_1", Protocol: 6}, Steps: []machine.Step{step}},
	} {
		var err error
		o, _, err = m.Apply(s, machine.Header{Epoch: 1, Time: 1000}, c, nil)
		require.NoError(t, err)
	}
	require.Contains(t, []machine.Code{machine.OK, machine.Invalid}, o.Code)
	return o.Code == machine.OK
}
