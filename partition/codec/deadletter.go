package codec

import (
	"bytes"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/partition/machine"
)

func (w *writer) setAside(field protowire.Number, c *machine.SetAside) {
	w.require(feature.Level4, "records of event streams that are set aside")
	n := w.open(field, setAsideSize(c))
	p := w.open(fieldSetAsidePosition, positionSize(&c.Position))
	w.position(&c.Position)
	w.close(p)
	l := w.open(fieldSetAsideLetter, deadLetterSize(&c.Letter))
	w.deadLetter(&c.Letter)
	w.close(l)
	m := w.open(fieldSetAsideMost, 24)
	w.uint(fieldDeadLettersRecords, c.Most.Records)
	w.uint(fieldDeadLettersBytes, c.Most.Bytes)
	w.close(m)
	w.close(n)
}

func setAsideSize(c *machine.SetAside) int {
	return min(64+positionSize(&c.Position)+deadLetterSize(&c.Letter), math.MaxInt32)
}

func readSetAside(b []byte, c *machine.SetAside) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldSetAsidePosition:
			decodeInto(&r, &c.Position, readPosition)
		case fieldSetAsideLetter:
			decodeInto(&r, &c.Letter, readDeadLetter)
		case fieldSetAsideMost:
			decodeInto(&r, &c.Most, readDeadLetters)
		default:
			r.unknown("set aside")
		}
	}
	return r.err
}

func readDeadLetters(b []byte, d *machine.DeadLetters) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldDeadLettersRecords:
			d.Records = r.u64()
		case fieldDeadLettersBytes:
			d.Bytes = r.u64()
		default:
			r.unknown("dead letters")
		}
	}
	return r.err
}

// AppendDeadLetter appends the record of a dead letter to b.
func AppendDeadLetter(b []byte, l *machine.DeadLetter) []byte {
	w := writer{b: b}
	w.deadLetter(l)
	return w.b
}

// DecodeDeadLetter decodes the record of a dead letter, which does not alias b.
func DecodeDeadLetter(b []byte) (l machine.DeadLetter, err error) {
	err = readDeadLetter(b, &l)
	return decoded(l, "dead letter", err)
}

func (w *writer) deadLetter(l *machine.DeadLetter) {
	w.stream(fieldDeadLetterStream, &l.Stream)
	w.int(fieldDeadLetterOffset, l.Offset)
	w.int(fieldDeadLetterTimestamp, l.Timestamp)
	w.bytes(fieldDeadLetterKey, l.Key)
	w.bool(fieldDeadLetterNoKey, l.NoKey)
	w.bytes(fieldDeadLetterValue, l.Value)
	w.bool(fieldDeadLetterNoValue, l.NoValue)
	for i := range l.Headers {
		h := &l.Headers[i]
		n := w.open(fieldDeadLetterHeaders, 16+len(h.Name)+len(h.Value))
		w.string(fieldRecordHeaderName, h.Name)
		w.bytes(fieldRecordHeaderValue, h.Value)
		w.close(n)
	}
	w.string(fieldDeadLetterReason, l.Reason)
	w.string(fieldDeadLetterMessage, l.Message)
	w.int(fieldDeadLetterAt, l.At)
}

func deadLetterSize(l *machine.DeadLetter) int {
	size := 128 + streamSize(&l.Stream) + len(l.Key) + len(l.Value) + len(l.Reason) + len(l.Message)
	for i := range l.Headers {
		size += 24 + len(l.Headers[i].Name) + len(l.Headers[i].Value)
	}
	return size
}

func readDeadLetter(b []byte, l *machine.DeadLetter) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldDeadLetterStream:
			decodeInto(&r, &l.Stream, readStream)
		case fieldDeadLetterOffset:
			l.Offset = r.i64()
		case fieldDeadLetterTimestamp:
			l.Timestamp = r.i64()
		case fieldDeadLetterKey:
			l.Key = bytes.Clone(r.bytes())
		case fieldDeadLetterNoKey:
			l.NoKey = r.bool()
		case fieldDeadLetterValue:
			l.Value = bytes.Clone(r.bytes())
		case fieldDeadLetterNoValue:
			l.NoValue = r.bool()
		case fieldDeadLetterHeaders:
			decodeInto(&r, grow(&r, &l.Headers), readRecordHeader)
		case fieldDeadLetterReason:
			l.Reason = strings.Clone(r.string())
		case fieldDeadLetterMessage:
			l.Message = strings.Clone(r.string())
		case fieldDeadLetterAt:
			l.At = r.i64()
		default:
			r.unknown("dead letter")
		}
	}
	return r.err
}

func readRecordHeader(b []byte, h *machine.RecordHeader) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRecordHeaderName:
			h.Name = strings.Clone(r.string())
		case fieldRecordHeaderValue:
			h.Value = bytes.Clone(r.bytes())
		default:
			r.unknown("record header")
		}
	}
	return r.err
}

func (w *writer) dropDeadLetters(field protowire.Number, c *machine.DropDeadLetters) {
	w.require(feature.Level4, "records of event streams that are set aside")
	n := w.open(field, dropDeadLettersSize(c))
	w.string(fieldDropDeadLettersSubscription, c.Subscription)
	for i := range c.Letters {
		id := &c.Letters[i]
		l := w.open(fieldDropDeadLettersLetters, 32+len(id.Topic))
		w.string(fieldDeadLetterIDTopic, id.Topic)
		w.uint(fieldDeadLetterIDPartition, uint64(id.Partition))
		w.int(fieldDeadLetterIDOffset, id.Offset)
		w.close(l)
	}
	w.close(n)
}

func dropDeadLettersSize(c *machine.DropDeadLetters) int {
	size := 32 + len(c.Subscription)
	for i := range c.Letters {
		size += 40 + len(c.Letters[i].Topic)
	}
	return min(size, math.MaxInt32)
}

func readDropDeadLetters(b []byte, c *machine.DropDeadLetters) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldDropDeadLettersSubscription:
			c.Subscription = strings.Clone(r.string())
		case fieldDropDeadLettersLetters:
			decodeInto(&r, grow(&r, &c.Letters), readDeadLetterID)
		default:
			r.unknown("drop dead letters")
		}
	}
	return r.err
}

func readDeadLetterID(b []byte, id *machine.DeadLetterID) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldDeadLetterIDTopic:
			id.Topic = strings.Clone(r.string())
		case fieldDeadLetterIDPartition:
			id.Partition = r.u32()
		case fieldDeadLetterIDOffset:
			id.Offset = r.i64()
		default:
			r.unknown("dead letter id")
		}
	}
	return r.err
}
