package journal

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers that commands share: the completion IDs of a callee's ID and of the result,
// and the display name.
const (
	fieldIDCompletion     protowire.Number = 10
	fieldResultCompletion protowire.Number = 11
	fieldName             protowire.Number = 12
)

// NameOf returns the display name that the handler gave a command; empty if there is none
// or the entry is a notification.
func NameOf(e Entry) string {
	if !e.Type.IsCommand() {
		return ""
	}
	name := ""
	for b := e.Payload; len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ""
		}
		b = b[n:]
		if number == fieldName && kind == protowire.BytesType {
			text, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return ""
			}
			name, b = string(text), b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return ""
		}
		b = b[n:]
	}
	return name
}

// CompletionsOf returns the completion IDs that a command requests.
func CompletionsOf(e Entry) []uint32 {
	var found []uint32
	switch e.Type {
	case GetLazyState, GetLazyStateKeys, GetPromise, PeekPromise, CompletePromise, Sleep, Run, AttachInvocation,
		GetInvocationOutput, Call, OneWayCall:
	default:
		return nil
	}
	// One-way calls have no field 11; other commands have no field 10.
	_ = eachField(e.Payload, func(num protowire.Number, typ protowire.Type, v value) error {
		if typ == protowire.VarintType && (num == fieldIDCompletion || num == fieldResultCompletion) {
			found = append(found, uint32(v.number))
		}
		return nil
	})
	return found
}
