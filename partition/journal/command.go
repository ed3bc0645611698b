package journal

import (
	"errors"
	"fmt"
	"math"

	"platform/proto/service"
)

// ErrPayload is wrapped by every error of the Parse functions: the bytes are not
// the message they should be, or lack something the protocol demands.
var ErrPayload = errors.New("malformed payload")

func malformed(what string, cause error) error {
	return fmt.Errorf("%s: %w: %w", what, ErrPayload, cause)
}

func lacks(what, field string) error {
	return fmt.Errorf("%s: %w: no %s", what, ErrPayload, field)
}

// StateCommand is GetLazyState, SetState or ClearState. Value is used by SetState.
type StateCommand struct {
	Key, Value []byte
	Completion uint32 // GetLazyState
}

// Request is what Call and OneWayCall have in common. Absent and empty differ for
// the optional fields.
type Request struct {
	Service, Handler, Key           string
	IdempotencyKey, Scope, LimitKey *string
	Headers                         []Header
	Parameter                       []byte
	// IDCompletion is the completion id that is answered with the callee's id.
	IDCompletion uint32
}

// CallCommand is a Call: Completion is answered with the callee's result.
type CallCommand struct {
	Request
	Completion uint32
}

// OneWayCallCommand is a OneWayCall. InvokeTime is milliseconds since 1970, 0 for
// at once.
type OneWayCallCommand struct {
	Request
	InvokeTime int64
}

// SleepCommand is a Sleep until WakeUpTime, milliseconds since 1970.
type SleepCommand struct {
	WakeUpTime int64
	Completion uint32
}

// ParseState reads a GetLazyState, SetState or ClearState command. The slices
// point into payload, as with all functions here.
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
	return StateCommand{}, fmt.Errorf("%s: %w: it names no state key", t, ErrPayload)
}

// ParseGetLazyStateKeys reads the completion id of a GetLazyStateKeys command.
func ParseGetLazyStateKeys(payload []byte) (completion uint32, err error) {
	var m service.GetLazyStateKeysCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return 0, malformed("GetLazyStateKeys", err)
	}
	return m.ResultCompletionId, nil
}

// ParseSleep reads a Sleep command.
func ParseSleep(payload []byte) (SleepCommand, error) {
	var m service.SleepCommandMessage
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return SleepCommand{}, malformed("Sleep", err)
	}
	return SleepCommand{WakeUpTime: millis(m.WakeUpTime), Completion: m.ResultCompletionId}, nil
}

// DelaySleep is the payload of a Sleep command with another wake-up time.
func DelaySleep(payload []byte, wakeUp int64) ([]byte, error) {
	var m service.SleepCommandMessage
	if err := m.UnmarshalVT(payload); err != nil {
		return nil, malformed("Sleep", err)
	}
	m.WakeUpTime = uint64(max(wakeUp, 0))
	return m.MarshalVT()
}

// DelayOneWayCall is the payload of a OneWayCall command with another invoke time.
func DelayOneWayCall(payload []byte, invoke int64) ([]byte, error) {
	var m service.OneWayCallCommandMessage
	if err := m.UnmarshalVT(payload); err != nil {
		return nil, malformed("OneWayCall", err)
	}
	m.InvokeTime = uint64(max(invoke, 0))
	return m.MarshalVT()
}

// ParseCall reads a Call command.
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

// ParseOneWayCall reads a OneWayCall command.
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

// ParseOutput reads the result in an Output command.
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
	return Result{}, lacks("Output", "result")
}

// millis reads a time of a handler; one beyond the range of times means never.
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
