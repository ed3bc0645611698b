package protocol

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/partition/journal"
	"platform/proto/service"
)

// Command is the part of a command that is needed before it is proposed.
type Command struct {
	// Request is set for Call and OneWayCall; its strings are part of the payload.
	Request *journal.Request
	// Target is the invocation id of a SendSignal, AttachInvocation or
	// GetInvocationOutput that names one, or the id of a CompleteAwakeable.
	Target string
	// StateKey is the key that a SetState or ClearState names; part of the payload.
	StateKey []byte
	// ValueSize is the length of the value of a SetState.
	ValueSize int
	// Completions are its completion ids; 0 is none.
	Completions [2]uint32
}

// ParseCommand checks that a command is one an endpoint may send and that all
// readers of the journal will be able to decode it. Its error carries RT0012.
func ParseCommand(t journal.Type, payload []byte) (Command, error) {
	var c Command
	err := checkPairs(t, payload)
	switch {
	case err != nil:
	case t == journal.Output: // parse has a large stack frame
		_, err = journal.ParseOutput(payload)
	default:
		err = c.parse(t, payload)
	}
	if _, coded := errcode.Of(err); err != nil && !coded {
		err = undecodable(t, err)
	}
	return c, err
}

// parse parses all commands except Output. Its stack frame of 0.9 KiB made the stack of an attempt's
// goroutine grow, and every attempt sends an Output.
//
//go:noinline
func (c *Command) parse(t journal.Type, payload []byte) error {
	switch t {
	case journal.Run:
		var m service.RunCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		return c.completes(err, m.ResultCompletionId)
	case journal.Sleep:
		m, err := journal.ParseSleep(payload)
		return c.completes(err, m.Completion)
	case journal.SetState, journal.ClearState:
		m, err := journal.ParseState(t, payload)
		c.StateKey, c.ValueSize = m.Key, len(m.Value)
		return err
	case journal.GetLazyState:
		m, err := journal.ParseState(t, payload)
		return c.completes(err, m.Completion)
	case journal.GetLazyStateKeys:
		completion, err := journal.ParseGetLazyStateKeys(payload)
		return c.completes(err, completion)
	case journal.Call:
		m, err := journal.ParseCall(payload)
		c.Request = &m.Request
		return c.completes(err, m.IDCompletion, m.Completion)
	case journal.OneWayCall:
		m, err := journal.ParseOneWayCall(payload)
		c.Request = &m.Request
		return c.completes(err, m.IDCompletion)
	}
	return c.parseMessage(t, payload)
}

// parseMessage parses the less frequent commands. It is separate for the same reason: a stack frame
// with the messages of all commands has 1.5 KiB.
//
//go:noinline
func (c *Command) parseMessage(t journal.Type, payload []byte) error {
	switch t {
	case journal.ClearAllState:
		return new(service.ClearAllStateCommandMessage).UnmarshalVTUnsafe(payload)
	case journal.GetEagerState:
		var m service.GetEagerStateCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		return requireResult(err, m.Result != nil)
	case journal.GetEagerStateKeys:
		keys, err := countFields(payload, 14, 1)
		if err == nil && keys <= limits.Pairs { // decoded, a short key takes many times its bytes
			err = new(service.GetEagerStateKeysCommandMessage).UnmarshalVTUnsafe(payload)
		}
		return err
	case journal.GetPromise:
		var m service.GetPromiseCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		return c.completes(err, m.ResultCompletionId)
	case journal.PeekPromise:
		var m service.PeekPromiseCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		return c.completes(err, m.ResultCompletionId)
	case journal.CompletePromise:
		var m service.CompletePromiseCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		return c.completes(requireResult(err, m.Completion != nil), m.ResultCompletionId)
	case journal.SendSignal:
		var m service.SendSignalCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		c.Target = m.TargetInvocationId
		return requireResult(err, m.SignalId != nil && m.Result != nil)
	case journal.AttachInvocation, journal.GetInvocationOutput:
		var m service.AttachInvocationCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		if id, ok := m.Target.(*service.AttachInvocationCommandMessage_InvocationId); ok {
			c.Target = id.InvocationId
		}
		return c.completes(requireResult(err, m.Target != nil), m.ResultCompletionId)
	case journal.CompleteAwakeable:
		var m service.CompleteAwakeableCommandMessage
		err := m.UnmarshalVTUnsafe(payload)
		c.Target = m.AwakeableId
		return requireResult(err, m.Result != nil)
	}
	return errcode.New(errcode.RT0012, "unexpected message %s", Name(t))
}

// completes records the completion IDs. If err is nil it returns an error for a missing ID.
func (c *Command) completes(err error, completions ...uint32) error {
	for i, id := range completions {
		if err == nil && id == 0 {
			return errNoCompletion
		}
		c.Completions[i] = id
	}
	return err
}

// requireResult returns an error if err is nil and the result is missing.
func requireResult(err error, present bool) error {
	if err == nil && !present {
		return errNoResult
	}
	return err
}

// boolField returns the last occurrence of a bool field; false if there is none.
func boolField(payload []byte, field protowire.Number) (v bool) {
	for len(payload) > 0 {
		num, typ, n := protowire.ConsumeTag(payload)
		if n < 0 {
			return v
		}
		if num == field && typ == protowire.VarintType {
			number, _ := protowire.ConsumeVarint(payload[n:])
			v = number != 0
		}
		size := protowire.ConsumeFieldValue(num, typ, payload[n:])
		if size < 0 {
			return v
		}
		payload = payload[n+size:]
	}
	return v
}

// bytesField returns the last occurrence of a bytes field.
func bytesField(payload []byte, field protowire.Number) ([]byte, error) {
	var found []byte
	present := false
	for len(payload) > 0 {
		num, typ, n := protowire.ConsumeTag(payload)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(num, typ, payload[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if num == field && typ == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(payload[n:])
			present = true
		}
		payload = payload[n+size:]
	}
	if !present {
		return nil, errNoFuture
	}
	return found, nil
}
