package protocol

import (
	"encoding/binary"

	"platform/internal/errcode"
	"platform/partition/journal"
)

// Type is the type code of a message; those of commands and notifications are in
// package journal.
type Type = journal.Type

// Control messages.
const (
	Start                   Type = 0x0000
	Suspension              Type = 0x0001
	Error                   Type = 0x0002
	End                     Type = 0x0003
	CommandAck              Type = 0x0004
	ProposeRunCompletion    Type = 0x0005
	AwaitingOn              Type = 0x0006 // since 7
	ProposeRunCompletionAck Type = 0x0007 // since 7
)

// HeaderLen is the length of a message header.
const HeaderLen = 8

// requestedAck is the only defined flag; the other bits are reserved.
const requestedAck = 0x8000

// Message is a message of an endpoint.
type Message struct {
	Type    Type
	WantAck bool
	Payload []byte // aliases the buffer of the decoder
}

// AppendHeader writes a message header; the server never sets flags.
func AppendHeader(b []byte, t Type, length int) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)<<48|uint64(uint32(length)))
}

// Decoder splits the bytes of a response into messages. The zero Decoder has no limit besides
// that of the format.
type Decoder struct {
	Limit   int    // messages of at least this many bytes are rejected; 0 for no limit
	pending []byte // incomplete message, after the bytes returned by Next
	read    int    // bytes of pending returned by Next
}

// Feed appends a copy of p. Messages stay valid indefinitely; those of one Feed share an
// allocation.
func (d *Decoder) Feed(p []byte) {
	rest := d.pending[d.read:]
	// Returned messages own their part of the buffer: start a new one.
	if d.read > 0 || len(rest)+len(p) > cap(d.pending) {
		fresh := make([]byte, 0, d.room(rest, len(p)))
		d.pending, d.read = append(fresh, rest...), 0
	}
	d.pending = append(d.pending, p...)
}

// growth bounds the memory allocated for a long message before its bytes arrive, as a
// multiple of the bytes received: the announced length alone must not allocate memory.
const growth = 8

// A buffer for a message from longMessage on has room for the short ones that usually arrive
// with its end, such as End after Output, so that they do not cause another copy of it.
const (
	longMessage = 64 << 10
	following   = 1 << 10
)

// room returns the size of a buffer for the remaining bytes and n more.
func (d *Decoder) room(rest []byte, n int) int {
	have := len(rest) + n
	if len(rest) < HeaderLen {
		return have
	}
	length := int(uint32(binary.BigEndian.Uint64(rest)))
	if d.Limit > 0 && length >= d.Limit {
		return have // rejected by Next
	}
	length += HeaderLen
	if length >= longMessage {
		length += following
	}
	return max(have, min(length, growth*have))
}

// Size returns the memory held for an incomplete message.
func (d *Decoder) Size() int {
	if d.read == len(d.pending) {
		return 0
	}
	return cap(d.pending) - d.read
}

// Next returns the next complete message; ok is false if there is none yet. The error for a
// message over the limit has code RT0003, or RT0012 if its type is unknown; the decoder must not be used afterwards.
func (d *Decoder) Next() (m Message, ok bool, err error) {
	b := d.pending[d.read:]
	if len(b) < HeaderLen {
		return Message{}, false, nil
	}
	h := binary.BigEndian.Uint64(b)
	length := uint64(uint32(h))
	t := Type(h >> 48)
	if d.Limit > 0 && length >= uint64(d.Limit) {
		if int(t) >= len(controlNames) && !t.Known() {
			return Message{}, false, errcode.New(errcode.RT0012, "unexpected message 0x%04x: the response is not in the service protocol", uint16(t))
		}
		return Message{}, false, errcode.New(errcode.RT0003,
			"message %s of %d bytes reaches the limit of %d bytes (worker.invoker.message-size-limit)", Name(t), length, d.Limit)
	}
	if uint64(len(b)-HeaderLen) < length {
		return Message{}, false, nil
	}
	end := HeaderLen + int(length)
	d.read += end
	return Message{Type: t, WantAck: h>>32&requestedAck != 0, Payload: b[HeaderLen:end:end]}, true, nil
}

// NextIsCommand reports whether Next returns a command.
func (d *Decoder) NextIsCommand() bool {
	b := d.pending[d.read:]
	if len(b) < HeaderLen {
		return false
	}
	h := binary.BigEndian.Uint64(b)
	return uint64(len(b)-HeaderLen) >= uint64(uint32(h)) && Type(h>>48).IsCommand()
}

// Partial reports whether an incomplete message is pending.
func (d *Decoder) Partial() bool { return len(d.pending) > d.read }

var controlNames = [...]string{
	"Start", "Suspension", "Error", "End", "CommandAck", "ProposeRunCompletion", "AwaitingOn", "ProposeRunCompletionAck",
}

// Name returns the name of a message type for users.
func Name(t Type) string {
	if int(t) < len(controlNames) {
		return controlNames[t]
	}
	return t.String()
}
