package journal

import (
	"fmt"

	"platform/internal/ids"
	"platform/proto/service"
)

// PromiseCommand is GetPromise, PeekPromise or CompletePromise. Result is used by
// CompletePromise.
type PromiseCommand struct {
	Key        string
	Result     Result
	Completion uint32
}

// SignalCommand is SendSignal or CompleteAwakeable: both send a signal to an invocation. A
// nil Result is void.
type SignalCommand struct {
	Target ids.Invocation
	ID     NotificationID
	Result *Result
}

// AttachCommand is AttachInvocation or GetInvocationOutput.
type AttachCommand struct {
	Target     ids.Invocation
	Completion uint32
	// Legacy is the ID that the first release derives from Named; zero if it is the same or
	// the command contains the ID of the invocation.
	Legacy ids.Invocation
	Named  Named
}

// Named is what an ID is derived from, apart from an idempotency key.
type Named struct {
	Scope, Service, Key string
	Handler             string // empty for workflows
}

// ParsePromise decodes a GetPromise, PeekPromise or CompletePromise command.
func ParsePromise(t Type, payload []byte) (PromiseCommand, error) {
	if t != CompletePromise {
		var m service.GetPromiseCommandMessage // PeekPromise has the same layout
		if err := m.UnmarshalVTUnsafe(payload); err != nil {
			return PromiseCommand{}, malformed(t.Name(), err)
		}
		return PromiseCommand{Key: m.Key, Completion: m.ResultCompletionId}, nil
	}
	var m service.CompletePromiseCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return PromiseCommand{}, malformed(t.Name(), err)
	}
	c := PromiseCommand{Key: m.Key, Completion: m.ResultCompletionId}
	switch r := m.Completion.(type) {
	case *service.CompletePromiseCommandMessage_CompletionValue:
		c.Result.Value = r.CompletionValue.GetContent()
	case *service.CompletePromiseCommandMessage_CompletionFailure:
		c.Result.Failure = failure(r.CompletionFailure)
	default:
		return PromiseCommand{}, missing(t.Name(), "result")
	}
	return c, nil
}

// ParseSendSignal decodes a SendSignal command.
func ParseSendSignal(payload []byte) (c SignalCommand, err error) {
	var m service.SendSignalCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return c, malformed("SendSignal", err)
	}
	if c.Target, err = ids.ParseInvocation(m.TargetInvocationId); err != nil {
		return c, fmt.Errorf("SendSignal: %w: target %q: %w", ErrPayload, m.TargetInvocationId, err)
	}
	switch id := m.SignalId.(type) {
	case *service.SendSignalCommandMessage_Idx:
		c.ID = NumberedSignal(id.Idx)
	case *service.SendSignalCommandMessage_Name:
		c.ID = NamedSignal(id.Name)
	default:
		return c, missing("SendSignal", "signal")
	}
	if c.ID == NamedSignal("") {
		return c, missing("SendSignal", "signal name")
	}
	switch r := m.Result.(type) {
	case *service.SendSignalCommandMessage_Void:
	case *service.SendSignalCommandMessage_Value:
		c.Result = &Result{Value: r.Value.GetContent()}
	case *service.SendSignalCommandMessage_Failure:
		c.Result = &Result{Failure: failure(r.Failure)}
	default:
		return c, missing("SendSignal", "result")
	}
	return c, nil
}

// ParseCompleteAwakeable decodes a CompleteAwakeable command.
func ParseCompleteAwakeable(payload []byte) (SignalCommand, error) {
	var m service.CompleteAwakeableCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return SignalCommand{}, malformed("CompleteAwakeable", err)
	}
	awakeable, err := ids.ParseAwakeable(m.AwakeableId)
	if err != nil {
		return SignalCommand{}, fmt.Errorf("CompleteAwakeable: %w: ID %q: %w", ErrPayload, m.AwakeableId, err)
	}
	c := SignalCommand{Target: awakeable.Invocation, ID: NumberedSignal(awakeable.Signal)}
	switch r := m.Result.(type) {
	case *service.CompleteAwakeableCommandMessage_Value:
		c.Result = &Result{Value: r.Value.GetContent()}
	case *service.CompleteAwakeableCommandMessage_Failure:
		c.Result = &Result{Failure: failure(r.Failure)}
	default:
		return SignalCommand{}, missing("CompleteAwakeable", "result")
	}
	return c, nil
}

// ParseAttach decodes an AttachInvocation or GetInvocationOutput command, which have the
// same layout. For a target described by its keys, the ID is derived from them.
func ParseAttach(t Type, payload []byte) (c AttachCommand, err error) {
	var m service.AttachInvocationCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return c, malformed(t.Name(), err)
	}
	c.Completion = m.ResultCompletionId
	switch target := m.Target.(type) {
	case *service.AttachInvocationCommandMessage_InvocationId:
		if c.Target, err = ids.ParseInvocation(target.InvocationId); err != nil {
			return c, fmt.Errorf("%s: %w: target %q: %w", t.Name(), ErrPayload, target.InvocationId, err)
		}
	case *service.AttachInvocationCommandMessage_IdempotentRequestTarget:
		r := target.IdempotentRequestTarget
		c.Named = Named{Scope: r.GetScope(), Service: r.GetServiceName(), Key: r.GetServiceKey(), Handler: r.GetHandlerName()}
		c.Target = ids.OfIdempotent(c.Named.Scope, c.Named.Service, c.Named.Key, c.Named.Handler, r.GetIdempotencyKey())
		if ids.Ambiguous(c.Named.Scope, c.Named.Service, c.Named.Key, r.GetIdempotencyKey()) {
			c.Legacy = ids.LegacyOfIdempotent(c.Named.Scope, c.Named.Service, c.Named.Key, c.Named.Handler, r.GetIdempotencyKey())
		}
	case *service.AttachInvocationCommandMessage_WorkflowTarget:
		w := target.WorkflowTarget
		c.Named = Named{Scope: w.GetScope(), Service: w.GetWorkflowName(), Key: w.GetWorkflowKey()}
		c.Target = ids.OfWorkflow(c.Named.Scope, c.Named.Service, c.Named.Key)
		if ids.Ambiguous(c.Named.Scope, c.Named.Service, c.Named.Key, "") {
			c.Legacy = ids.LegacyOfWorkflow(c.Named.Scope, c.Named.Service, c.Named.Key)
		}
	default:
		return c, missing(t.Name(), "target")
	}
	if c.Legacy == c.Target || c.Legacy.IsZero() {
		c.Legacy, c.Named = ids.Invocation{}, Named{}
	}
	return c, nil
}
