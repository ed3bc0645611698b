package protocol

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/ids"
	"platform/partition/machine"
)

// StartInfo is the content of a Start message. IdempotencyKey, Scope and LimitKey are sent
// from protocol 7 on.
type StartInfo struct {
	Version        Version
	ID             ids.Invocation
	KnownEntries   uint32
	State          []machine.StateEntry
	PartialState   bool
	Key            string
	RandomSeed     uint64
	RetryCount     uint32
	SinceLastEntry uint64 // milliseconds
	IdempotencyKey *string
	Scope          string
	LimitKey       string
}

// AppendStart writes a Start message with its header.
func AppendStart(b []byte, s *StartInfo) []byte {
	at := len(b)
	b = AppendHeader(b, Start, 0)
	b = appendBytes(b, 1, s.ID[:])
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(ids.InvocationLen))
	b = s.ID.AppendText(b)
	b = appendVarint(b, 3, uint64(s.KnownEntries))
	for i := range s.State {
		b = appendStateEntry(b, &s.State[i])
	}
	b = appendVarint(b, 5, protowire.EncodeBool(s.PartialState))
	if s.Key != "" {
		b = appendString(b, 6, s.Key)
	}
	b = appendVarint(b, 7, uint64(s.RetryCount))
	b = appendVarint(b, 8, s.SinceLastEntry)
	if s.Version >= V6 {
		b = appendVarint(b, 9, s.RandomSeed)
	}
	if s.Version >= V7 {
		b = appendV7(b, s)
	}
	return patchLength(b, at)
}

func appendV7(b []byte, s *StartInfo) []byte {
	if s.Scope != "" {
		b = appendString(b, 10, s.Scope)
	}
	if s.LimitKey != "" {
		b = appendString(b, 11, s.LimitKey)
	}
	if s.IdempotencyKey != nil {
		b = appendString(b, 12, *s.IdempotencyKey)
	}
	return b
}

func appendStateEntry(b []byte, e *machine.StateEntry) []byte {
	size := 0
	if len(e.Key) > 0 {
		size += 1 + protowire.SizeBytes(len(e.Key))
	}
	if len(e.Value) > 0 {
		size += 1 + protowire.SizeBytes(len(e.Value))
	}
	b = protowire.AppendTag(b, 4, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	if len(e.Key) > 0 {
		b = appendBytes(b, 1, e.Key)
	}
	if len(e.Value) > 0 {
		b = appendBytes(b, 2, e.Value)
	}
	return b
}

// AppendRunAck writes the acknowledgement that replaces the RunCompletion for the attempt
// that proposed it (protocol 7).
func AppendRunAck(b []byte, completion uint32) []byte {
	at := len(b)
	b = appendVarint(AppendHeader(b, ProposeRunCompletionAck, 0), 1, uint64(completion))
	return patchLength(b, at)
}

// patchLength sets the length in the header at offset at, for a message that ends at len(b).
func patchLength(b []byte, at int) []byte {
	n := uint32(len(b) - at - HeaderLen)
	b[at+4], b[at+5], b[at+6], b[at+7] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return b
}

// appendVarint omits zero, as proto3 does.
func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}
