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

// Message is one message as it came from an endpoint.
type Message struct {
	Type    Type
	WantAck bool
	Payload []byte // part of what was fed to the decoder
}

// AppendHeader writes a message header; the server never sets flags.
func AppendHeader(b []byte, t Type, length int) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)<<48|uint64(uint32(length)))
}

// Decoder cuts the bytes of a response into messages. The zero Decoder has no
// limit but that of the format.
type Decoder struct {
	Limit   int    // a message of that many bytes or more is refused; 0: none
	pending []byte // not yet a whole message
	read    int    // bytes of pending that Next has given out
}

// Feed appends bytes. They are copied, so that messages stay valid for ever; those
// of one Feed share one allocation.
func (d *Decoder) Feed(p []byte) {
	rest := d.pending[d.read:]
	// What was given out belongs to the messages now: begin a new buffer.
	if d.read > 0 || len(rest)+len(p) > cap(d.pending) {
		fresh := make([]byte, 0, d.room(rest, len(p)))
		d.pending, d.read = append(fresh, rest...), 0
	}
	d.pending = append(d.pending, p...)
}

// Long messages get memory ahead of their bytes, so that they are not copied over
// and over; but no more than growth times what has arrived, since an announcement
// alone must cost nothing.
const growth = 4

// room is how much memory the bytes left over and n more ones get.
func (d *Decoder) room(rest []byte, n int) int {
	have := len(rest) + n
	if len(rest) < HeaderLen {
		return have
	}
	length := int(uint32(binary.BigEndian.Uint64(rest)))
	if d.Limit > 0 && length >= d.Limit {
		return have // Next refuses it
	}
	return max(have, min(HeaderLen+length, growth*have))
}

// Size is how many bytes the decoder holds that belong to no message yet.
func (d *Decoder) Size() int {
	if d.read == len(d.pending) {
		return 0
	}
	return cap(d.pending) - d.read
}

// Next returns the next whole message, or ok false if there is none yet. An error
// carries RT0003 for a message over the limit; the decoder is of no use after one.
func (d *Decoder) Next() (m Message, ok bool, err error) {
	b := d.pending[d.read:]
	if len(b) < HeaderLen {
		return Message{}, false, nil
	}
	h := binary.BigEndian.Uint64(b)
	length := uint64(uint32(h))
	t := Type(h >> 48)
	if d.Limit > 0 && length >= uint64(d.Limit) {
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

// Partial reports whether a message has begun that is not whole.
func (d *Decoder) Partial() bool { return len(d.pending) > d.read }

var controlNames = [...]string{
	"Start", "Suspension", "Error", "End", "CommandAck", "ProposeRunCompletion", "AwaitingOn", "ProposeRunCompletionAck",
}

// Name is what users see of a message type.
func Name(t Type) string {
	if int(t) < len(controlNames) {
		return controlNames[t]
	}
	return t.String()
}
