package journal

import "platform/proto/service"

// Variant is the kind of result that a notification carries.
type Variant uint8

// The variants of a notification's result.
const (
	Void         Variant = iota + 1 // done, or no value
	Value                           // Notification.Value
	FailureValue                    // Notification.Failure
	InvocationID                    // Notification.InvocationID
	StateKeys                       // Notification.StateKeys
)

// Notification is the content of a notification of any type.
type Notification struct {
	ID           NotificationID
	Variant      Variant
	Value        []byte
	Failure      *Failure
	InvocationID string
	StateKeys    [][]byte
}

// Settled returns how the notification settles: only a failure counts as failed.
func (n *Notification) Settled() Settled {
	if n.Variant == FailureValue {
		return Failed
	}
	return Succeeded
}

// Result returns the value or failure; false for the other variants.
func (n *Notification) Result() (Result, bool) {
	return Result{Value: n.Value, Failure: n.Failure}, n.Variant == Value || n.Variant == FailureValue
}

// ParseNotification decodes the payload of a notification of any type.
func ParseNotification(payload []byte) (Notification, error) {
	var m service.NotificationTemplate
	if err := m.UnmarshalVTUnsafe(payload); err != nil {
		return Notification{}, malformed("notification", err)
	}
	var n Notification
	switch id := m.Id.(type) {
	case *service.NotificationTemplate_CompletionId:
		n.ID = Completion(id.CompletionId)
	case *service.NotificationTemplate_SignalId:
		n.ID = NumberedSignal(id.SignalId)
	case *service.NotificationTemplate_SignalName:
		n.ID = NamedSignal(id.SignalName)
	default:
		return Notification{}, missing("notification", "ID")
	}
	switch r := m.Result.(type) {
	case *service.NotificationTemplate_Void:
		n.Variant = Void
	case *service.NotificationTemplate_Value:
		n.Variant, n.Value = Value, r.Value.GetContent()
	case *service.NotificationTemplate_Failure:
		n.Variant, n.Failure = FailureValue, failure(r.Failure)
	case *service.NotificationTemplate_InvocationId:
		n.Variant, n.InvocationID = InvocationID, r.InvocationId
	case *service.NotificationTemplate_StateKeys:
		n.Variant, n.StateKeys = StateKeys, r.StateKeys.GetKeys()
	default:
		return Notification{}, missing("notification", "result")
	}
	return n, nil
}

// RunCompletionOf converts a handler's proposal of a run's result into the payload of the
// RunCompletion notification. The proposal's value is plain bytes, the notification's is a
// Value message.
func RunCompletionOf(proposal []byte) (completion uint32, notification []byte, err error) {
	var m service.ProposeRunCompletionMessage
	if err := m.UnmarshalVTUnsafe(proposal); err != nil {
		return 0, nil, malformed("proposal of a run completion", err)
	}
	switch r := m.Result.(type) {
	case *service.ProposeRunCompletionMessage_Value:
		return m.ResultCompletionId, NewCompletion(m.ResultCompletionId, Result{Value: r.Value}), nil
	case *service.ProposeRunCompletionMessage_Failure:
		return m.ResultCompletionId, NewCompletion(m.ResultCompletionId, Result{Failure: failure(r.Failure)}), nil
	}
	return 0, nil, missing("proposal of a run completion", "result")
}
