package journal

import (
	"errors"
	"fmt"
	"math"

	"platform/proto/service"
)

// ErrPayload is wrapped by every error of the Parse functions: the bytes are not a valid
// message of the type, or lack something that the protocol requires.
var ErrPayload = errors.New("malformed payload")

func malformed(what string, cause error) error {
	return fmt.Errorf("%s: %w: %w", what, ErrPayload, cause)
}

func missing(what, field string) error {
	return fmt.Errorf("%s: %w: no %s", what, ErrPayload, field)
}

// StateCommand is GetLazyState, SetState or ClearState. Value is used by SetState.
type StateCommand struct {
	Key, Value []byte
	Completion uint32 // GetLazyState
}

// Request is the common part of Call and OneWayCall. Absent and empty differ for the
// optional fields.
type Request struct {
	Service, Handler, Key           string
	IdempotencyKey, Scope, LimitKey *string
	Headers                         []Header
	Parameter                       []byte
	// IDCompletion is the completion ID for the callee's ID.
	IDCompletion uint32
}

// CallCommand is a Call; Completion is the completion ID for the callee's result.
type CallCommand struct {
	Request
	Completion uint32
}

// OneWayCallCommand is a OneWayCall. InvokeTime is in milliseconds since 1970; 0 means
// immediately.
type OneWayCallCommand struct {
	Request
	InvokeTime int64
}

// SleepCommand is a Sleep until WakeUpTime, milliseconds since 1970.
type SleepCommand struct {
	WakeUpTime int64
	Completion uint32
}

// ParseState decodes a GetLazyState, SetState or ClearState command. As in all functions of
// this package, the returned slices point into payload.
func ParseState(t Type, payload []byte) (StateCommand, error) {
	switch t {
	case GetLazyState:
		var m service.GetLazyStateCommandMessage
		if err := m.UnmarshalVTUnsafe(payload); err != nil {
			return StateCommand{}, malformed("GetLazyState", err)
		}
		return StateCommand{Key: m.Key, Completion: m.ResultCompletionId}, nil
	case SetState:
		var m service.SetStateCommandMessage
		if err := m.UnmarshalVTUnsafe(payload); err != nil {
			return StateCommand{}, malformed("SetState", err)
		}
		return StateCommand{Key: m.Key, Value: m.GetValue().GetContent()}, nil
	case ClearState:
		var m service.ClearStateCommandMessage
		if err := m.UnmarshalVTUnsafe(payload); err != nil {
			return StateCommand{}, malformed("ClearState", err)
		}
		return StateCommand{Key: m.Key}, nil
	}
	return StateCommand{}, fmt.Errorf("%s: %w: not a command with a state key", t, ErrPayload)
}

// ParseGetLazyStateKeys decodes the completion ID of a GetLazyStateKeys command.
func ParseGetLazyStateKeys(payload []byte) (completion uint32, err error) {
	var m service.GetLazyStateKeysCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return 0, malformed("GetLazyStateKeys", err)
	}
	return m.ResultCompletionId, nil
}

// ParseSleep decodes a Sleep command.
func ParseSleep(payload []byte) (SleepCommand, error) {
	var m service.SleepCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return SleepCommand{}, malformed("Sleep", err)
	}
	return SleepCommand{WakeUpTime: millis(m.WakeUpTime), Completion: m.ResultCompletionId}, nil
}

// DelaySleep returns the payload of a Sleep command with another wake-up time.
func DelaySleep(payload []byte, wakeUp int64) ([]byte, error) {
	var m service.SleepCommandMessage
	if err := m.UnmarshalVT(payload); err != nil {
		return nil, malformed("Sleep", err)
	}
	m.WakeUpTime = uint64(max(wakeUp, 0))
	return m.MarshalVT()
}

// DelayOneWayCall returns the payload of a OneWayCall command with another invoke time.
func DelayOneWayCall(payload []byte, invoke int64) ([]byte, error) {
	var m service.OneWayCallCommandMessage
	if err := m.UnmarshalVT(payload); err != nil {
		return nil, malformed("OneWayCall", err)
	}
	m.InvokeTime = uint64(max(invoke, 0))
	return m.MarshalVT()
}

// ParseCall decodes a Call command.
func ParseCall(payload []byte) (CallCommand, error) {
	var m service.CallCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return CallCommand{}, malformed("Call", err)
	}
	return CallCommand{
		Request: Request{
			Service: m.ServiceName, Handler: m.HandlerName, Key: m.Key,
			IdempotencyKey: m.IdempotencyKey, Scope: m.Scope, LimitKey: m.LimitKey,
			Headers: headers(m.Headers), Parameter: m.Parameter,
			IDCompletion: m.InvocationIdNotificationIdx,
		},
		Completion: m.ResultCompletionId,
	}, nil
}

// ParseOneWayCall decodes a OneWayCall command.
func ParseOneWayCall(payload []byte) (OneWayCallCommand, error) {
	var m service.OneWayCallCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return OneWayCallCommand{}, malformed("OneWayCall", err)
	}
	return OneWayCallCommand{
		Request: Request{
			Service: m.ServiceName, Handler: m.HandlerName, Key: m.Key,
			IdempotencyKey: m.IdempotencyKey, Scope: m.Scope, LimitKey: m.LimitKey,
			Headers: headers(m.Headers), Parameter: m.Parameter,
			IDCompletion: m.InvocationIdNotificationIdx,
		},
		InvokeTime: millis(m.InvokeTime),
	}, nil
}

// ParseOutput decodes the result in an Output command.
func ParseOutput(payload []byte) (Result, error) {
	var m service.OutputCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return Result{}, malformed("Output", err)
	}
	switch r := m.Result.(type) {
	case *service.OutputCommandMessage_Value:
		return Result{Value: r.Value.GetContent()}, nil
	case *service.OutputCommandMessage_Failure:
		return Result{Failure: failure(r.Failure)}, nil
	}
	return Result{}, missing("Output", "result")
}

// millis converts a time from a handler; an out-of-range time means never.
func millis(t uint64) int64 { return int64(min(t, math.MaxInt64)) }

func headers(from []*service.Header) []Header {
	if len(from) == 0 {
		return nil
	}
	to := make([]Header, len(from))
	for i, h := range from {
		to[i] = Header{h.Key, h.Value}
	}
	return to
}

func failure(from *service.Failure) *Failure {
	f := &Failure{Code: from.GetCode(), Message: from.GetMessage()}
	for _, m := range from.GetMetadata() {
		f.Metadata = append(f.Metadata, Metadata{m.Key, m.Value})
	}
	return f
}
