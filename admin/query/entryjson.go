package query

import (
	"fmt"
	"strconv"
	"time"

	"platform/partition/journal"
	"platform/proto/service"
)

// object is a JSON object.
type object = map[string]any

// entryWriter converts journal entries to JSON.
type entryWriter struct {
	// lite omits payloads.
	lite bool
	// callee returns the ID of the invocation that a call created, by its completion ID; empty if
	// it is not known yet.
	callee func(completion uint32) string
	// typeOf returns the type of a service, Service, VirtualObject or Workflow, and that of its
	// handler: Exclusive, Workflow or Shared, empty for a Service.
	typeOf func(service, key, handler string) (kind, handlerKind string)
	// retention returns how long the result and the journal of a requested invocation are kept.
	retention func(*journal.Request) (completion, entries time.Duration)
}

// entry converts a journal entry to JSON. An entry that cannot be parsed is represented by its
// error.
func (w entryWriter) entry(e journal.Entry) value {
	var v any
	var err error
	if e.Type.IsCommand() {
		var body object
		if body, err = w.command(e); err == nil {
			v = object{"Command": object{e.Type.Name(): body}}
		}
	} else {
		v, err = w.notification(e)
	}
	if err != nil {
		v = object{"Unreadable": err.Error()}
	}
	return jsonText(v)
}

func (w entryWriter) command(e journal.Entry) (object, error) {
	switch e.Type {
	case journal.Input:
		var m service.InputCommandMessage
		err := m.UnmarshalVTUnsafe(e.Payload)
		return object{"headers": headers(m.Headers), "payload": w.payload(m.Value.GetContent()), "name": m.Name}, err
	case journal.Output:
		var m service.OutputCommandMessage
		err := m.UnmarshalVTUnsafe(e.Payload)
		return object{"result": w.result(m.GetValue(), m.GetFailure()), "name": m.Name}, err
	case journal.GetLazyState, journal.SetState, journal.ClearState, journal.GetEagerState:
		return w.state(e)
	case journal.ClearAllState:
		return object{"name": journal.NameOf(e)}, nil
	case journal.GetLazyStateKeys, journal.Run:
		return completing(e), nil
	case journal.GetEagerStateKeys:
		var m service.GetEagerStateKeysCommandMessage
		err := m.UnmarshalVTUnsafe(e.Payload)
		return object{"state_keys": texts(m.GetValue().GetKeys()), "name": m.Name}, err
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		return w.promise(e)
	case journal.Sleep:
		c, err := journal.ParseSleep(e.Payload)
		body := completing(e)
		body["wake_up_time"] = c.WakeUpTime
		return body, err
	case journal.Call:
		c, err := journal.ParseCall(e.Payload)
		return object{
			"request": w.request(&c.Request), "invocation_id_completion_id": c.IDCompletion,
			"result_completion_id": c.Completion, "name": journal.NameOf(e),
		}, err
	case journal.OneWayCall:
		c, err := journal.ParseOneWayCall(e.Payload)
		return object{
			"request": w.request(&c.Request), "invoke_time": c.InvokeTime,
			"invocation_id_completion_id": c.IDCompletion, "name": journal.NameOf(e),
		}, err
	}
	return w.signalling(e)
}

// completing returns the body of a command that has only completions and a name.
func completing(e journal.Entry) object {
	body := object{"name": journal.NameOf(e)}
	if ids := journal.CompletionsOf(e); len(ids) > 0 {
		body["completion_id"] = ids[len(ids)-1]
	}
	return body
}

func (w entryWriter) state(e journal.Entry) (object, error) {
	if e.Type == journal.GetEagerState {
		var m service.GetEagerStateCommandMessage
		err := m.UnmarshalVTUnsafe(e.Payload)
		var result any = "Void"
		if v := m.GetValue(); v != nil {
			result = object{"Success": w.payload(v.GetContent())}
		}
		return object{"key": string(m.Key), "result": result, "name": m.Name}, err
	}
	c, err := journal.ParseState(e.Type, e.Payload)
	body := completing(e)
	body["key"] = string(c.Key)
	if e.Type == journal.SetState {
		body["value"] = w.payload(c.Value)
	}
	return body, err
}

func (w entryWriter) promise(e journal.Entry) (object, error) {
	c, err := journal.ParsePromise(e.Type, e.Payload)
	body := object{"key": c.Key, "completion_id": c.Completion, "name": journal.NameOf(e)}
	if e.Type == journal.CompletePromise {
		body["value"] = w.resultOf(&c.Result)
	}
	return body, err
}

// signalling returns the body of a command that targets another invocation.
func (w entryWriter) signalling(e journal.Entry) (object, error) {
	name := journal.NameOf(e)
	switch e.Type {
	case journal.SendSignal:
		c, err := journal.ParseSendSignal(e.Payload)
		return object{"target_invocation_id": c.Target.String(), "signal_id": signalID(c.ID), "result": w.resultOf(c.Result), "name": name}, err
	case journal.CompleteAwakeable:
		c, err := journal.ParseCompleteAwakeable(e.Payload)
		if err != nil {
			return nil, err
		}
		var m service.CompleteAwakeableCommandMessage
		err = m.UnmarshalVTUnsafe(e.Payload)
		return object{"id": m.AwakeableId, "result": w.resultOf(c.Result), "name": name}, err
	case journal.AttachInvocation, journal.GetInvocationOutput:
		var m service.AttachInvocationCommandMessage
		err := m.UnmarshalVTUnsafe(e.Payload)
		return object{"target": attachTarget(&m), "completion_id": m.ResultCompletionId, "name": name}, err
	}
	return nil, fmt.Errorf("unknown command type %s", e.Type.Name())
}

func attachTarget(m *service.AttachInvocationCommandMessage) any {
	if r := m.GetIdempotentRequestTarget(); r != nil {
		return object{"IdempotentRequest": object{
			"service_name": r.ServiceName, "service_key": r.ServiceKey, "handler_name": r.HandlerName, "idempotency_key": r.IdempotencyKey, "scope": r.Scope,
		}}
	}
	if t := m.GetWorkflowTarget(); t != nil {
		return object{"Workflow": object{"service_name": t.WorkflowName, "key": t.WorkflowKey, "scope": t.Scope}}
	}
	return object{"InvocationId": m.GetInvocationId()}
}

func (w entryWriter) request(r *journal.Request) object {
	target := object{"name": r.Service, "handler": r.Handler, "scope": r.Scope}
	kind, handlerKind := w.typeOf(r.Service, r.Key, r.Handler)
	if kind != serviceKind {
		target["key"], target["handler_ty"] = r.Key, handlerKind
	}
	completion, entries := w.retention(r)
	// Existing clients parse a request only if it has all these members, and no limit key that is null.
	request := object{
		"invocation_target": object{kind: target}, "parameter": w.payload(r.Parameter),
		"headers": pairs(r.Headers), "idempotency_key": r.IdempotencyKey, "span_context": noContext,
		"completion_retention_duration": span(completion), "journal_retention_duration": span(entries),
	}
	if r.LimitKey != nil {
		request["limit_key"] = *r.LimitKey
	}
	if id := w.callee(r.IDCompletion); id != "" {
		request["invocation_id"] = id
	}
	return request
}

// noContext is the trace context of requests: a command has none of its own, but that of its
// invocation.
var noContext = object{
	"span_context": object{"trace_id": [16]int{}, "span_id": [8]int{}, "trace_flags": 0, "is_remote": false, "trace_state": ""},
	"cause":        nil,
}

// span returns a duration in the form of requests.
func span(d time.Duration) object {
	return object{"secs": d / time.Second, "nanos": d % time.Second}
}

func (w entryWriter) notification(e journal.Entry) (any, error) {
	n, err := journal.ParseNotification(e.Payload)
	if err != nil {
		return nil, err
	}
	if e.Type == journal.Signal {
		return object{"Notification": object{"Signal": object{"id": signalID(n.ID), "result": w.variant(&n)}}}, nil
	}
	body := object{"completion_id": n.ID.Index}
	switch n.Variant {
	case journal.InvocationID:
		body["invocation_id"] = n.InvocationID
	case journal.StateKeys:
		body["state_keys"] = texts(n.StateKeys)
	default:
		if e.Type != journal.SleepCompletion {
			body["result"] = w.variant(&n)
		}
	}
	return object{"Notification": object{"Completion": object{e.Type.Name(): body}}}, nil
}

func (w entryWriter) variant(n *journal.Notification) any {
	if r, ok := n.Result(); ok {
		return w.resultOf(&r)
	}
	return "Void"
}

func signalID(id journal.NotificationID) object {
	if id.Name != "" {
		return object{"Name": id.Name}
	}
	return object{"Index": id.Index}
}

func (w entryWriter) result(v *service.Value, f *service.Failure) any {
	if f == nil {
		return object{"Success": w.payload(v.GetContent())}
	}
	metadata := make([]object, len(f.Metadata))
	for i, m := range f.Metadata {
		metadata[i] = object{"key": m.Key, "value": m.Value}
	}
	return object{"Failure": object{"code": f.Code, "message": f.Message, "metadata": metadata}}
}

func (w entryWriter) resultOf(r *journal.Result) any {
	switch {
	case r == nil:
		return "Void"
	case r.Failure == nil:
		return object{"Success": w.payload(r.Value)}
	}
	metadata := make([]object, len(r.Failure.Metadata))
	for i, m := range r.Failure.Metadata {
		metadata[i] = object{"key": m.Key, "value": m.Value}
	}
	return object{"Failure": object{"code": r.Failure.Code, "message": r.Failure.Message, "metadata": metadata}}
}

// byteList is marshaled as an array of numbers.
type byteList []byte

// MarshalJSON implements json.Marshaler.
func (b byteList) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 4*len(b)+2), '[')
	for i, c := range b {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(out, uint64(c), 10)
	}
	return append(out, ']'), nil
}

func (w entryWriter) payload(b []byte) byteList {
	if w.lite {
		return nil
	}
	return b
}

func headers(list []*service.Header) []object {
	out := make([]object, len(list))
	for i, h := range list {
		out[i] = object{"name": h.Key, "value": h.Value}
	}
	return out
}

func pairs(list []journal.Header) []object {
	out := make([]object, len(list))
	for i, h := range list {
		out[i] = object{"name": h.Key, "value": h.Value}
	}
	return out
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
