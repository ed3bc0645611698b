package machinetest

import (
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// GetPromise returns the step that waits for a promise of the workflow.
func GetPromise(completion uint32, key string) machine.Step {
	return Command(journal.GetPromise, &service.GetPromiseCommandMessage{Key: key, ResultCompletionId: completion})
}

// PeekPromise returns the step that reads a promise without waiting.
func PeekPromise(completion uint32, key string) machine.Step {
	return Command(journal.PeekPromise, &service.PeekPromiseCommandMessage{Key: key, ResultCompletionId: completion})
}

// CompletePromise returns the step that completes a promise.
func CompletePromise(completion uint32, key string, r journal.Result) machine.Step {
	m := &service.CompletePromiseCommandMessage{Key: key, ResultCompletionId: completion}
	if f := failure(r); f != nil {
		m.Completion = &service.CompletePromiseCommandMessage_CompletionFailure{CompletionFailure: f}
	} else {
		m.Completion = &service.CompletePromiseCommandMessage_CompletionValue{CompletionValue: &service.Value{Content: r.Value}}
	}
	return Command(journal.CompletePromise, m)
}

// SendSignal returns the step that sends a signal to another invocation; a nil result is
// void.
func SendSignal(to ids.Invocation, id journal.NotificationID, r *journal.Result) machine.Step {
	m := &service.SendSignalCommandMessage{TargetInvocationId: to.String()}
	if id.Name != "" {
		m.SignalId = &service.SendSignalCommandMessage_Name{Name: id.Name}
	} else {
		m.SignalId = &service.SendSignalCommandMessage_Idx{Idx: id.Index}
	}
	switch {
	case r == nil:
		m.Result = &service.SendSignalCommandMessage_Void{Void: &service.Void{}}
	case r.Failure != nil:
		m.Result = &service.SendSignalCommandMessage_Failure{Failure: failure(*r)}
	default:
		m.Result = &service.SendSignalCommandMessage_Value{Value: &service.Value{Content: r.Value}}
	}
	return Command(journal.SendSignal, m)
}

// CompleteAwakeable returns the step that completes the awakeable of an invocation whose
// signal has the given number.
func CompleteAwakeable(of ids.Invocation, signal uint32, r journal.Result) machine.Step {
	m := &service.CompleteAwakeableCommandMessage{AwakeableId: ids.Awakeable{Invocation: of, Signal: signal}.String()}
	if f := failure(r); f != nil {
		m.Result = &service.CompleteAwakeableCommandMessage_Failure{Failure: f}
	} else {
		m.Result = &service.CompleteAwakeableCommandMessage_Value{Value: &service.Value{Content: r.Value}}
	}
	return Command(journal.CompleteAwakeable, m)
}

// Attach returns the step that waits for the result of an invocation.
func Attach(completion uint32, to ids.Invocation) machine.Step {
	return attach(journal.AttachInvocation, completion, to)
}

// GetOutput returns the step that reads the result of an invocation without waiting.
func GetOutput(completion uint32, of ids.Invocation) machine.Step {
	return attach(journal.GetInvocationOutput, completion, of)
}

// attach builds either command: they have the same layout.
func attach(t journal.Type, completion uint32, to ids.Invocation) machine.Step {
	return Command(t, &service.AttachInvocationCommandMessage{
		Target:             &service.AttachInvocationCommandMessage_InvocationId{InvocationId: to.String()},
		ResultCompletionId: completion,
	})
}

// SuspendOn returns the step that suspends on an await.
func SuspendOn(await journal.Future) machine.Step {
	return machine.Step{Kind: machine.StepSuspend, Await: &await}
}

// Update returns the command that replaces the state of an object.
func Update(id ids.Invocation, o machine.Object, r *journal.StateReplacement) *machine.Invoke {
	return &machine.Invoke{
		ID:     id,
		Target: machine.Target{Scope: o.Scope, Service: o.Service, Key: o.Key, Type: target.StateUpdate},
		Input:  journal.NewStateReplacement(r),
	}
}

func failure(r journal.Result) *service.Failure {
	if r.Failure == nil {
		return nil
	}
	return &service.Failure{Code: r.Failure.Code, Message: r.Failure.Message}
}
