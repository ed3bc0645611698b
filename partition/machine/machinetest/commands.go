package machinetest

import (
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// Command returns the step that appends a journal command.
func Command(t journal.Type, m interface{ MarshalVT() ([]byte, error) }) machine.Step {
	payload, err := m.MarshalVT()
	if err != nil {
		panic(err) // generated code does not fail on what tests build
	}
	return machine.Step{Kind: machine.StepCommand, Type: t, Payload: payload}
}

// Output returns the step that sets the result.
func Output(r journal.Result) machine.Step {
	m := &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Value{Value: &service.Value{Content: r.Value}}}
	if f := r.Failure; f != nil {
		failure := &service.Failure{Code: f.Code, Message: f.Message}
		for _, pair := range f.Metadata {
			failure.Metadata = append(failure.Metadata, &service.FailureMetadata{Key: pair.Key, Value: pair.Value})
		}
		m.Result = &service.OutputCommandMessage_Failure{Failure: failure}
	}
	return Command(journal.Output, m)
}

// Run returns the step that starts a run block.
func Run(completion uint32, name string) machine.Step {
	return Command(journal.Run, &service.RunCommandMessage{ResultCompletionId: completion, Name: name})
}

// RunCompletion returns the step that stores the result of a run block.
func RunCompletion(completion uint32, r journal.Result) machine.Step {
	return machine.Step{Kind: machine.StepRunCompletion, Completion: completion, Payload: journal.NewCompletion(completion, r)}
}

// Sleep returns the step that sleeps until a time.
func Sleep(completion uint32, until int64) machine.Step {
	return Command(journal.Sleep, &service.SleepCommandMessage{WakeUpTime: uint64(until), ResultCompletionId: completion})
}

// SetState returns the step that writes a key.
func SetState(key string, value []byte) machine.Step {
	return Command(journal.SetState, &service.SetStateCommandMessage{Key: []byte(key), Value: &service.Value{Content: value}})
}

// ClearState returns the step that deletes a key.
func ClearState(key string) machine.Step {
	return Command(journal.ClearState, &service.ClearStateCommandMessage{Key: []byte(key)})
}

// ClearAllState returns the step that deletes all keys.
func ClearAllState() machine.Step {
	return Command(journal.ClearAllState, &service.ClearAllStateCommandMessage{})
}

// GetState returns the step that reads a key lazily.
func GetState(completion uint32, key string) machine.Step {
	return Command(journal.GetLazyState, &service.GetLazyStateCommandMessage{Key: []byte(key), ResultCompletionId: completion})
}

// GetStateKeys returns the step that reads the keys lazily.
func GetStateKeys(completion uint32) machine.Step {
	return Command(journal.GetLazyStateKeys, &service.GetLazyStateKeysCommandMessage{ResultCompletionId: completion})
}

// Call returns the step of a call; id and completion are the completion IDs of the callee's
// ID and result.
func Call(id, completion uint32, target machine.Target, input []byte, callee machine.Callee) machine.Step {
	callee.Type = target.Type
	s := Command(journal.Call, &service.CallCommandMessage{
		Scope: optional(target.Scope), ServiceName: target.Service, HandlerName: target.Handler, Key: target.Key, Parameter: input,
		InvocationIdNotificationIdx: id, ResultCompletionId: completion,
	})
	s.Callee = &callee
	return s
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Send returns the step of a one-way call.
func Send(id uint32, target machine.Target, input []byte, at int64, callee machine.Callee) machine.Step {
	callee.Type = target.Type
	s := Command(journal.OneWayCall, &service.OneWayCallCommandMessage{
		Scope: optional(target.Scope), ServiceName: target.Service, HandlerName: target.Handler, Key: target.Key, Parameter: input,
		InvocationIdNotificationIdx: id, InvokeTime: uint64(at),
	})
	s.Callee = &callee
	return s
}

// Suspend returns the step that waits for the first of some completions, or a cancel.
func Suspend(completions ...uint32) machine.Step {
	return machine.Step{Kind: machine.StepSuspend, Await: &journal.Future{
		Completions: completions, Signals: []uint32{journal.CancelSignal}, Combinator: journal.CombineFirstCompleted,
	}}
}

// End returns the step that ends an invocation with its last output.
func End() machine.Step { return machine.Step{Kind: machine.StepEnd} }
