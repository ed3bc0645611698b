package machinetest

import (
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// Command is the step that appends a journal command.
func Command(t journal.Type, m interface{ MarshalVT() ([]byte, error) }) machine.Step {
	payload, err := m.MarshalVT()
	if err != nil {
		panic(err) // generated code does not fail on what tests build
	}
	return machine.Step{Kind: machine.StepCommand, Type: t, Payload: payload}
}

// Output is the step that gives a result.
func Output(r journal.Result) machine.Step {
	m := &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Value{Value: &service.Value{Content: r.Value}}}
	if f := r.Failure; f != nil {
		m.Result = &service.OutputCommandMessage_Failure{Failure: &service.Failure{Code: f.Code, Message: f.Message}}
	}
	return Command(journal.Output, m)
}

// Run is the step that begins a run block.
func Run(completion uint32, name string) machine.Step {
	return Command(journal.Run, &service.RunCommandMessage{ResultCompletionId: completion, Name: name})
}

// RunCompletion is the step that stores the result of a run block.
func RunCompletion(completion uint32, r journal.Result) machine.Step {
	return machine.Step{Kind: machine.StepRunCompletion, Completion: completion, Payload: journal.NewCompletion(completion, r)}
}

// Sleep is the step of a sleep.
func Sleep(completion uint32, until int64) machine.Step {
	return Command(journal.Sleep, &service.SleepCommandMessage{WakeUpTime: uint64(until), ResultCompletionId: completion})
}

// SetState is the step that writes a key.
func SetState(key string, value []byte) machine.Step {
	return Command(journal.SetState, &service.SetStateCommandMessage{Key: []byte(key), Value: &service.Value{Content: value}})
}

// ClearState is the step that deletes a key.
func ClearState(key string) machine.Step {
	return Command(journal.ClearState, &service.ClearStateCommandMessage{Key: []byte(key)})
}

// ClearAllState is the step that deletes all keys.
func ClearAllState() machine.Step {
	return Command(journal.ClearAllState, &service.ClearAllStateCommandMessage{})
}

// GetState is the step that reads a key lazily.
func GetState(completion uint32, key string) machine.Step {
	return Command(journal.GetLazyState, &service.GetLazyStateCommandMessage{Key: []byte(key), ResultCompletionId: completion})
}

// GetStateKeys is the step that reads the keys lazily.
func GetStateKeys(completion uint32) machine.Step {
	return Command(journal.GetLazyStateKeys, &service.GetLazyStateKeysCommandMessage{ResultCompletionId: completion})
}

// Call is the step of a call; id and completion are the completion ids of the
// callee's id and result.
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

// Send is the step of a one-way call.
func Send(id uint32, target machine.Target, input []byte, at int64, callee machine.Callee) machine.Step {
	callee.Type = target.Type
	s := Command(journal.OneWayCall, &service.OneWayCallCommandMessage{
		Scope: optional(target.Scope), ServiceName: target.Service, HandlerName: target.Handler, Key: target.Key, Parameter: input,
		InvocationIdNotificationIdx: id, InvokeTime: uint64(at),
	})
	s.Callee = &callee
	return s
}

// Suspend is the step that waits for the first of some completions, or a cancel.
func Suspend(completions ...uint32) machine.Step {
	return machine.Step{Kind: machine.StepSuspend, Await: &journal.Future{
		Completions: completions, Signals: []uint32{journal.CancelSignal}, Combinator: journal.CombineFirstCompleted,
	}}
}

// End is the step that ends an invocation with its last output.
func End() machine.Step { return machine.Step{Kind: machine.StepEnd} }
